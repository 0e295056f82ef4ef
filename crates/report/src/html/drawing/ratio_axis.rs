//! The axis on which ratios are drawn: logarithmic, since half and twice are equally far from 1, with ticks that a
//! reader would choose.

use super::amount_axis::round_numbers;

/// Ticks that are enough.
const MOST: usize = 7;

/// Ends and ticks of a logarithmic axis that holds every given ratio and 1.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RatioAxis {
    /// Ends, as ratios.
    pub ends: (f64, f64),
    /// Ticks, as ratios, 1 among them.
    pub ticks: Vec<f64>,
}

impl RatioAxis {
    /// Fits an axis; ratios that are not positive and finite are skipped.
    pub fn around(ratios: impl IntoIterator<Item = f64>) -> Self {
        let (mut low, mut high) = (0.97_f64, 1.03_f64);
        for ratio in ratios.into_iter().filter(|ratio| ratio.is_finite() && *ratio > 0.0) {
            (low, high) = (low.min(ratio), high.max(ratio));
        }
        let margin = (high / low).powf(0.04);
        let ends = (low / margin, high * margin);
        RatioAxis { ends, ticks: ticks(ends.0, ends.1) }
    }

    /// Labels of the ticks.
    pub fn labels(&self) -> Vec<String> {
        self.ticks.iter().map(|tick| format!("{}", (tick * 1e6).round() / 1e6)).collect()
    }
}

fn ticks(low: f64, high: f64) -> Vec<f64> {
    // Even steps around 1 while the ends are close, then round numbers, then powers of ten.
    if high / low < 3.0 {
        let steps = [0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5];
        let step = steps.into_iter().find(|step| (high - low) / step <= 6.0).unwrap_or(0.5);
        let first = ((low - 1.0) / step).ceil() as i64;
        let last = ((high - 1.0) / step).floor() as i64;
        return (first..=last).map(|n| 1.0 + n as f64 * step).collect();
    }
    round_numbers((low, high), vec![], MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_few_and_hold_one() {
        for (low, high) in
            [(0.99, 1.01), (0.9, 1.05), (0.5, 1.2), (0.8, 2.4), (0.3, 7.0), (0.02, 60.0), (1e-5, 1e5)]
        {
            let axis = RatioAxis::around([low, high]);
            let count = axis.ticks.len();
            assert!((1..=7).contains(&count), "{low} {high}: {:?}", axis.ticks);
            assert!(
                axis.ticks.iter().any(|tick| (tick - 1.0).abs() < 1e-9),
                "{low} {high}: {:?}",
                axis.ticks
            );
            assert!(axis.ends.0 < low && axis.ends.1 > high);
        }
        assert_eq!(RatioAxis::around([0.9, 1.05]).labels(), ["0.9", "0.95", "1", "1.05"]);
        assert_eq!(RatioAxis::around([f64::NAN, 0.0, -1.0]), RatioAxis::around([]));
    }
}
