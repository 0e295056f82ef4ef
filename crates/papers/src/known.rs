//! One value as far as it is known, and one over another.

use heaptoll_statistics::student;

use heaptoll_statistics::{FEWEST_PAIRS, median};

use super::effect::Basis;
use heaptoll_facts::Value;

/// The log ratio of a count to none, and by how much an interval reaches to either side at most: a factor of a
/// million, as in `heaptoll_experiment`.
pub(super) const WIDEST: f64 = 14.0;
/// Log ratios end here, so that what comes of them is finite.
pub(super) const FINITE: f64 = 600.0;

/// A value with its ends.
pub(super) struct Known {
    pub value: f64,
    pub low: f64,
    pub high: f64,
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
