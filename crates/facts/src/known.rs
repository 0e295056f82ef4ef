//! What is known of one value, and one over another.

use heaptoll_statistics::{FEWEST_PAIRS, median, student};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Value;

/// What an interval is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// The number of pairs of repetitions; of repetitions, for a plain figure.
    Pairs(u32),
    /// The number of programs: Student's t on log ratios.
    Programs(u32),
    /// The number of points of a line: Student's t on the slope.
    Points(u32),
    /// Exact counts.
    Exact,
    /// The command's own interval.
    Estimate,
    /// Too few: there is a value, and no interval.
    None,
}

impl Basis {
    /// What several effects rest on together.
    pub fn weakest(bases: impl Iterator<Item = Basis>) -> Basis {
        bases
            .reduce(|a, b| match (a, b) {
                (Basis::None, _) | (_, Basis::None) => Basis::None,
                (Basis::Pairs(a), Basis::Pairs(b)) => Basis::Pairs(a.min(b)),
                (Basis::Exact, other) | (other, Basis::Exact) => other,
                (a, b) if a == b => a,
                _ => Basis::Estimate,
            })
            .unwrap_or(Basis::None)
    }
}

/// The log ratio of a count to none, and by how much an interval reaches to either side at most: a factor of a
/// million, as in `heaptoll_experiment`.
pub const WIDEST: f64 = 14.0;
/// Log ratios end here, so that what comes of them is finite.
pub const FINITE: f64 = 600.0;

/// A value with its ends.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Known {
    /// Value, or ratio.
    pub value: f64,
    /// Lower end; equal to `value` for exact counts, and where there is no interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// What it rests on.
    pub basis: Basis,
}

impl Known {
    /// Without an interval.
    pub fn alone(value: f64) -> Known {
        Known { value, low: value, high: value, basis: Basis::None }
    }

    /// A value by itself; an interval of repetitions holds together with `family` others.
    pub fn of(value: &Value, family: usize) -> Option<Known> {
        let known = match value {
            Value::Exact(value) => Known { basis: Basis::Exact, ..Known::alone(*value) },
            Value::Single(value) => Known::alone(*value),
            Value::AtLeast(bound) => {
                Known { value: *bound, low: *bound, high: bound * WIDEST.exp(), basis: Basis::Estimate }
            }
            Value::Estimate { value, low, high } => {
                Known { value: *value, low: *low, high: *high, basis: Basis::Estimate }
            }
            Value::Samples(samples) => {
                let good: Vec<f64> =
                    samples.iter().flatten().copied().filter(|value| value.is_finite()).collect();
                match student::mean(&good, family) {
                    Some((value, half)) if good.len() >= FEWEST_PAIRS => Known {
                        value,
                        low: value - half,
                        high: value + half,
                        basis: Basis::Pairs(good.len() as u32),
                    },
                    _ if good.is_empty() => return None,
                    _ => Known::alone(median(&good)),
                }
            }
        };
        let ends = [known.value, known.low, known.high];
        ends.iter().all(|value| value.is_finite()).then_some(known)
    }

    /// One over another, with the widest interval that the two allow.
    pub fn over(&self, other: &Known) -> Option<Known> {
        if self.value < 0.0 || other.value < 0.0 || (self.value == 0.0 && other.value == 0.0) {
            return None;
        }
        let ratio = |a: f64, b: f64| match (a > 0.0, b > 0.0) {
            (true, true) => (a.ln() - b.ln()).clamp(-FINITE, FINITE).exp(),
            (true, false) => WIDEST.exp(),
            (false, true) => (-WIDEST).exp(),
            (false, false) => 1.0,
        };
        let basis = match (self.basis, other.basis) {
            (Basis::None, _) | (_, Basis::None) => Basis::None,
            (Basis::Exact, Basis::Exact) => Basis::Exact,
            _ => Basis::Estimate,
        };
        let value = ratio(self.value, other.value);
        match basis {
            Basis::None | Basis::Exact => Some(Known { basis, ..Known::alone(value) }),
            _ => {
                let (low, high) = (ratio(self.low, other.high), ratio(self.high, other.low));
                (low <= value && value <= high).then_some(Known { value, low, high, basis })
            }
        }
    }
}
