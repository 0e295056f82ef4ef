//! The ledger: every live block's requested size, their sum, and the most that the sum has been.

use core::sync::atomic::Ordering::Relaxed;

use heaptoll_next::blocks::Blocks;
use heaptoll_next::family::fatal;
use heaptoll_statspage::Slot;

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

    /// A new block. One that is there already was given back past this layer.
    pub fn add(&mut self, block: usize, size: usize) {
        match self.sizes.insert(block, size) {
            Ok(lost) => self.live -= lost.unwrap_or(0) as u64,
            // Without this block every later figure would be wrong, and look right.
            Err(_) => fatal(c"heaptoll: the live layer has no memory left for its table of blocks\n"),
        }
        self.live += size as u64;
        self.high = self.high.max(self.live);
    }

    /// Takes a block out and gives its size; 0 for one that was made past this layer.
    pub fn remove(&mut self, block: usize) -> usize {
        let size = self.lift(block).unwrap_or(0);
        self.live -= size as u64;
        size
    }

    /// Takes a block out for the time of its resizing, in which its bytes stay live.
    pub fn lift(&mut self, block: usize) -> Option<usize> {
        self.sizes.remove(block)
    }

    /// The bytes of a lifted block are no longer live.
    pub fn settle(&mut self, size: usize) {
        self.live -= size as u64;
    }

    /// Puts a lifted block back as it was.
    pub fn put_back(&mut self, block: usize, size: usize) {
        self.settle(size);
        self.add(block, size);
    }

    /// Writes the sums to the statistics page.
    pub fn publish(&self, slot: &Slot) {
        slot.live_bytes.store(self.live, Relaxed);
        slot.live_high_bytes.store(self.high, Relaxed);
    }

    /// In a child of fork: what its parent once held is not the child's.
    pub fn begin_anew(&mut self) {
        self.high = self.live;
    }
}
