//! Tags with size and state at both ends, as Knuth has them (vol. 1 §2.5; Zorn 1992 §2.1).

use heaptoll_runtime::{ALIGNMENT, WORD};

use super::block::{Block, LIVE, SMALLEST, Tags};

/// Header and footer are the size with the live bit: the tag of a free block is its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BothEnds {}

impl Tags for BothEnds {
    const SIZE: usize = !(ALIGNMENT - 1);
    const SENTINEL: usize = LIVE;
}

impl Block<BothEnds> {
    /// Bytes of a block that is free.
    ///
    /// # Safety
    /// It is a free block of the heap.
    #[inline(always)]
    pub unsafe fn free_size(self) -> usize {
        // SAFETY: it is a free block of the heap, as this function requires; a free block's tag is its
        // size.
        unsafe { self.header() }
    }

    /// Whether header and footer are tags and agree.
    ///
    /// # Safety
    /// The header's word is in the heap, no less than [`SMALLEST`] before `end`, the heap's end.
    #[inline(always)]
    pub unsafe fn is_sound(self, end: usize) -> bool {
        // SAFETY: the header's word is in the heap, no less than [`SMALLEST`] before `end`, the heap's end, as this
        // function requires; the footer is read only if it lies in the heap.
        unsafe {
            let header = self.header();
            let size = header & BothEnds::SIZE;
            size.wrapping_sub(SMALLEST) <= end - self.0 - SMALLEST && self.word(size - WORD).read() == header
        }
    }

    /// Writes both tags.
    ///
    /// # Safety
    /// `size` bytes from the header on are the heap's, a multiple of the alignment, and in no other block.
    #[inline(always)]
    pub unsafe fn write(self, size: usize, live: bool) {
        let tag = size | live as usize;
        // SAFETY: `size` bytes from the header on are the heap's, a multiple of the alignment, and in no other block,
        // as this function requires.
        unsafe {
            self.word(0).write(tag);
            self.word(size - WORD).write(tag);
        }
    }

    /// Makes the header of a block that is now inside another one no tag at all, so that to free it again is seen.
    ///
    /// # Safety
    /// As [`Block::size`].
    #[inline(always)]
    pub unsafe fn erase(self) {
        // SAFETY: it is a block of the heap, as this function requires.
        unsafe { self.word(0).write(0) };
    }

    /// The block before it by address, if it is free.
    ///
    /// # Safety
    /// As [`Block::size`].
    #[inline(always)]
    pub unsafe fn free_before(self) -> Option<Block<BothEnds>> {
        // SAFETY: it is a block of the heap, as this function requires.
        let tag = unsafe { self.footer_before() };
        if tag & LIVE != 0 { None } else { Some(Block::at(self.0 - tag)) }
    }

    /// The one before it in the free list.
    ///
    /// # Safety
    /// As [`Block::free_size`].
    #[inline(always)]
    pub unsafe fn previous(self) -> Block<BothEnds> {
        // SAFETY: it is a free block of the heap, as this function requires.
        Block::at(unsafe { self.word(2 * WORD).read() })
    }

    /// Makes `next` follow `self` in the free list.
    ///
    /// # Safety
    /// As [`Block::free_size`], of both.
    #[inline(always)]
    pub unsafe fn link(self, next: Block<BothEnds>) {
        // SAFETY: it is a free block of the heap, as this function requires.
        unsafe {
            self.word(WORD).write(next.0);
            next.word(2 * WORD).write(self.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_at_both_ends_agree_and_a_write_beyond_is_seen() {
        let mut memory = [0usize; 16];
        let start = &raw mut memory as usize;
        let end = start + size_of_val(&memory);
        let block = Block::<BothEnds>::at(start + WORD);
        // SAFETY: the block lies in `memory`.
        unsafe {
            block.write(64, true);
            assert!(block.is_sound(end) && block.is_live());
            assert_eq!((block.size(), block.after()), (64, Block::at(start + WORD + 64)));
            assert_eq!(block.after().free_before(), None);
            block.write(64, false);
            assert_eq!(block.after().free_before(), Some(block));
            ((block.address() + 56) as *mut u8).write(b'!');
            assert!(!block.is_sound(end));
        }
    }
}
