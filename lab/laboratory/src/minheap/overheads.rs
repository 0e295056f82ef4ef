//! Ratios of smallest heaps to baselines, and their geometric means over programs.

use heaptoll_statistics::{geometric_mean, median, student};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A ratio with the ends of what it may be.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Overhead {
    /// Smallest heap over baseline.
    pub ratio: f64,
    /// The largest heap that failed, over the largest footprint that the baseline reported.
    pub low: f64,
    /// The smallest heap, over the smallest footprint that the baseline reported.
    pub high: f64,
}

/// A geometric mean over programs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Mean {
    /// The mean.
    pub ratio: f64,
    /// Its 95 % interval by Student's t over the programs' logarithms; with one program the ratio itself.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// Programs in it.
    pub programs: usize,
}

/// A smallest heap over the footprints that runs of a baseline reported, bytes; `None` where there is none, or it is 0.
/// `heap` and `failed_at` bound the smallest heap from above and below.
pub fn overheads(heap: u64, failed_at: u64, footprints: &[u64]) -> Option<Overhead> {
    let most = *footprints.iter().max()?;
    let least = *footprints.iter().min().filter(|least| **least > 0)?;
    let middle = median(&footprints.iter().map(|b| *b as f64).collect::<Vec<f64>>());
    Some(Overhead {
        ratio: heap as f64 / middle,
        low: failed_at.min(heap) as f64 / most as f64,
        high: heap as f64 / least as f64,
    })
}

impl Mean {
    /// The geometric mean of ratios, one a program; `None` without any, or where one is not above 0.
    pub fn of(ratios: &[f64]) -> Option<Mean> {
        if ratios.iter().any(|ratio| !ratio.is_finite() || *ratio <= 0.0) {
            return None;
        }
        let ratio = geometric_mean(ratios.iter().copied())?;
        let logs: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
        let factor = student::mean(&logs, 1).map_or(1.0, |(_, half)| half.exp());
        Some(Mean { ratio, low: ratio / factor, high: ratio * factor, programs: ratios.len() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_overhead_lies_within_its_ends(
            heap in 1u64..1 << 40, below in 0u64..1 << 20, footprints in prop::collection::vec(1u64..1 << 40, 1..5),
        ) {
            let one = overheads(heap, heap.saturating_sub(below), &footprints).expect("footprints");
            prop_assert!(one.low <= one.ratio * 1.000_001 && one.ratio <= one.high * 1.000_001, "{:?}", one);
        }

        #[test]
        fn the_mean_of_reciprocals_is_the_reciprocal(ratios in prop::collection::vec(0.1f64..10.0, 1..20)) {
            let mean = Mean::of(&ratios).expect("ratios");
            let turned: Vec<f64> = ratios.iter().map(|ratio| 1.0 / ratio).collect();
            let back = Mean::of(&turned).expect("ratios");
            prop_assert!((mean.ratio * back.ratio - 1.0).abs() < 1e-9);
            prop_assert!((mean.low * back.high - 1.0).abs() < 1e-9);
            prop_assert!(mean.low <= mean.ratio && mean.ratio <= mean.high);
        }
    }

    #[test]
    fn known_means_and_what_has_none() {
        let mean = Mean::of(&[0.5, 2.0]).expect("ratios");
        assert!((mean.ratio - 1.0).abs() < 1e-12 && mean.programs == 2 && mean.low < 0.01, "{mean:?}");
        assert_eq!(Mean::of(&[1.25]).map(|mean| (mean.ratio, mean.low, mean.high)), Some((1.25, 1.25, 1.25)));
        assert_eq!(Mean::of(&[]), None);
        assert_eq!(Mean::of(&[1.0, 0.0]), None);
        assert_eq!(overheads(4096, 0, &[]), None);
        assert_eq!(overheads(4096, 0, &[0, 4096]), None);
    }
}
