//! The numbers of call stacks: a table from a call stack's digest to its number, shared by all threads and signal
//! handlers without a lock. A child of fork finds it empty: its trace is another file.
//!
//! The table is a row of levels, each four times as large as the one before. A digest has one bucket of eight words in
//! each, which is a cache line, and goes into the first of them that has a free word. Nothing is ever moved or removed,
//! so a word once written stays, and one compare-and-swap inserts.
//!
//! A word is 40 bits of the digest and the 24 bits of the number. Two call stacks are taken for one when they meet in a
//! bucket and agree in those 40 bits. A new call stack meets up to eight others a level, some forty in all when there
//! are a million: then one program in thirty thousand has such a pair.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::system;

const NUMBER_BITS: u32 = 24;
const BUCKET: usize = 8;
/// Buckets of the first level.
const FIRST: usize = 128;
const LEVELS: u32 = 7;
/// 128, 512, ... buckets: a geometric series.
const BUCKETS: usize = FIRST * ((1 << (2 * LEVELS)) - 1) / 3;
pub const BYTES: usize = (1 + BUCKETS) * BUCKET * 8;

/// A call stack's number, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Number {
    /// The number.
    pub number: u32,
    /// Whether this call assigned it.
    pub new: bool,
}

/// The table.
pub struct Numbers {
    /// The first bucket holds how many numbers were assigned; the levels follow.
    words: NonNull<AtomicU64>,
}

// SAFETY: the words are atomics, and the memory is never unmapped, so any thread may use it.
unsafe impl Sync for Numbers {}
// SAFETY: the words are atomics, and the memory is never unmapped, so any thread may use it.
unsafe impl Send for Numbers {}

impl Numbers {
    /// An empty table; `None` when the system provides no memory.
    pub fn new() -> Option<Numbers> {
        Some(Numbers { words: system::map(BYTES, true)?.cast() })
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        debug_assert!(at < BYTES / 8);
        // SAFETY: `at` is below the number of mapped words (checked by the assertion; callers stay within the levels),
        // which are zeroed or written as atomics.
        unsafe { self.words.add(at).as_ref() }
    }

    /// Count of numbers assigned.
    pub fn assigned(&self) -> u64 {
        self.word(0).load(Ordering::Relaxed)
    }

    /// The number of the call stack with this digest; `None` when the table is full.
    pub fn number(&self, digest: u64) -> Option<Number> {
        let mark = digest >> NUMBER_BITS;
        let mut fresh = 0;
        let mut level = 1;
        let mut buckets = FIRST;
        for _ in 0..LEVELS {
            let bucket = (level + (digest as usize & (buckets - 1))) * BUCKET;
            for at in bucket..bucket + BUCKET {
                let word = self.word(at);
                let mut found = word.load(Ordering::Relaxed);
                if found == 0 {
                    if fresh == 0 {
                        fresh = self.word(0).fetch_add(1, Ordering::Relaxed) + 1;
                        if fresh >> NUMBER_BITS != 0 {
                            return None;
                        }
                    }
                    let wanted = mark << NUMBER_BITS | fresh;
                    match word.compare_exchange(0, wanted, Ordering::Relaxed, Ordering::Relaxed) {
                        Ok(_) => return Some(Number { number: fresh as u32, new: true }),
                        Err(other) => found = other,
                    }
                }
                if found >> NUMBER_BITS == mark {
                    return Some(Number { number: found as u32 & ((1 << NUMBER_BITS) - 1), new: false });
                }
            }
            level += buckets;
            buckets *= 4;
        }
        None
    }
}

/// Adds an address to a digest: a product of both folded, which changes every bit with every other.
#[inline(always)]
pub fn digest(digest: u64, frame: usize) -> u64 {
    let product =
        u128::from(digest ^ 0xA076_1D64_78BD_642F) * u128::from(frame as u64 ^ 0xE703_7ED1_A0B4_28DB);
    (product as u64 ^ (product >> 64) as u64).rotate_left(23).wrapping_add(frame as u64)
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::collections::{HashMap, HashSet};
    use std::vec::Vec;

    use super::*;

    fn of(frames: &[usize]) -> u64 {
        let folded = frames.iter().fold(frames.len() as u64, |sum, &frame| digest(sum, frame));
        digest(folded, 0)
    }

    #[test]
    fn each_stack_has_its_own_number_for_ever() {
        let table = Numbers::new().unwrap();
        let mut numbers = HashMap::new();
        for round in 0..3 {
            // A million call stacks of addresses that differ in a few bits.
            for n in 0..1_000_000usize {
                let frames = [
                    0x7f00_0000_1000 + n % 100 * 4,
                    0x55_5555_0000 + n / 100 % 100 * 5,
                    0x40_0000 + n / 10_000,
                ];
                let number = table.number(of(&frames)).unwrap();
                assert_eq!(number.new, round == 0);
                assert_eq!(*numbers.entry(n).or_insert(number.number), number.number);
            }
        }
        let distinct: HashSet<_> = numbers.values().collect();
        assert_eq!((distinct.len(), table.assigned()), (1_000_000, 1_000_000));
        assert!(numbers.values().all(|&number| (1..=1_000_000).contains(&number)));
    }

    #[test]
    fn threads_agree() {
        let table = Numbers::new().unwrap();
        let recorded: Vec<HashMap<u64, u32>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        (1..20_000u64).map(|n| (n, table.number(of(&[n as usize])).unwrap().number)).collect()
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(recorded.iter().all(|numbers| *numbers == recorded[0]));
        let distinct: HashSet<_> = recorded[0].values().collect();
        assert_eq!(distinct.len(), recorded[0].len());
    }

    #[test]
    fn a_full_table_assigns_none() {
        let table = Numbers::new().unwrap();
        // One bucket a level: 8 words each.
        let assigned = (1..100u64).filter(|n| table.number(n << 40).is_some()).count();
        assert_eq!(assigned, BUCKET * LEVELS as usize);
    }
}
