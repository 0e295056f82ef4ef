//! Ratios with intervals: a ratio of too few runs has a value and no interval that claims anything, and is a single
//! figure here.

use heaptoll_statistics::{FEWEST_PAIRS, Interval};

use super::cell_writer::CellWriter;
use crate::figures::Value;

impl From<Interval> for Value {
    fn from(interval: Interval) -> Value {
        let Interval { ratio: value, low, high, pairs, .. } = interval;
        if (pairs as usize) < FEWEST_PAIRS {
            Value::Single(value)
        } else {
            Value::Estimate { value, low, high }
        }
    }
}

impl CellWriter<'_> {
    /// A ratio, where there is one.
    pub fn ratio(&mut self, metric: &str, at: Option<f64>, ratio: Option<Interval>) {
        if let Some(ratio) = ratio {
            self.put(metric, at, ratio.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_of_too_few_runs_claims_nothing() {
        let of = |pairs| Interval { ratio: 1.4, low: 1.3, high: 1.5, differs: true, pairs };
        assert!(matches!(Value::from(of(5)), Value::Single(_)));
        assert_eq!(Value::from(of(6)), Value::Estimate { value: 1.4, low: 1.3, high: 1.5 });
    }
}
