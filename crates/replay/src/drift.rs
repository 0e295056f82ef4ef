//! Whether memory drifts when the same work is done again and again in one process.
//!
//! Boehm's first myth of memory allocation is that long-running programs fragment the heap more and more. The same
//! trace repeated in one process is the plainest test of it: if fragmentation went on growing, the peak of each
//! repetition would be above the last one's.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::job::Repetition;

/// What the repetitions show.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Drift {
    /// By repetition; medians over the runs.
    pub repetitions: Vec<Repetition>,
    /// Growth of the peak in a repetition, bytes, over the second half of them (Theil and Sen's median of slopes).
    pub slope_bytes: f64,
    /// The error of the kernel's marks, bytes: smaller changes mean nothing.
    pub resolution_bytes: u64,
    /// The verdict.
    pub verdict: Verdict,
}

/// The verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Verdict {
    /// Fewer than [`FEWEST`] repetitions.
    TooFew,
    /// No peak is above the first one's by more than the tolerance.
    Steady,
    /// It grew until this repetition, counted from 1, and held since.
    Settled {
        /// The repetition.
        after: u32,
    },
    /// It still grows at the end.
    Rising,
    /// It fell.
    Falling,
}

/// Fewer repetitions show no trend.
pub const FEWEST: usize = 4;
/// A change by less than this share of the first peak is none.
const TOLERANCE: f64 = 0.02;

/// What the repetitions show, when marks may be off by `resolution_bytes`.
pub fn drift(repetitions: Vec<Repetition>, resolution_bytes: u64) -> Drift {
    let peaks: Vec<f64> = repetitions.iter().map(|one| one.high_water_bytes as f64).collect();
    let slope_bytes = slope(&peaks[peaks.len() / 2..]);
    Drift {
        verdict: verdict(&peaks, slope_bytes, resolution_bytes as f64),
        slope_bytes,
        resolution_bytes,
        repetitions,
    }
}

fn verdict(peaks: &[f64], slope: f64, resolution: f64) -> Verdict {
    let (Some(first), Some(last)) = (peaks.first(), peaks.last()) else { return Verdict::TooFew };
    if peaks.len() < FEWEST {
        return Verdict::TooFew;
    }
    let tolerance = (TOLERANCE * first).max(resolution);
    let second_half = (peaks.len() - peaks.len() / 2) as f64;
    let largest = peaks.iter().copied().fold(0.0, f64::max);
    let grows = slope * second_half > tolerance;
    if grows && last - first > tolerance {
        return Verdict::Rising;
    }
    if first - last > tolerance {
        return Verdict::Falling;
    }
    if largest - first <= tolerance {
        return Verdict::Steady;
    }
    let after = peaks.iter().position(|peak| largest - peak <= tolerance).unwrap_or(0);
    Verdict::Settled { after: after as u32 + 1 }
}

/// The median of the slopes between all pairs (of at most some hundred points).
fn slope(values: &[f64]) -> f64 {
    const MOST: usize = 400;
    let stride = values.len().div_ceil(MOST).max(1);
    let points: Vec<(f64, f64)> =
        values.iter().enumerate().step_by(stride).map(|(at, value)| (at as f64, *value)).collect();
    let slopes: Vec<f64> = points
        .iter()
        .enumerate()
        .flat_map(|(at, one)| points[at + 1..].iter().map(move |other| (other.1 - one.1) / (other.0 - one.0)))
        .collect();
    heaptoll_statistics::median(&slopes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(peaks: impl Iterator<Item = f64>) -> Drift {
        let one = |peak: f64| Repetition { high_water_bytes: peak as u64, ..Repetition::default() };
        drift(peaks.map(one).collect(), 1 << 19)
    }

    const MIB: f64 = 1048576.0;

    #[test]
    fn a_line_that_rises_is_distinguished_from_one_that_settles() {
        let rising = of((0..100).map(|at| 100.0 * MIB + f64::from(at) * MIB));
        assert_eq!(rising.verdict, Verdict::Rising);
        assert!((rising.slope_bytes - MIB).abs() < 1.0);
        let settled = of((0..100).map(|at| 100.0 * MIB + f64::from(at.min(9)) * MIB));
        assert_eq!(settled.verdict, Verdict::Settled { after: 8 }, "within 2 % of the largest");
        assert_eq!(
            of((0..100).map(|at| 100.0 * MIB + f64::from(at % 3) * 0.3 * MIB)).verdict,
            Verdict::Steady
        );
        assert_eq!(of((0..100).map(|at| 100.0 * MIB - f64::from(at) * 0.5 * MIB)).verdict, Verdict::Falling);
    }

    #[test]
    fn changes_below_the_resolution_are_none_and_few_repetitions_are_too_few() {
        assert_eq!(of((0..50).map(|at| 200_000.0 + f64::from(at) * 4096.0)).verdict, Verdict::Steady);
        assert_eq!(of((0..3).map(|at| 100.0 * MIB * f64::from(at))).verdict, Verdict::TooFew);
        assert_eq!(drift(vec![], 0).verdict, Verdict::TooFew);
    }
}
