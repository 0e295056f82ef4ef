//! Where malloc searches for space, one phase after the other: dirty blocks, returned ones, clean ones, coalesced dirty
//! ones, and the system.

use heaptoll_runtime::{WORD, round_up};

use crate::lea::bins::{FIRST, LAST, List};
use crate::lea::{Bins, Block, Lea, SMALLEST};

/// The heap grows by multiples of this, bytes.
const UNIT: usize = 8192;

impl Lea {
    /// A dirty block of the bin that fits exactly. If there are only others, they and all that was returned are
    /// coalesced: the heap looks too fragmented to go through them again.
    ///
    /// # Safety
    /// The bin is a large size's.
    pub(crate) unsafe fn dirty_of(&mut self, bin: usize, size: usize, steps: &mut u64) -> Option<Block> {
        let first = self.bins.first(List::dirty(bin));
        let mut next = first;
        while let Some(block) = next {
            *steps += 1;
            // SAFETY: bins have free blocks of the heap only.
            unsafe {
                if block.size().wrapping_sub(size) < SMALLEST {
                    self.bins.remove(block);
                    block.revive();
                    return Some(block);
                }
                next = Bins::next(block);
            }
        }
        if first.is_some() {
            self.coalesce_bin(bin, steps);
        }
        None
    }

    /// A returned block that fits exactly; those before it are put into their bins.
    pub(crate) fn settle_until(&mut self, size: usize, steps: &mut u64) -> Option<Block> {
        while let Some(block) = self.next_returned() {
            *steps += 1;
            // SAFETY: `next_returned` has found it to be a block that is live by its tags.
            unsafe {
                if block.is_live_of(size) {
                    return Some(block);
                }
                block.retire();
                self.bins.insert_dirty(block);
            }
        }
        None
    }

    /// A clean block of the bin that is large enough, the oldest first: nothing was there to coalesce it with.
    ///
    /// # Safety
    /// None beyond a sound heap.
    pub(crate) unsafe fn clean_of(&self, bin: usize, size: usize, steps: &mut u64) -> Option<Block> {
        let mut next = self.bins.last(List::clean(bin));
        while let Some(block) = next {
            // SAFETY: bins have free blocks of the heap only.
            unsafe {
                if block.size() >= size {
                    return next;
                }
                next = Bins::previous(block);
            }
            *steps += 1;
        }
        None
    }

    /// A free, clean block of at least `size` bytes, in no list. Dirty blocks are coalesced until there is one, bin by
    /// bin from where this ended the last time.
    pub(crate) fn find_space(&mut self, size: usize, steps: &mut u64) -> Option<Block> {
        self.bin_remainder();
        self.bins.lower_top();
        let origin = self.rover;
        loop {
            while let Some(block) = self.bins.last(List::dirty(self.rover)) {
                *steps += 1;
                // SAFETY: what is in a bin is free, and so is what it becomes.
                unsafe {
                    self.bins.remove(block);
                    let block = self.coalesce(block);
                    if block.size() >= size {
                        return Some(block);
                    }
                    self.bins.insert_clean(block);
                }
            }
            self.rover = if self.rover == FIRST { LAST } else { self.rover - 1 };
            if self.rover == origin {
                return self.grow(size);
            }
        }
    }

    /// Coalesces the dirty blocks of a bin, and all that was returned.
    fn coalesce_bin(&mut self, bin: usize, steps: &mut u64) {
        self.bin_remainder();
        // SAFETY: what is in a bin is free, and what was returned is the heap's again; both are in no list then.
        unsafe {
            while let Some(block) = self.bins.last(List::dirty(bin)) {
                *steps += 1;
                self.bins.remove(block);
                let block = self.coalesce(block);
                self.bins.insert_clean(block);
            }
            while let Some(block) = self.next_returned() {
                *steps += 1;
                block.retire();
                let block = self.coalesce(block);
                self.bins.insert_clean(block);
            }
        }
    }

    /// Makes a block one with all free blocks before and behind it.
    ///
    /// # Safety
    /// It is free and in no list, and every other free block is in a bin.
    unsafe fn coalesce(&mut self, block: Block) -> Block {
        // SAFETY: it is free and in no list, and every other free block is in a bin, as this function requires;
        // sentinels are live.
        unsafe {
            let (mut start, mut end) = (block.before(), block.after());
            while !start.is_live() {
                self.bins.remove(start);
                start = start.before();
            }
            while !end.is_live() {
                self.bins.remove(end);
                end = end.after();
            }
            let whole = start.after();
            whole.write(end.address() - whole.address());
            whole
        }
    }

    /// New memory as a free block, one with a free block at the heap's end.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, size: usize) -> Option<Block> {
        let fresh = self.region.start() == self.region.end();
        let bytes = round_up(size + 2 * WORD, UNIT);
        let at = self.region.grow(bytes)?.as_ptr() as usize;
        // SAFETY: the bytes are new, and the heap's; what lies before them is sound.
        unsafe {
            Block::at(self.region.end() - WORD).write_sentinel();
            if fresh {
                // One word before all blocks puts their headers at 8 mod 16, where they leave them aligned.
                Block::at(at).write_sentinel();
                let block = Block::at(at + WORD);
                block.write(bytes - 2 * WORD);
                return Some(block);
            }
            // The old sentinel becomes the header.
            let block = Block::at(at - WORD);
            block.write(bytes);
            Some(self.coalesce(block))
        }
    }
}
