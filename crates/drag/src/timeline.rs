//! Bytes in each phase over time, in bounded memory: bins whose width doubles when the clock passes the last.
//!
//! What is added is a rectangle, bytes from one instant to another, when its phase is known, long after it began. A bin
//! keeps the area of rectangles that fill it in part, and the change in the height of those that fill it whole: adding
//! takes a few steps however long the rectangle is, and the sum of all bins is exactly that of all rectangles.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::space::{PHASES, Phase};

/// Most bins.
const BINS: usize = 512;

#[derive(Debug, Clone, Copy, Default)]
struct Bin {
    /// Bytes times the clock of rectangles that fill it in part.
    part: i128,
    /// Bytes that fill this bin whole and not the one before, less those that fill only the one before.
    step: i64,
}

/// Bytes by phase over one clock.
#[derive(Debug, Clone)]
pub struct Timeline {
    width: u64,
    phases: Box<[[Bin; BINS + 1]; PHASES]>,
}

/// Average bytes in each phase over an interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// The clock where it begins.
    pub from: u64,
    /// The clock where it ends.
    pub to: u64,
    /// Bytes of objects that are not touched yet and will be.
    pub lag_bytes: f64,
    /// Bytes of objects between their first and last touch.
    pub use_bytes: f64,
    /// Bytes of objects after their last touch.
    pub drag_bytes: f64,
    /// Bytes of objects that are never touched.
    pub void_bytes: f64,
    /// Bytes of objects freed and perhaps not reclaimed.
    pub unreclaimed_bytes: f64,
}

impl Interval {
    /// Bytes that the program holds.
    pub fn held_bytes(&self) -> f64 {
        self.lag_bytes + self.use_bytes + self.drag_bytes + self.void_bytes
    }
}

impl Default for Timeline {
    fn default() -> Timeline {
        Timeline { width: 1, phases: Box::new([[Bin::default(); BINS + 1]; PHASES]) }
    }
}

impl Timeline {
    /// Adds bytes that are in a phase from one time to another.
    #[inline(always)]
    pub fn add(&mut self, phase: Phase, bytes: u64, from: u64, to: u64) {
        if from >= to || bytes == 0 {
            return;
        }
        self.reach(to);
        let shift = self.width.trailing_zeros();
        let (first, last) = ((from >> shift) as usize, (to >> shift) as usize);
        let bins = &mut self.phases[phase as usize];
        let area = |clock: u64| i128::from(bytes) * i128::from(clock);
        if first == last {
            bins[first].part += area(to - from);
            return;
        }
        bins[first].part += area(((first as u64 + 1) << shift) - from);
        bins[first + 1].step += bytes as i64;
        bins[last].part += area(to - ((last as u64) << shift));
        bins[last].step -= bytes as i64;
    }

    #[inline(always)]
    fn reach(&mut self, to: u64) {
        while to > self.width.saturating_mul(BINS as u64) {
            self.widen();
        }
    }

    #[cold]
    fn widen(&mut self) {
        for bins in self.phases.iter_mut() {
            let mut whole = 0_i64;
            for index in 0..BINS / 2 {
                let (left, right) = (bins[2 * index], bins[2 * index + 1]);
                let in_left = whole + left.step;
                whole = in_left + right.step;
                // Bytes that fill the wide bin are those that filled its right half; the left half differs by the right
                // one's step.
                let part = i128::from(in_left - whole) * i128::from(self.width);
                bins[index] = Bin { part: left.part + right.part + part, step: left.step + right.step };
            }
            let end = bins[BINS];
            bins[BINS / 2..].fill(Bin::default());
            bins[BINS / 2] = end;
        }
        self.width *= 2;
    }

    /// Averages, up to `end`; over the rest if `end` cuts the last bin.
    pub fn intervals(&mut self, end: u64) -> Vec<Interval> {
        self.reach(end);
        let mut whole = [0_i64; PHASES];
        let count = end.div_ceil(self.width).min(BINS as u64);
        let mut intervals = Vec::with_capacity(count as usize);
        for index in 0..count {
            let (from, to) = (index * self.width, ((index + 1) * self.width).min(end));
            let mut average = [0.0; PHASES];
            for phase in 0..PHASES {
                let bin = &self.phases[phase][index as usize];
                whole[phase] += bin.step;
                // Nothing fills a bin that the end cuts off.
                let area = bin.part + i128::from(whole[phase]) * i128::from(self.width);
                average[phase] = area as f64 / (to - from) as f64;
            }
            let [lag_bytes, use_bytes, drag_bytes, void_bytes, unreclaimed_bytes] = average;
            let interval =
                Interval { from, to, lag_bytes, use_bytes, drag_bytes, void_bytes, unreclaimed_bytes };
            intervals.push(interval);
        }
        intervals
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(interval: &Interval, phase: usize) -> f64 {
        [
            interval.lag_bytes,
            interval.use_bytes,
            interval.drag_bytes,
            interval.void_bytes,
            interval.unreclaimed_bytes,
        ][phase]
    }

    proptest! {
        /// Every bin has exactly the area of the rectangles in it, however often it was widened.
        #[test]
        fn bins_hold_what_lies_in_them(
            rectangles in prop::collection::vec(
                (0..PHASES, 1_u64..1000, prop_oneof![0_u64..100, 0_u64..100_000], 0_u64..50_000), 1..40),
            after in prop_oneof![Just(0_u64), 0_u64..200_000],
        ) {
            let mut timeline = Timeline::default();
            let end = rectangles.iter().map(|(_, _, from, length)| from + length).max().unwrap_or(0) + after;
            for &(phase, bytes, from, length) in &rectangles {
                timeline.add(Phase::ALL[phase], bytes, from, from + length);
            }
            let intervals = timeline.intervals(end);
            prop_assert!(intervals.len() <= BINS);
            prop_assert_eq!(intervals.last().map_or(end, |interval| interval.to), end);
            for interval in &intervals {
                for phase in 0..PHASES {
                    let area: u64 = rectangles.iter().filter(|rectangle| rectangle.0 == phase).map(
                        |&(_, bytes, from, length)| {
                            bytes * (from + length).min(interval.to).saturating_sub(from.max(interval.from))
                        }).sum();
                    let expected = area as f64 / (interval.to - interval.from) as f64;
                    prop_assert!((of(interval, phase) - expected).abs() <= expected * 1e-12);
                }
            }
        }
    }

    #[test]
    fn what_ends_where_the_last_bin_ends_is_whole() {
        let mut timeline = Timeline::default();
        timeline.add(Phase::Use, 3, 0, BINS as u64);
        timeline.add(Phase::Use, 3, 0, 2 * BINS as u64);
        let intervals = timeline.intervals(2 * BINS as u64);
        assert_eq!(intervals.len(), BINS);
        assert_eq!((intervals[0].use_bytes, intervals[BINS / 2].use_bytes), (6.0, 3.0));
    }
}
