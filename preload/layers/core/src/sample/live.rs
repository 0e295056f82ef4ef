//! The sampled blocks that are live: a table from addresses to sizes and call stacks, without a lock.
//!
//! The table is a row of levels, each four times as large as the one before. An address has one bucket of eight slots in
//! each, and takes the first free slot of the first of them that has one; a search looks through its buckets of all levels
//! that were ever used. So a slot that becomes free is free for any address of its bucket: nothing is moved, and no mark
//! of a removed block stays.
//!
//! A block is inserted by the thread that allocates it and removed by the one that frees it; others only compare
//! addresses. Addresses are stored inverted: a collector below scans this memory, and would take them for pointers.

use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// Slots of a bucket: their addresses are one cache line.
const SLOTS: usize = 8;
/// Logarithm of the buckets of the first level.
const FIRST: u32 = 7;
const LEVELS: usize = 6;
/// 128, 512, ... buckets: a geometric series.
const BUCKETS: usize = (1 << FIRST) * ((1 << (2 * LEVELS)) - 1) / 3;
/// A slot that is being filled; no inverted address of a program.
const CLAIMED: usize = 1;

/// What is known of a sampled block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveSample {
    /// Requested bytes.
    pub bytes: usize,
    /// Number of its call stack.
    pub site: u32,
}

#[repr(C, align(64))]
struct Bucket {
    /// 0: free.
    addresses: [AtomicUsize; SLOTS],
    bytes: [AtomicUsize; SLOTS],
    sites: [AtomicU32; SLOTS],
}

/// The table. All zero: empty. It is large, and takes memory where it is used only.
#[repr(C)]
pub struct Live {
    /// Levels that have been used.
    levels: AtomicUsize,
    buckets: [Bucket; BUCKETS],
}

/// There is no free slot for this address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full;

impl Live {
    /// The bucket of an address in a level.
    fn bucket(&self, block: usize, level: usize) -> &Bucket {
        let bits = FIRST + 2 * level as u32;
        let before = (1 << FIRST) * ((1 << (2 * level)) - 1) / 3;
        // Multiplied twice, so that blocks at equal distances do not meet in few buckets; and other bits for each level, so
        // that those that meet in one do not meet in the next.
        let mixed = (block >> 4).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mixed = (mixed ^ mixed >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93).rotate_left(11 * level as u32);
        &self.buckets[before + (mixed >> (usize::BITS - bits))]
    }

    /// Inserts a block, which is not in it.
    ///
    /// # Errors
    /// [`Full`]: its buckets are.
    pub fn insert(&self, block: usize, sample: LiveSample) -> Result<(), Full> {
        for level in 0..LEVELS {
            let bucket = self.bucket(block, level);
            for (at, address) in bucket.addresses.iter().enumerate() {
                if address.load(Ordering::Relaxed) != 0
                    || address.compare_exchange(0, CLAIMED, Ordering::Acquire, Ordering::Relaxed).is_err()
                {
                    continue;
                }
                bucket.bytes[at].store(sample.bytes, Ordering::Relaxed);
                bucket.sites[at].store(sample.site, Ordering::Relaxed);
                self.levels.fetch_max(level + 1, Ordering::Relaxed);
                address.store(!block, Ordering::Release);
                return Ok(());
            }
        }
        Err(Full)
    }

    /// Removes a block; `None` when it is not in it.
    pub fn remove(&self, block: usize) -> Option<LiveSample> {
        for level in 0..self.levels.load(Ordering::Relaxed).min(LEVELS) {
            let bucket = self.bucket(block, level);
            for (at, address) in bucket.addresses.iter().enumerate() {
                if address.load(Ordering::Acquire) == !block {
                    let sample = LiveSample {
                        bytes: bucket.bytes[at].load(Ordering::Relaxed),
                        site: bucket.sites[at].load(Ordering::Relaxed),
                    };
                    address.store(0, Ordering::Release);
                    return Some(sample);
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    fn table() -> &'static Live {
        let memory = heaptoll_next::memory::map_wiped_in_child(size_of::<Live>()).unwrap();
        // SAFETY: new zeroed memory of this size, for which all zeroes is valid, and which is never unmapped.
        unsafe { memory.cast::<Live>().as_ref() }
    }

    fn sample(bytes: usize) -> LiveSample {
        LiveSample { bytes, site: bytes as u32 ^ 5 }
    }

    proptest! {
        #[test]
        fn it_is_a_map(steps in prop::collection::vec((1_usize..700, any::<bool>()), 1..3000)) {
            let (table, mut model) = (table(), HashMap::new());
            for (step, (number, inserts)) in steps.into_iter().enumerate() {
                let block = number * 48;
                if inserts && !model.contains_key(&block) {
                    prop_assert_eq!(table.insert(block, sample(step)), Ok(()));
                    model.insert(block, sample(step));
                } else {
                    prop_assert_eq!(table.remove(block), model.remove(&block));
                }
            }
            for (block, sample) in model {
                prop_assert_eq!(table.remove(block), Some(sample));
                prop_assert_eq!(table.remove(block), None);
            }
        }
    }

    #[test]
    fn a_hundred_thousand_blocks_are_found_and_slots_are_used_again() {
        let table = table();
        for round in 0..3 {
            for block in 1..=100_000_usize {
                assert_eq!(table.insert(block << 8 | 16, sample(block + round)), Ok(()));
            }
            for block in 1..=100_000_usize {
                assert_eq!(table.remove(block << 8 | 16), Some(sample(block + round)));
            }
            assert!(table.levels.load(Ordering::Relaxed) <= 5);
        }
    }

    /// 400,000 blocks at the distances of a program's lists: seven of ten slots stay free.
    #[test]
    fn blocks_at_equal_distances_find_places() {
        let table = table();
        let blocks = || {
            [112_usize, 64].into_iter().flat_map(|bytes| (1..200_000).map(move |n| (bytes << 28) + n * bytes))
        };
        for block in blocks() {
            assert_eq!(table.insert(block, sample(block)), Ok(()));
        }
        assert!(blocks().all(|block| table.remove(block) == Some(sample(block))));
    }

    #[test]
    fn threads_insert_and_remove_at_once() {
        let table = table();
        std::thread::scope(|scope| {
            for thread in 0..4_usize {
                scope.spawn(move || {
                    for round in 0..200 {
                        let blocks: Vec<usize> =
                            (1..100).map(|n| (thread << 32) + (round * 100 + n) * 16).collect();
                        for &block in &blocks {
                            table.insert(block, sample(block)).unwrap();
                        }
                        for &block in &blocks {
                            assert_eq!(table.remove(block), Some(sample(block)));
                        }
                    }
                });
            }
        });
    }

    #[test]
    fn no_word_of_it_is_the_address_of_a_block() {
        let table = table();
        (1..=1000_usize).for_each(|block| table.insert(block << 20 | 16, sample(1)).unwrap());
        let addresses = table.buckets.iter().flat_map(|bucket| &bucket.addresses);
        let stored: Vec<usize> = addresses.map(|address| address.load(Ordering::Relaxed)).collect();
        assert!(stored.iter().filter(|&&address| address != 0).count() == 1000);
        assert!(stored.iter().all(|&address| address == 0 || address >> 47 != 0));
    }
}
