//! The ledger: the requested size of every live block, their sum, and its high-water mark.

use core::sync::atomic::Ordering::Relaxed;

use heaptoll_next::blocks::Blocks;
use heaptoll_next::family::fatal;
use heaptoll_stats_page::Slot;

/// Requested sizes of live blocks.
pub struct Ledger {
    sizes: Blocks,
    live: u64,
    high: u64,
}

impl Ledger {
    /// No blocks.
    pub const fn new() -> Ledger {
        Ledger { sizes: Blocks::new(), live: 0, high: 0 }
    }

    /// Adds a new block. One that is there already was freed without this layer.
    pub fn add(&mut self, block: usize, size: usize) {
        match self.sizes.insert(block, size) {
            Ok(lost) => self.live -= lost.unwrap_or(0) as u64,
            // Without this block every later figure would be wrong, and appear right.
            Err(_) => fatal(c"heaptoll: the live layer has no memory left for its table of blocks\n"),
        }
        self.live += size as u64;
        self.high = self.high.max(self.live);
    }

    /// Removes a block and returns its size; 0 for one that was allocated without this layer.
    pub fn remove(&mut self, block: usize) -> usize {
        let size = self.lift(block).unwrap_or(0);
        self.live -= size as u64;
        size
    }

    /// Removes a block while it is resized; its bytes stay live.
    pub fn lift(&mut self, block: usize) -> Option<usize> {
        self.sizes.remove(block)
    }

    /// Subtracts the bytes of a lifted block.
    pub fn settle(&mut self, size: usize) {
        self.live -= size as u64;
    }

    /// Adds a lifted block again, unchanged.
    pub fn put_back(&mut self, block: usize, size: usize) {
        self.settle(size);
        self.add(block, size);
    }

    /// Writes the sums to the statistics page.
    pub fn publish(&self, slot: &Slot) {
        slot.live_bytes.store(self.live, Relaxed);
        slot.live_high_bytes.store(self.high, Relaxed);
    }

    /// Resets the high-water mark to the current sum, in a child of fork: the parent's mark is not the child's.
    pub fn reset_high_water_mark(&mut self) {
        self.high = self.live;
    }
}
