//! A block with boundary tags: one word at each end with size and state (Knuth vol. 1 §2.5; Zorn 1992 §2.1).
//!
//! ```text
//!   address ≡ 8 mod 16   ┌──────────────┐
//!                        │ size │ state │  header
//!   given out, ≡ 0       ├──────────────┤
//!                        │ next         │  ┐ links, while it is free;
//!                        │ previous     │  ┘ the program's, while it is not
//!                        │ ...          │
//!                        ├──────────────┤
//!                        │ size │ state │  footer
//!                        └──────────────┘
//! ```

use heaptoll_runtime::{ALIGNMENT, WORD, round_up};

/// Bytes of a block that are its tags.
pub const TAGS: usize = 2 * WORD;

/// The smallest block, bytes: two tags and two links.
pub const SMALLEST: usize = 4 * WORD;

/// A tag is the size with this bit set while the program holds the block; the tag of a free block is its size.
const LIVE: usize = 1;
const SIZE: usize = !(ALIGNMENT - 1);

/// A block, by the address of its header. What it points to is as the file's head shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block(usize);

impl Block {
    /// No block: what an empty list's rover is.
    pub const NONE: Block = Block(0);

    /// The block whose header is at `address`.
    #[inline(always)]
    pub const fn at(address: usize) -> Block {
        Block(address)
    }

    /// The block that the program knows by `address`.
    #[inline(always)]
    pub const fn of_user(address: usize) -> Block {
        Block(address.wrapping_sub(WORD))
    }

    /// Its size for a request of `bytes`.
    #[inline(always)]
    pub const fn size_for(bytes: usize) -> usize {
        let size = round_up(bytes + TAGS, ALIGNMENT);
        if size < SMALLEST { SMALLEST } else { size }
    }

    /// Address of the header.
    #[inline(always)]
    pub const fn address(self) -> usize {
        self.0
    }

    /// What the program knows it by.
    #[inline(always)]
    pub const fn user(self) -> usize {
        self.0 + WORD
    }

    /// Whether it is [`Block::NONE`].
    #[inline(always)]
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    #[inline(always)]
    fn word(self, offset: usize) -> *mut usize {
        (self.0 + offset) as *mut usize
    }

    /// # Safety
    /// Here and below: the block's words at these offsets are the heap's memory. Tags are written before they are
    /// read, and links are read of free blocks only.
    #[inline(always)]
    unsafe fn header(self) -> usize {
        // SAFETY: the header's word is the heap's and written, as this function requires.
        unsafe { self.word(0).read() }
    }

    /// Bytes, tags included.
    ///
    /// # Safety
    /// See [`Block::write`]: it is a block of the heap.
    #[inline(always)]
    pub unsafe fn size(self) -> usize {
        // SAFETY: it is a block of the heap, as this function requires.
        unsafe { self.header() & SIZE }
    }

    /// Bytes of a block that is free.
    ///
    /// # Safety
    /// As [`Block::next`].
    #[inline(always)]
    pub unsafe fn free_size(self) -> usize {
        // SAFETY: it is a free block of the heap, as this function requires; a free block's tag is its
        // size.
        unsafe { self.header() }
    }

    /// Whether the program holds it.
    ///
    /// # Safety
    /// As [`Block::size`].
    #[inline(always)]
    pub unsafe fn is_live(self) -> bool {
        // SAFETY: it is a block of the heap, as this function requires.
        unsafe { self.header() & LIVE != 0 }
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
            let size = header & SIZE;
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

    /// Writes the one word that ends the heap, or begins it: a live block without a body, which stops coalescing.
    ///
    /// # Safety
    /// The word is the heap's.
    pub unsafe fn write_sentinel(self) {
        // SAFETY: the word is the heap's, as this function requires.
        unsafe { self.word(0).write(LIVE) };
    }

    /// The next block by address, perhaps the sentinel.
    ///
    /// # Safety
    /// As [`Block::size`].
    #[inline(always)]
    pub unsafe fn after(self) -> Block {
        // SAFETY: it is a block of the heap, as this function requires.
        Block(self.0 + unsafe { self.size() })
    }

    /// The block before it by address, if it is free.
    ///
    /// # Safety
    /// As [`Block::size`].
    #[inline(always)]
    pub unsafe fn free_before(self) -> Option<Block> {
        // SAFETY: the word before a header is the footer of the block before it, or the sentinel.
        let tag = unsafe { ((self.0 - WORD) as *const usize).read() };
        if tag & LIVE != 0 { None } else { Some(Block(self.0 - tag)) }
    }

    /// The next in the free list.
    ///
    /// # Safety
    /// It is a free block of the heap, here and below.
    #[inline(always)]
    pub unsafe fn next(self) -> Block {
        // SAFETY: it is a free block of the heap, as this function requires.
        Block(unsafe { self.word(WORD).read() })
    }

    /// The one before it in the free list.
    ///
    /// # Safety
    /// As [`Block::next`].
    #[inline(always)]
    pub unsafe fn previous(self) -> Block {
        // SAFETY: it is a free block of the heap, as this function requires.
        Block(unsafe { self.word(2 * WORD).read() })
    }

    /// Makes `next` follow `self` in the free list.
    ///
    /// # Safety
    /// As [`Block::next`], of both.
    #[inline(always)]
    pub unsafe fn link(self, next: Block) {
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
    fn sizes_hold_the_request_and_the_tags() {
        let sizes = [0, 1, 16, 17, 24, 32, 33].map(Block::size_for);
        assert_eq!(sizes, [32, 32, 32, 48, 48, 48, 64]);
    }

    #[test]
    fn tags_at_both_ends_agree_and_a_write_beyond_is_seen() {
        let mut memory = [0usize; 16];
        let start = &raw mut memory as usize;
        let end = start + size_of_val(&memory);
        let block = Block::at(start + WORD);
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
