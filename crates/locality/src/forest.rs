//! Set-associative LRU caches of many set counts and all ways up to [`WAYS`], in one pass.
//!
//! A set keeps its lines in the order of use, so the depth at which a line is found says in how many ways it is found
//! (inclusion, Mattson et al. 1970). Set counts are powers of two and taken by the low bits of the line, so a set of
//! twice as many is a part of one of half as many (set refinement, Hill & Smith 1989): what is most recent in a set is
//! most recent in that of every larger count, and nothing changes there. So a reference goes from few sets to many and
//! stops where it finds its line first in the set. References are taken many at a time, level by level, since levels do
//! not depend on each other.
//!
//! Memory: 32 bytes a set, whatever the program touches.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::distance::front::{Lanes, Row, to_front};
use crate::simulation::{Maker, Split};

/// The most ways of a cache.
pub const WAYS: usize = 8;
/// The most set counts.
pub const MOST_LEVELS: usize = 21;

/// No line.
const NONE: u32 = u32::MAX;

/// Misses of one cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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

/// Counts of one maker.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    /// By level and depth, of those that came so far. The last is for what was not found.
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
    counts: [Counts; Maker::COUNT],
}

impl Forest {
    /// Of set counts that are these powers of two.
    pub fn new(powers: &RangeInclusive<u32>) -> Forest {
        let levels = powers.clone().count().min(MOST_LEVELS);
        let lowest = *powers.start();
        let sets = (1 << (lowest as usize + levels)) - (1 << lowest);
        Forest {
            lowest,
            levels,
            sets: vec![Row([NONE; WAYS]); sets],
            counts: [Counts::default(); Maker::COUNT],
        }
    }

    /// Where the sets of a level begin.
    #[inline(always)]
    fn base(&self, level: usize) -> usize {
        ((1 << level) - 1) << self.lowest
    }

    #[inline(always)]
    fn level(&mut self, level: usize) -> &mut [Set] {
        let base = self.base(level);
        &mut self.sets[base..base + (1 << (self.lowest as usize + level))]
    }

    /// References of a maker to one line each, one after the other; a line has a number besides its place. What lines and
    /// numbers hold afterwards is of no meaning.
    #[inline(always)]
    pub fn references(&mut self, lanes: impl Lanes, maker: Maker, lines: &mut [u64], numbers: &mut [u32]) {
        let mut count = lines.len().min(numbers.len());
        for level in 0..self.levels {
            let mut places = [0; WAYS + 1];
            let sets = self.level(level);
            count = lanes.sets(sets, &mut lines[..count], &mut numbers[..count], &mut places);
            for (found, times) in self.counts[maker as usize].found[level].iter_mut().zip(places) {
                *found += times;
            }
            if count == 0 {
                return;
            }
        }
    }

    /// Touches a line and raises depths to those where it was.
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

    /// Counts a reference that touched several lines: it was found where all were.
    pub fn record(&mut self, maker: Maker, depths: &Depths) {
        let counts = &mut self.counts[maker as usize];
        for (found, &depth) in counts.found.iter_mut().zip(depths).take(self.levels) {
            found[depth as usize] += 1;
        }
    }

    /// Misses of all caches, by sets, then ways; a line has so many bytes.
    pub fn caches(&self, line_bytes: u64) -> Vec<Associative> {
        let mut caches = Vec::new();
        for level in 0..self.levels {
            let sets = 1 << (self.lowest as usize + level);
            for ways in 1..=WAYS {
                let misses = Split::of(|maker| {
                    // What did not come so far is found first.
                    self.counts[maker as usize].found[level][ways..].iter().sum()
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

    /// Bytes it takes.
    pub fn bytes(&self) -> u64 {
        (self.sets.len() * size_of::<Set>()) as u64
    }

    /// Whether no line is twice in a set, none stands behind an empty place, and the most recent lines of few sets are
    /// the most recent of more. `line` gives a line by its number.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&self, line: impl Fn(u32) -> u64) -> Result<(), String> {
        for level in 0..self.levels {
            let mask = (1_usize << (self.lowest as usize + level)) - 1;
            for index in 0..=mask {
                let set = &self.sets[self.base(level) + index].0;
                let used = set.iter().position(|&number| number == NONE).unwrap_or(WAYS);
                if set[used..].iter().any(|&number| number != NONE) {
                    return Err(format!("a line stands behind an empty place in {set:?}"));
                }
                for (at, &number) in set[..used].iter().enumerate() {
                    if line(number) as usize & mask != index {
                        return Err(format!("line {number} stands in set {index} of {}", mask + 1));
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
            // A line's number is another than its place.
            let number = |line: u64| 5000 - line as u32;
            for (turn, part) in lines.chunks_mut(cut).enumerate() {
                let mut numbers: Vec<u32> = part.iter().map(|&line| number(line)).collect();
                if turn % 3 == 0 {
                    let mut depths = [0; MOST_LEVELS];
                    for &line in &*part {
                        forest.touch(line, number(line), &mut depths);
                    }
                    forest.record(Maker::System, &depths);
                } else {
                    forest.references(Portable, Maker::Program, part, &mut numbers);
                }
                forest.check(|number| u64::from(5000 - number)).unwrap();
            }
        }
    }
}
