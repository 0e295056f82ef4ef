//! A block with a header of one word: its size.
//!
//! ```text
//!   address ≡ 8 mod 16   ┌──────────────┐
//!                        │ mark │ size  │  header
//!   given out, ≡ 0       ├──────────────┤
//!                        │ left         │  ┐ links of the tree, while it is free;
//!                        │ right        │  ┘ the program's, while it is not
//!                        │ up           │    left over by the alignment: for walks over the tree
//!                        │ ...          │
//!                        └──────────────┘
//! ```

use heaptoll_runtime::{ALIGNMENT, WORD, round_up};

/// Bytes of a block that are its header.
pub const HEADER: usize = WORD;

/// The smallest block, bytes: header and two links are three words, and sizes are multiples of two.
pub const SMALLEST: usize = 4 * WORD;

/// Marks a word as a header. Sizes are below 2^48, so the upper bits of the word are free for it; as all headers
/// have it, they compare as their sizes do.
const MARK: usize = 0x0ca5 << 48;

/// The sides of [`Block::child`].
pub(crate) const LEFT: bool = false;
pub(crate) const RIGHT: bool = true;

/// What "no block" points to: a header of no size, so that looking at a child needs no question whether it is there.
static NOTHING: usize = 0;

/// A block, by the address of its header. What it points to is as the file's head shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Block(*mut usize);

// SAFETY: it is an address; each access to the memory there has a SAFETY comment of its own.
unsafe impl Send for Block {}

impl Block {
    /// No block: an empty tree, or a child that is not there. It weighs less than any other, and is never written.
    pub const NONE: Block = Block((&raw const NOTHING).cast_mut());

    /// The block whose header is at `address`.
    #[inline(always)]
    pub const fn at(address: usize) -> Block {
        Block(address as *mut usize)
    }

    /// The block that the program knows by `address`.
    #[inline(always)]
    pub const fn of_user(address: usize) -> Block {
        Block::at(address - HEADER)
    }

    /// Its size for a request of `bytes`.
    #[inline(always)]
    pub const fn size_for(bytes: usize) -> usize {
        let size = round_up(bytes + HEADER, ALIGNMENT);
        if size < SMALLEST { SMALLEST } else { size }
    }

    /// The header of a block of `size` bytes; grows with the size.
    #[inline(always)]
    pub const fn header_for(size: usize) -> usize {
        MARK + size
    }

    /// Address of the header.
    #[inline(always)]
    pub fn address(self) -> usize {
        self.0 as usize
    }

    /// What the program knows it by.
    #[inline(always)]
    pub fn user(self) -> usize {
        self.address() + HEADER
    }

    /// Whether it is [`Block::NONE`].
    #[inline(always)]
    pub fn is_none(self) -> bool {
        self == Block::NONE
    }

    #[inline(always)]
    fn word(self, index: usize) -> *mut usize {
        self.0.wrapping_add(index)
    }

    /// The header, for comparisons of size: 0 for no block, less than any other's.
    ///
    /// # Safety
    /// Here and below: its first word is the heap's memory, and its header was written; of a free block this holds
    /// for its first four words.
    #[inline(always)]
    pub unsafe fn weight(self) -> usize {
        // SAFETY: its first word is the heap's memory, and its header was written; of a free block this holds for its
        // first four words, as this function requires.
        unsafe { self.word(0).read() }
    }

    /// Bytes, header included.
    ///
    /// # Safety
    /// As [`Block::weight`]; it is a block.
    #[inline(always)]
    pub unsafe fn size(self) -> usize {
        // SAFETY: its first word is the heap's memory, and its header was written; of a free block this holds for its
        // first four words, as this function requires.
        unsafe { self.word(0).read() }.wrapping_sub(MARK)
    }

    /// Whether the header is valid, and its block may lie there in a heap whose blocks end at `end`.
    ///
    /// # Safety
    /// The header's word is in the heap.
    #[inline(always)]
    pub unsafe fn is_sound(self, end: usize) -> bool {
        // SAFETY: the header's word is in the heap, as this function requires. A header without the mark gives a size
        // beyond any end.
        let size = unsafe { self.size() };
        size.is_multiple_of(ALIGNMENT) && size >= SMALLEST && size <= end - self.address()
    }

    /// Writes the header.
    ///
    /// # Safety
    /// `size` bytes from it on are the heap's, a multiple of the alignment, and in no other block.
    #[inline(always)]
    pub unsafe fn write(self, size: usize) {
        // SAFETY: `size` bytes from it on are the heap's, a multiple of the alignment, and in no other block, as this
        // function requires.
        unsafe { self.word(0).write(Block::header_for(size)) };
    }

    /// The next block by address, or the end of all.
    ///
    /// # Safety
    /// As [`Block::size`].
    #[inline(always)]
    pub unsafe fn after(self) -> Block {
        // SAFETY: its first word is the heap's memory, and its header was written; of a free block this holds for its
        // first four words, as this function requires.
        Block(self.0.wrapping_byte_add(unsafe { self.size() }))
    }

    /// Where its left child is noted, or its right one.
    #[inline(always)]
    pub(crate) fn child(self, right: bool) -> *mut Block {
        self.word(1 + right as usize).cast()
    }

    /// The largest block below it at lower addresses, or none.
    ///
    /// # Safety
    /// It is a free block of the heap, here and below.
    #[inline(always)]
    pub unsafe fn left(self) -> Block {
        // SAFETY: it is a free block of the heap, as this function requires.
        unsafe { self.child(LEFT).read() }
    }

    /// The largest block below it at higher addresses, or none.
    ///
    /// # Safety
    /// As [`Block::left`].
    #[inline(always)]
    pub unsafe fn right(self) -> Block {
        // SAFETY: it is a free block of the heap, as this function requires.
        unsafe { self.child(RIGHT).read() }
    }

    /// What a walk noted: the block it hangs below. Means nothing outside of one.
    ///
    /// # Safety
    /// As [`Block::left`].
    pub(crate) unsafe fn up(self) -> Block {
        // SAFETY: it is a free block of the heap, as this function requires.
        unsafe { self.word(3).cast::<Block>().read() }
    }

    /// # Safety
    /// As [`Block::left`].
    pub(crate) unsafe fn set_up(self, up: Block) {
        // SAFETY: it is a free block of the heap, as this function requires.
        unsafe { self.word(3).cast::<Block>().write(up) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_hold_the_request_and_the_header() {
        let sizes = [0, 1, 24, 25, 40, 41].map(Block::size_for);
        assert_eq!(sizes, [32, 32, 32, 48, 48, 64]);
    }

    #[test]
    fn headers_compare_as_sizes_do_the_impossible_ones_too() {
        let headers =
            [0, 32, 48, 1 << 47, 1 << 48, (1 << 48) + 16, isize::MAX as usize & !15].map(Block::header_for);
        assert!(headers.is_sorted() && headers[0] > 0);
    }

    #[test]
    fn a_header_is_sound_only_with_the_mark_and_a_possible_size() {
        let mut memory = [0usize; 16];
        let start = &raw mut memory as usize;
        let block = Block::at(start);
        let end = start + size_of_val(&memory);
        let sound = |word: usize| {
            // SAFETY: the block lies in `memory`.
            unsafe {
                block.word(0).write(word);
                block.is_sound(end)
            }
        };
        assert!(sound(Block::header_for(32)) && sound(Block::header_for(128)));
        for odd in [0, 32, 128, usize::MAX].into_iter().chain([0, 16, 40, 144].map(Block::header_for)) {
            assert!(!sound(odd), "{odd:#x}");
        }
    }
}
