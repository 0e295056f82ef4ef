//! Ratios with intervals, as the commands write them.

use crate::figures::Value;
use heaptoll_statistics::FEWEST_PAIRS;
use serde::Deserialize;

use crate::read::cell_writer::CellWriter;

/// A ratio and its interval.
#[derive(Deserialize)]
pub struct Ratio {
    /// The ratio.
    pub ratio: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Repetitions or runs.
    #[serde(alias = "runs")]
    pub pairs: u32,
}

impl From<&Ratio> for Value {
    fn from(ratio: &Ratio) -> Value {
        if (ratio.pairs as usize) < FEWEST_PAIRS {
            Value::Single(ratio.ratio)
        } else {
            Value::Estimate { value: ratio.ratio, low: ratio.low, high: ratio.high }
        }
    }
}

impl CellWriter<'_> {
    /// A ratio, where there is one.
    pub fn ratio(&mut self, metric: &str, at: Option<f64>, ratio: Option<&Ratio>) {
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
        assert!(matches!(
            Value::from(&Ratio { ratio: 1.4, low: 1.3, high: 1.5, pairs: 5 }),
            Value::Single(_)
        ));
        let six = Value::from(&Ratio { ratio: 1.4, low: 1.3, high: 1.5, pairs: 6 });
        assert_eq!(six, Value::Estimate { value: 1.4, low: 1.3, high: 1.5 });
    }
}
