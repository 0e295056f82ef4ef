//! Where malloc turns to when no list has a block: dirty blocks are coalesced, and then the system is asked.

use heaptoll_floor::{WORD, round_up};

use crate::bins::{FIRST, LAST, List};
use crate::{Block, Lea};

/// The heap grows by multiples of this, bytes.
const UNIT: usize = 8192;

impl Lea {
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
    pub(crate) fn coalesce_bin(&mut self, bin: usize, steps: &mut u64) {
        self.bin_remainder();
        // SAFETY: what is in a bin is free, and what was returned is given up; both are in no list then.
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
        // SAFETY: the caller's word; sentinels are live.
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
