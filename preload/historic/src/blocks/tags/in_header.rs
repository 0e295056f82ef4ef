//! Tags as Lea had them: both ends carry the size, but only the header the state, so that a block that changes hands is
//! written to in one place.

use heaptoll_runtime::{ALIGNMENT, WORD};

use super::block::{Block, LIVE, SMALLEST, Tags};

/// A mark that a walk sets and takes away again: this block, live by its tag, is free.
const MARKED: usize = 2;
/// Another, for the check: this block is clean.
const CLEAN: usize = 4;
/// The sign of this heap's tags. Sizes are below 2^48, so the upper bits of a tag are free for it.
const SIGN: usize = 0x1ea5 << 48;

/// Header and footer are the size with a sign, the header with the live bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InHeader {}

impl Tags for InHeader {
    const SIZE: usize = (1 << 48) - WORD;
    /// Header and footer of a block of one word.
    const SENTINEL: usize = SIGN | WORD | LIVE;
}

impl Block<InHeader> {
    /// Its size in units of alignment if it is live by its tag and the tag has the sign; else a number larger than
    /// every size.
    ///
    /// # Safety
    /// The header's word can be read.
    #[inline(always)]
    pub unsafe fn live_units(self) -> usize {
        // SAFETY: the header's word can be read, as this function requires. Whatever differs below the size's lowest
        // bit comes to stand above the highest.
        unsafe { (self.header() ^ (SIGN | LIVE)).rotate_right(ALIGNMENT.trailing_zeros()) }
    }

    /// Whether it is live by its tag, and fits `size` with no rest that were worth a block.
    ///
    /// # Safety
    /// As [`Block::live_units`].
    #[inline(always)]
    pub unsafe fn is_live_of(self, size: usize) -> bool {
        // SAFETY: the header's word can be read, as this function requires. A sum: a size that has bits in common with
        // the sign must fit no block.
        unsafe { self.header().wrapping_sub((SIGN | LIVE) + size) < SMALLEST }
    }

    /// Whether its tags have the sign and agree.
    ///
    /// # Safety
    /// The header's word is in the heap; `end` is the heap's end.
    #[inline(always)]
    pub unsafe fn is_sound(self, end: usize) -> bool {
        // SAFETY: the header's word is in the heap; `end` is the heap's end, as this function requires; the footer is
        // read only if it lies in the heap.
        unsafe {
            let tag = self.header() & !LIVE;
            let size = tag & InHeader::SIZE;
            tag == SIGN | size
                && size >= SMALLEST
                && size <= end - self.0
                && self.word(size - WORD).read() == tag
        }
    }

    /// Writes both tags, of a block that is not live.
    ///
    /// # Safety
    /// `size` bytes from the header on are the heap's, and in no other block.
    #[inline(always)]
    pub unsafe fn write(self, size: usize) {
        // SAFETY: `size` bytes from the header on are the heap's, and in no other block, as this function requires.
        unsafe {
            self.word(0).write(SIGN | size);
            self.word(size - WORD).write(SIGN | size);
        }
    }

    /// Makes it live.
    ///
    /// # Safety
    /// As [`Block::size`].
    #[inline(always)]
    pub unsafe fn revive(self) {
        // SAFETY: it is a block of the heap, as this function requires.
        unsafe { self.word(0).write(self.header() | LIVE) }
    }

    /// Makes it free.
    ///
    /// # Safety
    /// As [`Block::size`].
    #[inline(always)]
    pub unsafe fn retire(self) {
        // SAFETY: it is a block of the heap, as this function requires.
        unsafe { self.word(0).write(self.header() & !LIVE) }
    }

    /// The block before it by address, perhaps the sentinel.
    ///
    /// # Safety
    /// As [`Block::size`].
    #[inline(always)]
    pub unsafe fn before(self) -> Block<InHeader> {
        // SAFETY: it is a block of the heap, as this function requires.
        let tag = unsafe { self.footer_before() };
        Block::at(self.0 - (tag & InHeader::SIZE))
    }

    /// Puts it before `next` in a singly linked list.
    ///
    /// # Safety
    /// It is no longer the program's.
    #[inline(always)]
    pub unsafe fn link(self, next: Block<InHeader>) {
        // SAFETY: it is no longer the program's, as this function requires.
        unsafe { self.word(WORD).write(next.0) }
    }

    /// Marks a block that a list knows to be free, for a walk of the heap: lea's lists of returned blocks pass for live.
    ///
    /// # Safety
    /// As [`Block::size`]; the mark is taken away before the heap is used.
    pub unsafe fn mark(self, clean: bool) {
        // SAFETY: it is a block of the heap, as this function requires.
        unsafe { self.word(0).write(self.header() | MARKED | if clean { CLEAN } else { 0 }) }
    }

    /// Whether it is marked.
    ///
    /// # Safety
    /// The header's word is in the heap.
    pub unsafe fn is_marked(self) -> bool {
        // SAFETY: the header's word is in the heap, as this function requires.
        unsafe { self.header() & MARKED != 0 }
    }

    /// Takes its marks away: whether there was one, and whether it was a clean block's.
    ///
    /// # Safety
    /// As [`Block::size`].
    pub unsafe fn unmark(self) -> (bool, bool) {
        // SAFETY: it is a block of the heap, as this function requires.
        unsafe {
            let header = self.header();
            self.word(0).write(header & !(MARKED | CLEAN));
            (header & MARKED != 0, header & CLEAN != 0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_alone_gives_the_state_and_a_write_beyond_is_found() {
        let mut memory = [0usize; 16];
        let start = &raw mut memory as usize;
        let end = start + size_of_val(&memory);
        let block = Block::<InHeader>::at(start + WORD);
        // SAFETY: the block lies in `memory`.
        unsafe {
            block.write(64);
            assert!(block.is_sound(end) && !block.is_live() && !block.is_live_of(64));
            assert!(block.live_units() > 1 << 48);
            block.revive();
            assert!(block.is_sound(end) && block.is_live());
            assert_eq!((block.size(), block.live_units()), (64, 4));
            assert_eq!(block.after().before(), block);
            assert_eq!([32, 48, 64, 80].map(|size| block.is_live_of(size)), [false, true, true, false]);
            block.mark(false);
            assert_eq!((block.is_marked(), block.unmark(), block.is_marked()), (true, (true, false), false));
            ((block.address() + 56) as *mut u8).write(b'!');
            assert!(!block.is_sound(end));
        }
    }
}
