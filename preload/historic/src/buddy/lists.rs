//! The lists of free blocks: one for each order, doubly linked, so that a buddy leaves its list in constant time.
//!
//! ```text
//!   heads [ 32 │ 64 │ 128 │ ... ]       a free block  ┌──────────────┐  ≡ 8 mod 16
//!            │                                        │ free │ order │
//!            ▼                                        ├──────────────┤
//!          block ⇄ block ⇄ none                       │ next         │
//!                                                     │ previous     │
//!                                                     │ (old)        │
//! ```

use heaptoll_runtime::{Damage, Region};

use crate::blocks::header::{Block, Fingerprint, Mark};
use crate::buddy::ORDERS;

const NEXT: usize = 1;
const PREVIOUS: usize = 2;

/// The heads, by order: addresses of headers, 0 for an empty list.
#[derive(Debug)]
pub struct Lists([usize; ORDERS]);

impl Lists {
    /// Nothing but empty lists.
    pub const fn new() -> Lists {
        Lists([0; ORDERS])
    }

    /// The first block of the smallest order from `order` on that has any, and that order.
    pub fn smallest(&self, order: usize) -> Option<(Block, usize)> {
        let (above, &head) = self.0.get(order..)?.iter().enumerate().find(|&(_, &head)| head != 0)?;
        Some((Block::at(head), order + above))
    }

    /// Makes a block free and the first of its order.
    ///
    /// # Safety
    /// The block is the heap's, has the order's size, and is in no list.
    pub unsafe fn insert(&mut self, block: Block, order: usize) {
        let head = self.0[order];
        // SAFETY: the block is the heap's, has the order's size, and is in no list, as this function requires; the head
        // is a free block, and the smallest has three words.
        unsafe {
            block.set(Mark::Free, order);
            block.set_word(NEXT, head);
            block.set_word(PREVIOUS, 0);
            if head != 0 {
                Block::at(head).set_word(PREVIOUS, block.address());
            }
        }
        self.0[order] = block.address();
    }

    /// Takes a block out of its list.
    ///
    /// # Safety
    /// The block is in the list of this order.
    pub unsafe fn remove(&mut self, block: Block, order: usize) {
        // SAFETY: the block is in the list of this order, as this function requires; its neighbours are free blocks.
        unsafe {
            let (next, previous) = (block.word(NEXT), block.word(PREVIOUS));
            if next != 0 {
                Block::at(next).set_word(PREVIOUS, previous);
            }
            match previous {
                0 => self.0[order] = next,
                previous => Block::at(previous).set_word(NEXT, next),
            }
        }
    }

    /// Verifies that the list of an order holds the free blocks a walk has found, and no others.
    ///
    /// # Errors
    /// What does not hold.
    pub fn check(&self, order: usize, found: Fingerprint, region: &Region) -> Result<(), Damage> {
        let mut listed = Fingerprint::EMPTY;
        let (mut at, mut before) = (self.0[order], 0);
        while at != 0 {
            let block = Block::at(at);
            // As many steps as there are free blocks, so that a circle ends.
            Damage::unless(listed.blocks() < found.blocks(), at, "a list has no more blocks than are free")?;
            let whole = region.contains(at) && at % 16 == 8 && region.contains(at + 24);
            Damage::unless(whole, at, "a list's links lead to blocks")?;
            listed.add(block);
            // SAFETY: its first three words lie in the region.
            unsafe {
                Damage::unless(
                    block.number(Mark::Free) == order,
                    at,
                    "a list's blocks are free and of its order",
                )?;
                Damage::unless(block.word(PREVIOUS) == before, at, "links are mutual")?;
                (at, before) = (block.word(NEXT), at);
            }
        }
        Damage::unless(listed == found, 0, "every free block is in the list of its order")
    }
}
