//! The free lists: one for each class, singly linked, last in first out.
//!
//! ```text
//!   heads  [ 16 │ 32 │ 64 │ ... ]      a free block   ┌──────────────┐  ≡ 8 mod 16
//!             │                                       │ free │ class │
//!             ▼                                       ├──────────────┤
//!           block ─▶ block ─▶ none                    │ next         │
//!                                                     │ (old)        │
//! ```

use heaptoll_runtime::{Damage, Region};

use crate::blocks::header::{Block, Fingerprint, Mark};
use crate::kingsley::CLASSES;

/// The heads, by class: addresses of headers, 0 for an empty list.
#[derive(Debug)]
pub struct Lists([usize; CLASSES]);

impl Lists {
    /// Nothing but empty lists.
    pub const fn new() -> Lists {
        Lists([0; CLASSES])
    }

    /// Takes the first block of a class. Its header is still that of a free block.
    ///
    /// # Safety
    /// The heap is sound.
    #[inline(always)]
    pub unsafe fn pop(&mut self, class: usize) -> Option<Block> {
        let head = self.0[class];
        if head == 0 {
            return None;
        }
        let block = Block::at(head);
        // SAFETY: `push` links free blocks by their word 1, and `block` is the first of a list.
        self.0[class] = unsafe { block.word(1) };
        Some(block)
    }

    /// Makes a block free and the first of its class.
    ///
    /// # Safety
    /// The block is the heap's, has the class's size, and is in no list.
    #[inline(always)]
    pub unsafe fn push(&mut self, block: Block, class: usize) {
        // SAFETY: the block is the heap's, has the class's size, and is in no list, as this function requires; the
        // smallest block has two words.
        unsafe {
            block.set(Mark::Free, class);
            block.set_word(1, self.0[class]);
        }
        self.0[class] = block.address();
    }

    /// Verifies that the list of a class holds the free blocks a walk has found, and no others.
    ///
    /// # Errors
    /// What does not hold.
    pub fn check(&self, class: usize, found: Fingerprint, region: &Region) -> Result<(), Damage> {
        let mut listed = Fingerprint::EMPTY;
        let mut at = self.0[class];
        while at != 0 {
            let block = Block::at(at);
            // As many steps as there are free blocks, so that a circle ends.
            Damage::unless(listed.blocks() < found.blocks(), at, "a list has no more blocks than are free")?;
            Damage::unless(region.contains(at) && at % 16 == 8, at, "a list's links lead to blocks")?;
            listed.add(block);
            // SAFETY: it lies in the region, whose last word is never the start of a block but can be read.
            unsafe {
                Damage::unless(
                    block.number(Mark::Free) == class,
                    at,
                    "a list's blocks are free and of its class",
                )?;
                at = if region.contains(block.user()) { block.word(1) } else { 0 };
            }
        }
        Damage::unless(listed == found, 0, "every free block is in the list of its class")
    }
}
