//! Frees each object before the allocation that the file states: the first after its last use, or after it could not be
//! reached any more.
//!
//! The layer's table of blocks has as many slots as objects are alive at once. The file names, before each allocation,
//! the slots whose objects are freed, and the slot of the new object.

use core::cell::Cell;
use core::ffi::c_void;
use core::ptr;

use heaptoll_oracle_file::FREE;

use crate::oracle::difference::What;
use crate::oracle::reader::{NoWord, Reader, Source};

/// The table, and what is done with it.
///
/// Invariant: a slot contains a block that the layer has not freed, or null.
pub struct Schedule<'a, S> {
    words: Reader<S, u32>,
    blocks: &'a [Cell<*mut c_void>],
    /// Slot of the next block.
    slot: u32,
}

impl<'a, S: Source> Schedule<'a, S> {
    /// Before the first allocation. Every slot is null.
    pub fn new(words: Reader<S, u32>, blocks: &'a [Cell<*mut c_void>]) -> Schedule<'a, S> {
        Schedule { words, blocks, slot: 0 }
    }

    /// Frees what is due before the next allocation.
    ///
    /// # Errors
    /// [`What::File`], or [`What::End`] after the last allocation.
    #[inline(always)]
    pub fn before_allocation(&mut self, mut free: impl FnMut(*mut c_void)) -> Result<(), What> {
        loop {
            let word = match self.words.read() {
                Ok(word) => word,
                Err(NoWord::End) => return Err(What::End),
                Err(NoWord::Unreadable) => return Err(What::File),
            };
            if word & FREE == 0 {
                self.slot = word;
                return Ok(());
            }
            let slot = self.blocks.get((word & !FREE) as usize).ok_or(What::File)?;
            let block = slot.replace(ptr::null_mut());
            if block.is_null() {
                return Err(What::File);
            }
            free(block);
        }
    }

    /// Keeps the new block until its object is due.
    ///
    /// # Errors
    /// [`What::File`]: its slot does not exist, or is not empty.
    #[inline(always)]
    pub fn keep(&mut self, block: *mut c_void) -> Result<(), What> {
        let slot = self.blocks.get(self.slot as usize).ok_or(What::File)?;
        if slot.replace(block).is_null() { Ok(()) } else { Err(What::File) }
    }
}

#[cfg(test)]
mod tests {
    use std::vec;
    use std::vec::Vec;

    use heaptoll_oracle_file::Section;

    use super::*;
    use crate::oracle::reader::testing::Bytes;

    fn block(number: usize) -> *mut c_void {
        ptr::without_provenance_mut(number)
    }

    fn followed(words: &[u32], slots: usize) -> Result<Vec<Vec<usize>>, What> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let section = Section { start: 0, count: words.len() as u64 };
        let blocks = vec![Cell::new(ptr::null_mut()); slots];
        let mut schedule = Schedule::new(Reader::new(Bytes(bytes), section), &blocks);
        let allocations = words.iter().filter(|word| **word & FREE == 0).count();
        (1..=allocations)
            .map(|number| {
                let mut freed = vec![];
                schedule.before_allocation(|block| freed.push(block.addr()))?;
                schedule.keep(block(number)).map(|()| freed)
            })
            .collect()
    }

    #[test]
    fn objects_are_freed_before_the_allocation_that_the_file_states() {
        let freed = followed(&[0, 1, FREE, 0, FREE | 1, FREE, 1], 2);
        assert_eq!(freed, Ok(vec![vec![], vec![], vec![1], vec![2, 3]]));
    }

    #[test]
    fn a_file_that_frees_nothing_or_twice_or_overwrites_a_block_is_wrong() {
        for words in [&[FREE, 0][..], &[0, FREE, FREE, 0], &[0, 0], &[2], &[0, FREE | 2, 1]] {
            assert_eq!(followed(words, 2), Err(What::File), "{words:x?}");
        }
    }
}
