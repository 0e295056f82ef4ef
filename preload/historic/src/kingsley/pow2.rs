//! Segregated powers of two that are split in halves and never combined: the allocator that Boehm takes as his
//! example ("An allocation algorithm", in *Memory Allocation Myths and Half-Truths*).
//!
//! One word of a block is taken for its size; request and word are rounded up to a power of two. malloc takes the first
//! block of its list. If there is none it takes one from the first list of larger blocks that has any, splits it in
//! two, and goes on with one half down to the size wanted; if there is none either, memory is requested from the
//! system. free puts the block on its list. All but the splitting is Kingsley's heap, which see ([`ClassHeap`]).
//!
//! # The bound
//! Boehm's analysis gives for each size at most one block more than was ever in use at once. Written out:
//!
//! > mapped bytes ≤ Σ over the classes ever in use (most blocks in use at once + 1) x block size + one OS chunk
//!
//! with the OS chunk P = 4096 bytes, and it holds here to the byte, headers, rounding and the words at the region's
//! ends included, because of how the chunk is chosen:
//!
//! - Exactly one block is requested from the system: of the size wanted, or of P bytes if that is larger.
//! - The first page has no space for a header before its first block (see `crate::blocks::header`). It is laid out as if a
//!   block of P bytes had been split down to the smallest, 16 bytes, and that one were the manager's for ever: it
//!   stands for the word lost at the region's start and the one kept at its end. So one free block of each size from 16
//!   to 2048 is left, and the memory mapped is the sum of all blocks and those 16 bytes.
//!
//! Proof. Call blocks of a class c that are in use or free its *population* n(c), those in use at most at once m(c).
//! (1) n(c) ≤ m(c) + 1 always: n(c) grows only by a split of a larger block, which happens only while no block of c
//! is free (malloc stops at the first list that has one), and leaves two more, of which one is handed out or split
//! on; or by a block from the system, when none is free either, which is handed out or split. So after each step that
//! adds to it n(c) is at most one more than in use then. Blocks never change class but by being split. The first page
//! adds at most one block to each class while all are empty.
//! (2) Let L be the largest class ever in use. If its blocks have at least P bytes, there are no larger ones, so none
//! of L came from a split: n(L) ≤ m(L), and the spared block of L outweighs one block of each smaller class that was
//! never in use, 16 bytes at least to spare: those of the first page. If they have less, the classes never in use
//! have together at most P - 16 bytes: blocks of P bytes are split as soon as they come. That, and the 16 bytes of the
//! first page, are the chunk in the bound.
//!
//! realloc therefore moves a block that shrinks to a smaller class: to split it where it is would add free blocks to
//! classes that have some. An aligned request is a block of the class of size and alignment together.

use crate::blocks::header::Block;
use crate::kingsley::{ClassHeap, Refill, SMALLEST, UNATTAINABLE, class_for, size_of_class};
use heaptoll_runtime::PAGE;

/// The least that is requested from the system, bytes.
pub const CHUNK: usize = PAGE;

/// A larger block split in halves, or memory from the system.
#[derive(Debug)]
pub enum Split {}

impl Refill for Split {
    const NAME: &'static str = "pow2";

    fn refill(heap: &mut ClassHeap<Self>, class: usize) -> Option<()> {
        if heap.is_fresh() {
            let at = heap.extend(CHUNK, SMALLEST)?;
            // The rest of a chunk that was split down to its first, smallest block: of each size one, as far from the
            // chunk's start as it is large.
            let sizes = (0..UNATTAINABLE).map(|class| (class, size_of_class(class)));
            for (class, size) in sizes.take_while(|&(_, size)| size < CHUNK) {
                // SAFETY: the bytes are new, and these blocks are all there are.
                unsafe { heap.put(Block::at(at + size), class) };
            }
        }
        // A list for larger blocks comes before the system.
        let larger = (class..UNATTAINABLE).find_map(|class| Some((heap.take(class)?, class)));
        let (block, mut have) = match larger {
            Some(found) => found,
            None => {
                let size = size_of_class(class).max(CHUNK);
                (Block::at(heap.extend(size, 0)?), class_of_block(size))
            }
        };
        while have > class {
            have -= 1;
            // SAFETY: the upper half of a block that is in no list.
            unsafe { heap.put(Block::at(block.address() + size_of_class(have)), have) };
        }
        // SAFETY: the block is in no list, and has the class's size now.
        unsafe { heap.put(block, class) };
        Some(())
    }
}

/// The class whose blocks have exactly `size` bytes.
const fn class_of_block(size: usize) -> usize {
    class_for(size - size_of::<usize>())
}

/// Boehm's heap.
pub type Pow2 = ClassHeap<Split>;
