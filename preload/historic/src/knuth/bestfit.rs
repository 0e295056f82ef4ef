//! Best fit over boundary tags: the smallest free block that is large enough.
//!
//! Zorn 1992 §3 reports two comparisons with it. Knuth found first fit better than best fit in all his simulations;
//! Korn and Vo 1985 found the best-fit allocators sparing with memory and took them as the mark that Stephenson's
//! tree comes near. Neither gives a data structure, so this is the plain one: the heap of [`crate::knuth`] to the
//! letter (tags, circular list, coalescing, splitting from 48 bytes on, the upper part given out), with another
//! search. Whatever differs between `knuth` and `bestfit` in a measurement is the fit's doing.
//!
//! Decided here, where no source decides it:
//! - A search ends early at a block of exactly the wanted size: there is no better one.
//! - Of several blocks of the best size it takes the first from the rover on. Blocks are freed to the place a search
//!   comes to last, so that of equals the one that has been free for long is taken before the one just freed.
//! - The search is of the whole list. An index by size would be faster, and another algorithm: the time of such
//!   searches is what the roving pointer and the Cartesian tree were invented against.

use crate::knuth::{Block, Fit, FreeList, TaggedHeap};

/// Best fit: the smallest block that is large enough.
#[derive(Debug)]
pub enum BestFit {}

impl Fit for BestFit {
    const NAME: &'static str = "bestfit";

    #[inline(always)]
    unsafe fn find(list: &FreeList, size: usize) -> (Option<Block>, u64) {
        let mut best = None;
        let mut best_size = usize::MAX;
        let mut steps = 0;
        // SAFETY: the list's blocks are free blocks of a sound heap, as `Fit::find` requires.
        for block in unsafe { list.blocks() } {
            steps += 1;
            // SAFETY: `blocks` yields free blocks of the list.
            let has = unsafe { block.free_size() };
            if has >= size && has < best_size {
                (best, best_size) = (Some(block), has);
                if has == size {
                    break;
                }
            }
        }
        (best, steps)
    }
}

/// Knuth's heap with best fit.
pub type BestFitHeap = TaggedHeap<BestFit>;
