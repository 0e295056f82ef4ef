//! A block by the address of its header, and what both kinds of tags have in common.

use core::marker::PhantomData;

use heaptoll_runtime::{ALIGNMENT, WORD, round_up};

/// Bytes of a block that are its tags.
pub const TAGS: usize = 2 * WORD;

/// The smallest block, bytes: two tags and two links.
pub const SMALLEST: usize = 4 * WORD;

/// The bit of a tag that is set while the program holds the block.
pub(crate) const LIVE: usize = 1;

/// What tags contain.
pub trait Tags: Copy {
    /// The bits of a tag that are the size, bytes, tags included.
    const SIZE: usize;
    /// The one word that ends a heap, or begins it: of a live block, so that no block is coalesced beyond it.
    const SENTINEL: usize;
}

/// A block, by the address of its header. What it points to is as the module's head shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block<T>(pub(crate) usize, PhantomData<T>);

impl<T: Tags> Block<T> {
    /// No block.
    pub const NONE: Block<T> = Block::at(0);

    /// The block whose header is at `address`.
    #[inline(always)]
    pub const fn at(address: usize) -> Block<T> {
        Block(address, PhantomData)
    }

    /// The block that the program knows by `address`.
    #[inline(always)]
    pub const fn of_user(address: usize) -> Block<T> {
        Block::at(address.wrapping_sub(WORD))
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
        self.0.wrapping_add(WORD)
    }

    /// Whether it is [`Block::NONE`].
    #[inline(always)]
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    #[inline(always)]
    pub(crate) const fn word(self, offset: usize) -> *mut usize {
        (self.0 + offset) as *mut usize
    }

    /// # Safety
    /// Here and below, unless stated otherwise: it is a block of the heap, its tags written.
    #[inline(always)]
    pub(crate) unsafe fn header(self) -> usize {
        // SAFETY: it is a block of the heap, its tags written, as this function requires.
        unsafe { self.word(0).read() }
    }

    /// The footer of the block before it by address, or the sentinel.
    ///
    /// # Safety
    /// As [`Block::size`].
    #[inline(always)]
    pub(crate) unsafe fn footer_before(self) -> usize {
        // SAFETY: the word before a header is the footer of the block before it, or the sentinel.
        unsafe { ((self.0 - WORD) as *const usize).read() }
    }

    /// Bytes, tags included.
    ///
    /// # Safety
    /// It is a block of the heap.
    #[inline(always)]
    pub unsafe fn size(self) -> usize {
        // SAFETY: it is a block of the heap, as this function requires.
        unsafe { self.header() & T::SIZE }
    }

    /// Whether the program holds it, or it is in a list whose blocks pass for live.
    ///
    /// # Safety
    /// As [`Block::size`].
    #[inline(always)]
    pub unsafe fn is_live(self) -> bool {
        // SAFETY: it is a block of the heap, as this function requires.
        unsafe { self.header() & LIVE != 0 }
    }

    /// Writes the one word that ends the heap, or begins it, which stops coalescing.
    ///
    /// # Safety
    /// The word is the heap's.
    pub unsafe fn write_sentinel(self) {
        // SAFETY: the word is the heap's, as this function requires.
        unsafe { self.word(0).write(T::SENTINEL) };
    }

    /// The next block by address, perhaps the sentinel.
    ///
    /// # Safety
    /// As [`Block::size`].
    #[inline(always)]
    pub unsafe fn after(self) -> Block<T> {
        // SAFETY: it is a block of the heap, as this function requires.
        Block::at(self.0 + unsafe { self.size() })
    }

    /// The next in a list.
    ///
    /// # Safety
    /// It is in the list.
    #[inline(always)]
    pub unsafe fn next(self) -> Block<T> {
        // SAFETY: it is in the list, as this function requires.
        Block::at(unsafe { self.word(WORD).read() })
    }
}

#[cfg(test)]
mod tests {
    use crate::blocks::tags::{Block, BothEnds, InHeader};

    #[test]
    fn sizes_hold_the_request_and_the_tags() {
        let requests = [0, 1, 16, 17, 24, 32, 33];
        let sizes = [32, 32, 32, 48, 48, 48, 64];
        assert_eq!(requests.map(Block::<BothEnds>::size_for), sizes);
        assert_eq!(requests.map(Block::<InHeader>::size_for), sizes);
    }
}
