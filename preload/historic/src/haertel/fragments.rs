//! Fragments: a chunk cut into blocks of one power of two.
//!
//! All free fragments of one size are in one doubly linked list, and those of one chunk stand together in it, from the
//! one that the chunk's entry names. So a chunk whose last fragment is freed leaves the list in one piece.

use heaptoll_runtime::{Misuse, WORD};

use crate::haertel::{CHUNK, ChunkEntry, ChunkKind, Haertel, SMALLEST};

/// A free fragment, by its address; 0 is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fragment(pub(crate) usize);

impl Fragment {
    pub(crate) const NONE: Fragment = Fragment(0);

    /// # Safety
    /// Here and below: it is a free fragment of a sound heap.
    #[inline(always)]
    pub(crate) unsafe fn next(self) -> Fragment {
        // SAFETY: it is a free fragment of a sound heap, as the type's functions require.
        Fragment(unsafe { (self.0 as *const usize).read() })
    }

    #[inline(always)]
    pub(crate) unsafe fn previous(self) -> Fragment {
        // SAFETY: it is a free fragment of a sound heap, as the type's functions require.
        Fragment(unsafe { ((self.0 + WORD) as *const usize).read() })
    }

    #[inline(always)]
    unsafe fn set_next(self, next: Fragment) {
        // SAFETY: it is a free fragment of a sound heap, as the type's functions require.
        unsafe { (self.0 as *mut usize).write(next.0) }
    }

    #[inline(always)]
    unsafe fn set_previous(self, previous: Fragment) {
        // SAFETY: it is a free fragment of a sound heap, as the type's functions require.
        unsafe { ((self.0 + WORD) as *mut usize).write(previous.0) }
    }
}

/// The class of a request of at most half a chunk, as a power of two.
#[inline(always)]
pub(crate) const fn class_of(bytes: usize) -> u32 {
    if bytes <= 1 << SMALLEST { SMALLEST } else { (bytes - 1).ilog2() + 1 }
}

impl Haertel {
    /// A fragment of a class.
    #[inline(always)]
    pub(crate) fn take_fragment(&mut self, class: u32) -> Option<usize> {
        let first = self.classes[class as usize];
        if first == Fragment::NONE {
            return self.cut_chunk(class);
        }
        // SAFETY: what is in a class's list is a free fragment.
        unsafe {
            let next = first.next();
            self.classes[class as usize] = next;
            if next != Fragment::NONE {
                next.set_previous(Fragment::NONE);
            }
            let chunk = self.chunk_of(first.0);
            let entry = &mut self.table[chunk];
            entry.count -= 1;
            if entry.count != 0 {
                // The next is of the same chunk, since they stand together.
                entry.next = ((next.0 % CHUNK) >> class) as u32;
            }
        }
        Some(first.0)
    }

    /// A fragment of a class that has none: a chunk is cut for it.
    #[cold]
    #[inline(never)]
    fn cut_chunk(&mut self, class: u32) -> Option<usize> {
        let chunk = self.take_run(1)?;
        let address = self.address(chunk);
        let fragments = CHUNK >> class;
        for place in 1..fragments {
            // SAFETY: the chunk is no one else's, and its fragments lie in it.
            unsafe { self.push(Fragment(address + (place << class)), class) };
        }
        let free = fragments as u32 - 1;
        self.table[chunk] = ChunkEntry {
            kind: ChunkKind::FRAGMENTS,
            log: class as u16,
            count: free,
            next: free,
            previous: 0,
        };
        Some(address)
    }

    /// Puts a fragment in front of its class's list.
    ///
    /// # Safety
    /// It is the heap's, free, and in no list.
    #[inline(always)]
    unsafe fn push(&mut self, fragment: Fragment, class: u32) {
        let next = self.classes[class as usize];
        // SAFETY: it is the heap's, free, and in no list, as this function requires.
        unsafe {
            fragment.set_next(next);
            fragment.set_previous(Fragment::NONE);
            if next != Fragment::NONE {
                next.set_previous(fragment);
            }
        }
        self.classes[class as usize] = fragment;
    }

    /// Frees a fragment of the chunk.
    ///
    /// # Errors
    /// It is no fragment, or the first free one of its chunk.
    ///
    /// # Safety
    /// The chunk is cut into fragments, and the address is in it.
    #[inline(always)]
    pub(crate) unsafe fn free_fragment(&mut self, chunk: u32, address: usize) -> Result<(), Misuse> {
        let entry = self.table[chunk];
        let place = place_of(&entry, address)?;
        let fragment = Fragment(address);
        if entry.count == 0 {
            // SAFETY: the chunk is cut into fragments, and the address is in it, as this function requires.
            unsafe { self.push(fragment, entry.log as u32) };
            self.table[chunk].count = 1;
            self.table[chunk].next = place;
            return Ok(());
        }
        if entry.count == entry.fragments() - 1 {
            self.release_chunk(chunk);
            return Ok(());
        }
        // After the chunk's first free fragment: the chunk's stay together.
        let first = Fragment(self.first_free(chunk));
        // SAFETY: the chunk is cut into fragments, and the address is in it, as this function requires; `first` is in
        // the list.
        unsafe {
            let next = first.next();
            fragment.set_next(next);
            fragment.set_previous(first);
            first.set_next(fragment);
            if next != Fragment::NONE {
                next.set_previous(fragment);
            }
        }
        self.table[chunk].count = entry.count + 1;
        Ok(())
    }

    /// The address of a chunk's first free fragment.
    #[inline(always)]
    pub(crate) fn first_free(&self, chunk: u32) -> usize {
        let entry = self.table[chunk];
        self.address(chunk) + ((entry.next as usize) << entry.log)
    }

    /// Takes a chunk's free fragments, all but the one just freed, out of their list and makes the chunk a free run.
    #[cold]
    #[inline(never)]
    fn release_chunk(&mut self, chunk: u32) {
        let entry = self.table[chunk];
        let first = Fragment(self.first_free(chunk));
        // SAFETY: so many fragments of the chunk stand together in the list.
        unsafe {
            let before = first.previous();
            let mut after = first;
            for _ in 0..entry.count {
                after = after.next();
            }
            if before == Fragment::NONE {
                self.classes[entry.log as usize] = after;
            } else {
                before.set_next(after);
            }
            if after != Fragment::NONE {
                after.set_previous(before);
            }
        }
        self.table[chunk] = ChunkEntry::run(ChunkKind::LIVE, 1);
        self.free_run(chunk);
    }
}

/// The place in its chunk of the live fragment at an address.
///
/// # Errors
/// No fragment begins there, or the one that does is the chunk's first free one.
#[inline(always)]
pub(crate) fn place_of(entry: &ChunkEntry, address: usize) -> Result<u32, Misuse> {
    if address & ((1 << entry.log) - 1) != 0 {
        return Err(Misuse::Damaged);
    }
    let place = ((address % CHUNK) >> entry.log) as u32;
    if entry.count != 0 && place == entry.next {
        return Err(Misuse::DoubleFree);
    }
    Ok(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_the_next_powers_of_two_from_16_to_2048() {
        let classes = [0, 1, 16, 17, 32, 33, 1024, 1025, 2048].map(class_of);
        assert_eq!(classes, [4, 4, 4, 5, 5, 6, 10, 11, 11]);
    }
}
