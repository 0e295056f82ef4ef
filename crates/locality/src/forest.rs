//! Set-associative LRU caches of many set counts and all ways up to [`WAYS`], in one pass.
//!
//! A set keeps its lines in the order of use, so the depth at which a line is found shows with how many ways it is a
//! hit (inclusion, Mattson et al. 1970). Set counts are powers of two and the low bits of the line select the set, so a
//! set of twice as many is a part of one of half as many (set refinement, Hill & Smith 1989): the most recent line of a
//! set is the most recent of its set for every larger count, and nothing changes there. So a reference goes from few
//! sets to many and stops where it finds its line first in the set. References are processed many at a time, level by
//! level, since levels do not depend on each other.
//!
//! Memory: 32 bytes a set, however much the program touches.

use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::distance::front::{Lanes, Row, to_front};
use crate::split::{Accessor, Split};

/// The most ways of a cache.
pub const WAYS: usize = 8;
/// The most set counts.
pub const MOST_LEVELS: usize = 21;

/// No line.
const NONE: u32 = u32::MAX;

/// Misses of one cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Associative {
    /// Sets: a power of two.
    pub sets: u64,
    /// Ways: 1 (direct-mapped) to [`WAYS`].
    pub ways: u32,
    /// Bytes it holds: sets x ways x line.
    pub bytes: u64,
    /// Misses.
    pub misses: Split<u64>,
}

/// Lines of a set, the most recent first.
type Set = Row<WAYS>;

/// Counts of one accessor.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    /// By level and depth, of references that reached the level. The last counts lines that were not found.
    found: [[u64; WAYS + 1]; MOST_LEVELS],
}

/// Depths of a reference at each level.
pub type Depths = [u8; MOST_LEVELS];

/// All caches.
#[derive(Debug, Clone)]
pub struct Forest {
    /// Power of two of the smallest set count.
    lowest: u32,
    levels: usize,
    /// All sets of the smallest count, then of the next...
    sets: Vec<Set>,
    counts: [Counts; Accessor::COUNT],
}

impl Forest {
    /// Caches whose set counts are these powers of two.
    pub fn new(powers: &RangeInclusive<u32>) -> Forest {
        let levels = powers.clone().count().min(MOST_LEVELS);
        let lowest = *powers.start();
        let sets = (1 << (lowest as usize + levels)) - (1 << lowest);
        Forest {
            lowest,
            levels,
            sets: vec![Row([NONE; WAYS]); sets],
            counts: [Counts::default(); Accessor::COUNT],
        }
    }

    /// Index of the first set of a level.
    #[inline(always)]
    fn base(&self, level: usize) -> usize {
        ((1 << level) - 1) << self.lowest
    }

    #[inline(always)]
    fn level(&mut self, level: usize) -> &mut [Set] {
        let base = self.base(level);
        &mut self.sets[base..base + (1 << (self.lowest as usize + level))]
    }

    /// Processes references of an accessor to one line each, one after the other; a line has a number besides its
    /// address. The content of lines and numbers is undefined afterwards.
    #[inline(always)]
    pub fn references(
        &mut self,
        lanes: impl Lanes,
        accessor: Accessor,
        lines: &mut [u64],
        numbers: &mut [u32],
    ) {
        let mut count = lines.len().min(numbers.len());
        for level in 0..self.levels {
            let mut places = [0; WAYS + 1];
            let sets = self.level(level);
            count = lanes.sets(sets, &mut lines[..count], &mut numbers[..count], &mut places);
            for (found, times) in self.counts[accessor as usize].found[level].iter_mut().zip(places) {
                *found += times;
            }
            if count == 0 {
                return;
            }
        }
    }

    /// Touches a line and raises depths to those at which it was found.
    pub fn touch(&mut self, line: u64, number: u32, depths: &mut Depths) {
        let levels = self.levels;
        for (level, deepest) in depths.iter_mut().enumerate().take(levels) {
            let sets = self.level(level);
            let depth = to_front(&mut sets[line as usize & (sets.len() - 1)], number);
            if depth == 0 {
                return;
            }
            *deepest = (*deepest).max(depth as u8);
        }
    }

    /// Counts a reference to several lines: it hits where all of them do.
    pub fn record(&mut self, accessor: Accessor, depths: &Depths) {
        let counts = &mut self.counts[accessor as usize];
        for (found, &depth) in counts.found.iter_mut().zip(depths).take(self.levels) {
            found[depth as usize] += 1;
        }
    }

    /// Misses of all caches, by sets, then ways, for lines of this many bytes.
    pub fn caches(&self, line_bytes: u64) -> Vec<Associative> {
        let mut caches = Vec::new();
        for level in 0..self.levels {
            let sets = 1 << (self.lowest as usize + level);
            for ways in 1..=WAYS {
                let misses = Split::of(|accessor| {
                    // References that do not reach a level are found first there.
                    self.counts[accessor as usize].found[level][ways..].iter().sum()
                });
                caches.push(Associative {
                    sets,
                    ways: ways as u32,
                    bytes: sets * ways as u64 * line_bytes,
                    misses,
                });
            }
        }
        caches
    }

    /// Memory of the sets, bytes.
    pub fn bytes(&self) -> u64 {
        (self.sets.len() * size_of::<Set>()) as u64
    }

    /// Checks that no line is twice in a set, none is after an empty entry, and the most recent lines of few sets are
    /// the most recent of more. `line` maps a number to its line.
    ///
    /// # Errors
    /// The first violation.
    pub fn check(&self, line: impl Fn(u32) -> u64) -> Result<(), String> {
        for level in 0..self.levels {
            let mask = (1_usize << (self.lowest as usize + level)) - 1;
            for index in 0..=mask {
                let set = &self.sets[self.base(level) + index].0;
                let used = set.iter().position(|&number| number == NONE).unwrap_or(WAYS);
                if set[used..].iter().any(|&number| number != NONE) {
                    return Err(format!("a line is after an empty entry in {set:?}"));
                }
                for (at, &number) in set[..used].iter().enumerate() {
                    if line(number) as usize & mask != index {
                        return Err(format!("line {number} is in set {index} of {}", mask + 1));
                    }
                    if set[..at].contains(&number) {
                        return Err(format!("line {number} is twice in {set:?}"));
                    }
                }
                if used > 0 && level + 1 < self.levels {
                    let finer = line(set[0]) as usize & (mask * 2 + 1);
                    if self.sets[self.base(level + 1) + finer].0[0] != set[0] {
                        return Err(format!("line {} is not the first among more sets", set[0]));
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distance::front::Portable;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sets_stay_whole_and_refine_each_other(
            mut lines in prop::collection::vec(prop_oneof![0_u64..40, 0_u64..3000], 1..1000),
            lowest in 0_u32..4,
            levels in 0_u32..5,
            cut in 1_usize..100,
        ) {
            let mut forest = Forest::new(&(lowest..=lowest + levels));
            // A line's number differs from its address.
            let number = |line: u64| 5000 - line as u32;
            for (turn, part) in lines.chunks_mut(cut).enumerate() {
                let mut numbers: Vec<u32> = part.iter().map(|&line| number(line)).collect();
                if turn % 3 == 0 {
                    let mut depths = [0; MOST_LEVELS];
                    for &line in &*part {
                        forest.touch(line, number(line), &mut depths);
                    }
                    forest.record(Accessor::System, &depths);
                } else {
                    forest.references(Portable, Accessor::Program, part, &mut numbers);
                }
                forest.check(|number| u64::from(5000 - number)).unwrap();
            }
        }
    }
}
