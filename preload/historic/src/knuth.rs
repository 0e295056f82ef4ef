//! Boundary tags, a doubly linked free list and first fit from a roving pointer: Knuth, *The Art of Computer
//! Programming* vol. 1, §2.5, as Zorn 1992 §2.1 describes the version he measured.
//!
//! - Both ends of each block carry its size and state, so a block that is freed finds whether its neighbours are free
//!   in constant time ([`Block`]).
//! - Free blocks form one circular list. A search begins at the rover, so that small blocks do not gather where it
//!   begins: at the block that was freed last, as Moraes has it, whose code Zorn measured.
//! - A block is split only if the rest is worth a block; the upper part is given out, so that the rest keeps its place
//!   in the list (Knuth's Algorithm A).
//!
//! The free list's search is a parameter ([`Fit`]): best fit is the same heap with another one.

pub mod bestfit;
mod heap;
mod list;

pub use crate::blocks::tags::{SMALLEST, TAGS};
pub use heap::TaggedHeap;
pub use list::FreeList;

/// A block with its state in both tags.
pub type Block = crate::blocks::tags::Block<crate::blocks::tags::BothEnds>;

/// How a free list is searched.
pub trait Fit: Send + 'static {
    /// The manager's name.
    const NAME: &'static str;

    /// A rest smaller than this, bytes, stays with the block that is given out. Zorn's version had 24 bytes, six words
    /// of its time; so 48 here.
    const SPLIT: usize = 48;

    /// Moraes' rover: the next search begins at the block that was freed last, and stays there unless an allocation
    /// leaves a larger block. Otherwise it begins after the block where the last one ended.
    const ROVES_TO_FREED: bool = false;

    /// A free block of at least `size` bytes, tags included, and how many blocks were visited.
    ///
    /// # Safety
    /// The list's blocks are free blocks of a sound heap.
    unsafe fn find(list: &FreeList, size: usize) -> (Option<Block>, u64);
}

/// First fit: the first block from the rover on that is large enough.
#[derive(Debug)]
pub enum FirstFit {}

impl Fit for FirstFit {
    const NAME: &'static str = "knuth";
    const ROVES_TO_FREED: bool = true;

    #[inline(always)]
    unsafe fn find(list: &FreeList, size: usize) -> (Option<Block>, u64) {
        let mut steps = 0;
        let mut block = list.rover();
        while !block.is_none() {
            steps += 1;
            // SAFETY: the list's blocks are free blocks of a sound heap, as `Fit::find` requires.
            unsafe {
                if block.free_size() >= size {
                    return (Some(block), steps);
                }
                block = block.next();
            }
            if block == list.rover() {
                break;
            }
        }
        (None, steps)
    }
}

/// Knuth's heap.
pub type Knuth = TaggedHeap<FirstFit>;
