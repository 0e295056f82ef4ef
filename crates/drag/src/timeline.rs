//! Bytes in each phase over time, in bounded memory: bins that become twice as wide when the clock has left the last.
//!
//! What is added is a rectangle, bytes from one moment to another, and it is added when its phase is known, long after
//! it began. A bin holds what lies in it in part, and the difference by which what fills it whole grows there: adding
//! takes a few steps however long the rectangle is, and the sum of all bins is exactly that of all rectangles.

use serde::Serialize;

use crate::space::{PHASES, Phase};

/// Bins, when there are most.
const BINS: usize = 512;

#[derive(Debug, Clone, Copy, Default)]
struct Bin {
    /// Bytes times the clock of what lies in it in part.
    part: i128,
    /// Bytes that fill this bin whole and did not the one before, less those that do no longer.
    step: i64,
}

/// Bytes by phase over one clock.
#[derive(Debug, Clone)]
pub struct Timeline {
    width: u64,
    phases: Box<[[Bin; BINS + 1]; PHASES]>,
}

/// Average bytes in each phase, from one moment to another.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Moment {
    /// The clock where it begins.
    pub from: u64,
    /// The clock where it ends.
    pub to: u64,
    /// Bytes of objects that are touched later, and were not yet.
    pub lag_bytes: f64,
    /// Bytes of objects between their first and last touch.
    pub use_bytes: f64,
    /// Bytes of objects behind their last touch.
    pub drag_bytes: f64,
    /// Bytes of objects that are never touched.
    pub void_bytes: f64,
    /// Bytes of objects freed and perhaps not reclaimed.
    pub unreclaimed_bytes: f64,
}

impl Moment {
    /// What the program holds.
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
    /// So many bytes are in a phase for a while.
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
            for place in 0..BINS / 2 {
                let (left, right) = (bins[2 * place], bins[2 * place + 1]);
                let in_left = whole + left.step;
                whole = in_left + right.step;
                // What fills the wide bin is what filled its right half; the left half differs by the right one's step.
                let part = i128::from(in_left - whole) * i128::from(self.width);
                bins[place] = Bin { part: left.part + right.part + part, step: left.step + right.step };
            }
            let end = bins[BINS];
            bins[BINS / 2..].fill(Bin::default());
            bins[BINS / 2] = end;
        }
        self.width *= 2;
    }

    /// Averages, up to `end`; where the last bin is cut off there, over what is left of it.
    pub fn moments(&mut self, end: u64) -> Vec<Moment> {
        self.reach(end);
        let mut whole = [0_i64; PHASES];
        let count = end.div_ceil(self.width).min(BINS as u64);
        let mut moments = Vec::with_capacity(count as usize);
        for place in 0..count {
            let (from, to) = (place * self.width, ((place + 1) * self.width).min(end));
            let mut average = [0.0; PHASES];
            for phase in 0..PHASES {
                let bin = &self.phases[phase][place as usize];
                whole[phase] += bin.step;
                // Nothing fills a bin that the end cuts off.
                let area = bin.part + i128::from(whole[phase]) * i128::from(self.width);
                average[phase] = area as f64 / (to - from) as f64;
            }
            let [lag_bytes, use_bytes, drag_bytes, void_bytes, unreclaimed_bytes] = average;
            let moment = Moment { from, to, lag_bytes, use_bytes, drag_bytes, void_bytes, unreclaimed_bytes };
            moments.push(moment);
        }
        moments
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(moment: &Moment, phase: usize) -> f64 {
        [moment.lag_bytes, moment.use_bytes, moment.drag_bytes, moment.void_bytes, moment.unreclaimed_bytes]
            [phase]
    }

    proptest! {
        /// Every bin has exactly what rectangles have in it, however often it was widened.
        #[test]
        fn bins_hold_what_lies_in_them(
            rectangles in prop::collection::vec(
                (0..PHASES, 1_u64..1000, prop_oneof![0_u64..100, 0_u64..100_000], 0_u64..50_000), 1..40),
            behind in prop_oneof![Just(0_u64), 0_u64..200_000],
        ) {
            let mut timeline = Timeline::default();
            let end = rectangles.iter().map(|(_, _, from, length)| from + length).max().unwrap_or(0) + behind;
            for &(phase, bytes, from, length) in &rectangles {
                timeline.add(Phase::ALL[phase], bytes, from, from + length);
            }
            let moments = timeline.moments(end);
            prop_assert!(moments.len() <= BINS);
            prop_assert_eq!(moments.last().map_or(end, |moment| moment.to), end);
            for moment in &moments {
                for phase in 0..PHASES {
                    let area: u64 = rectangles.iter().filter(|rectangle| rectangle.0 == phase).map(
                        |&(_, bytes, from, length)| {
                            bytes * (from + length).min(moment.to).saturating_sub(from.max(moment.from))
                        }).sum();
                    let expected = area as f64 / (moment.to - moment.from) as f64;
                    prop_assert!((of(moment, phase) - expected).abs() <= expected * 1e-12);
                }
            }
        }
    }

    #[test]
    fn what_ends_where_the_last_bin_ends_is_whole() {
        let mut timeline = Timeline::default();
        timeline.add(Phase::Use, 3, 0, BINS as u64);
        timeline.add(Phase::Use, 3, 0, 2 * BINS as u64);
        let moments = timeline.moments(2 * BINS as u64);
        assert_eq!(moments.len(), BINS);
        assert_eq!((moments[0].use_bytes, moments[BINS / 2].use_bytes), (6.0, 3.0));
    }
}
