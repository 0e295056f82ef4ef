//! Binary buddies with coalescing: Knuth, *The Art of Computer Programming* vol. 1, §2.5, Algorithms R and S (Zorn
//! 1992 §3).
//!
//! - Blocks are powers of two, and lie at multiples of their size from the heap's base. A block of order k that is
//!   split gives two of order k - 1, each other's buddies; where a block's buddy is, is the exclusive-or of its
//!   offset and its size.
//! - There is one doubly linked list of free blocks for each order. A request takes the first block of the smallest
//!   order that has one and splits it down (R); a freed block is united with its buddy as long as that is free and
//!   whole (S).
//!
//! Knuth needs one bit in a reserved block, since the caller of his free passes its size. C's `free` does not: the
//! order is in the block too, so the tag is a word with mark and order ([`crate::blocks::header`]), and request and word are
//! rounded up to a power of two. A free block also holds two links: the smallest has 32 bytes.
//!
//! # One region that grows
//! Knuth's memory is 2^m words, or a sum of powers of two (§2.5, exercise 26); this heap grows. The base is one word
//! before the region's start, so that what the program is given lies at a multiple of the block's size from the start,
//! and is aligned like it as far as the start is. The block of 32 bytes at the base has no space for its header: it is
//! the heap's own, and live for ever by being outside.
//!
//! The heap's length is always a multiple of the page. If no list has a block for order k, it is extended to the end
//! of the block of order k that it ends in, if all of that block's part in the heap is free; else to the end of the
//! one after. What is new is cut into the largest blocks that lie at multiples of their sizes, and each is freed by
//! Algorithm S, which unites it with what was free before. A large request in a heap that ends badly for it can so cost
//! up to twice its block; the rest is free for smaller ones. A heap that begins with a block of a page or more always
//! ends badly, for the base is taken.
//!
//! realloc, which neither Knuth nor Zorn speak of, works in place where buddies can: a block that shrinks gives back
//! its upper halves; one that grows takes its upper buddies if they are free, as long as it is the lower one of each
//! pair.

mod heap;
mod lists;

pub use heap::Buddy;

use heaptoll_runtime::WORD;

/// The smallest order: a tag and two links, rounded up to a power of two.
pub const SMALLEST: usize = 5;

/// Orders are below: no address space is larger than 2^48 bytes.
pub const ORDERS: usize = 48;

/// The order of a request's block, which is at most `isize::MAX` bytes. May exceed [`ORDERS`].
#[inline(always)]
pub const fn order_for(bytes: usize) -> usize {
    // The logarithm of `bytes + WORD`, rounded up.
    ((bytes + WORD - 1) | (1 << (SMALLEST - 1))).ilog2() as usize + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_the_least_that_holds_request_and_tag() {
        for bytes in 0..70_000 {
            assert_eq!(1 << order_for(bytes), (bytes + WORD).next_power_of_two().max(32), "{bytes} bytes");
        }
        assert_eq!(order_for(isize::MAX as usize), 64);
    }
}
