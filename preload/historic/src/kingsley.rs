//! Powers of two less a header word: Chris Kingsley's malloc of 1982, which came with 4.2BSD (Zorn 1992 §2.1) and, in
//! a variant, with DEC's Ultrix (Detlefs 1994, Table III).
//!
//! - A request and its header word are rounded up to a power of two. Each size has one free list; malloc takes its
//!   first block, free puts the block back. Nothing is ever split or coalesced.
//! - An empty list is refilled with one page from the system, carved into blocks of the one size, or with one block
//!   of the larger sizes.
//! - realloc keeps a block where its size stays the same, and moves it otherwise, to a smaller one too.
//!
//! What the papers leave open, from the sources of 4.2BSD and 4.3BSD: the header holds the number of the size and a
//! magic number; 4.2BSD refills by 2 KiB, 4.3BSD by a page. Ours is a page of 4 KiB, which is also Ultrix's on the
//! MIPS machines that Detlefs measured; that Ultrix refilled like 4.3BSD is a guess.
//!
//! Three things differ. The class is found by one instruction, where 4.2BSD shifts in a loop. The free list's link lies
//! after the header instead of over it, so that the header of a freed block still gives its state and size: a double
//! free is distinguished from a foreign address, and the heap can be walked. It costs one store in free. And realloc of
//! a block that is free already, which the original served by a search of its lists, is a double free here.
//!
//! How lists are refilled is a parameter ([`Refill`]): Boehm's splitting heap is the same with another one.

mod class;
mod heap;
mod lists;
pub mod pow2;

pub use class::{CLASSES, SMALLEST, UNATTAINABLE, class_for, size_of_class};
pub use heap::ClassHeap;

use heaptoll_runtime::PAGE;

use crate::blocks::header::Block;

/// Where blocks come from when their list is empty.
pub trait Refill: Sized + Send + 'static {
    /// The manager's name.
    const NAME: &'static str;

    /// Puts at least one block on the empty list of `class`. `None` when the system gives no more; whatever lists
    /// have gained by then is sound.
    fn refill(heap: &mut ClassHeap<Self>, class: usize) -> Option<()>;
}

/// A page of blocks of the one size, or one block of the larger sizes.
#[derive(Debug)]
pub enum Carve {}

impl Refill for Carve {
    const NAME: &'static str = "kingsley";

    fn refill(heap: &mut ClassHeap<Self>, class: usize) -> Option<()> {
        let size = size_of_class(class);
        let mut bytes = size.max(PAGE);
        // Blocks begin one word before a page boundary. The first page of all lacks that word, and so its first
        // block: as the original lost what there was up to the first boundary.
        let mut lost = 0;
        if heap.is_fresh() {
            lost = size.min(PAGE);
            if size >= PAGE {
                bytes += PAGE;
            }
        }
        let at = heap.extend(bytes, lost)?;
        // From the end, so that the list is in order of address.
        let mut block = at + bytes;
        while block > at + lost {
            block -= size;
            // SAFETY: the bytes are new, and in no other block.
            unsafe { heap.put(Block::at(block), class) };
        }
        Some(())
    }
}

/// Kingsley's heap.
pub type Kingsley = ClassHeap<Carve>;
