//! Which addresses may be those of sampled blocks: a count for each group of addresses, so that the free of a block that
//! was not sampled costs a load and a comparison.
//!
//! Addresses of neighbouring blocks have one count, which keeps the counts that a program uses in the nearest cache. A
//! block is in the filter from before it is given to the program until before it goes back to the manager; programs pass
//! blocks between threads by something that synchronises, so no free can miss it. Blocks that are for another reason not
//! the manager's are in it as well (those of the bootstrap arena): the fast path of a free tests nothing else.
//!
//! A child of fork keeps the filter. Blocks that its parent had sampled pass it for ever, and are then not found.

use core::sync::atomic::{AtomicU8, Ordering};

/// Logarithm of the bytes of a group.
const GROUP: u32 = 8;
/// Bytes of a group.
pub const GROUP_BYTES: usize = 1 << GROUP;
/// Counts: addresses 16 MiB apart share one.
const COUNTS: usize = 1 << 16;

/// The counts. All zero: no block passes.
#[repr(C, align(4096))]
pub struct Filter {
    counts: [AtomicU8; COUNTS],
}

impl Filter {
    /// Without blocks.
    pub const fn new() -> Filter {
        Filter { counts: [const { AtomicU8::new(0) }; COUNTS] }
    }

    #[inline(always)]
    fn count(&self, block: usize) -> &AtomicU8 {
        &self.counts[(block >> GROUP) & (COUNTS - 1)]
    }

    /// Whether a block may have been sampled.
    #[inline(always)]
    pub fn may_hold(&self, block: usize) -> bool {
        self.count(block).load(Ordering::Relaxed) != 0
    }

    /// A block was sampled.
    pub fn add(&self, block: usize) {
        self.change(block, 1);
    }

    /// A sampled block is no longer one. A count that was full once stays so: the blocks of its group are searched for
    /// from then on.
    pub fn remove(&self, block: usize) {
        self.change(block, u8::MAX);
    }

    fn change(&self, block: usize, by: u8) {
        let changed = |count: u8| (count != u8::MAX).then(|| count.wrapping_add(by));
        // Full: nothing changes.
        let _ = self.count(block).fetch_update(Ordering::Relaxed, Ordering::Relaxed, changed);
    }
}

impl Default for Filter {
    fn default() -> Filter {
        Filter::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::boxed::Box;

    #[test]
    fn blocks_pass_while_they_are_in_it() {
        let filter = Box::new(Filter::new());
        let block = 0x7f12_3456_7890;
        assert!(!filter.may_hold(block));
        filter.add(block);
        filter.add(block + 16);
        assert!(filter.may_hold(block) && filter.may_hold(block + 16) && !filter.may_hold(block + 4096));
        filter.remove(block);
        assert!(filter.may_hold(block + 16));
        filter.remove(block + 16);
        assert!(!filter.may_hold(block));
    }

    #[test]
    fn a_full_count_stays_full() {
        let filter = Box::new(Filter::new());
        (0..300).for_each(|_| filter.add(64));
        (0..300).for_each(|_| filter.remove(64));
        assert!(filter.may_hold(64));
    }
}
