//! Ratios of smallest heaps to baselines, and their geometric means over programs.

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
    let middle = heaptoll_statistics::median(&footprints.iter().map(|b| *b as f64).collect::<Vec<f64>>());
    Some(Overhead {
        ratio: heap as f64 / middle,
        low: failed_at.min(heap) as f64 / most as f64,
        high: heap as f64 / least as f64,
    })
}

/// 97.5 % points of Student's t by degrees of freedom, from 1.
const T: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/// The geometric mean of ratios, one a program; `None` without any, or where one is not above 0.
pub fn geometric_mean(ratios: &[f64]) -> Option<Mean> {
    let n = ratios.len();
    if n == 0 || ratios.iter().any(|ratio| !ratio.is_finite() || *ratio <= 0.0) {
        return None;
    }
    let logs: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
    let mean = logs.iter().sum::<f64>() / n as f64;
    let half = match n {
        1 => 0.0,
        _ => {
            let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (n - 1) as f64;
            T.get(n - 2).copied().unwrap_or(1.96) * (variance / n as f64).sqrt()
        }
    };
    Some(Mean { ratio: mean.exp(), low: (mean - half).exp(), high: (mean + half).exp(), programs: n })
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
            let mean = geometric_mean(&ratios).expect("ratios");
            let turned: Vec<f64> = ratios.iter().map(|ratio| 1.0 / ratio).collect();
            let back = geometric_mean(&turned).expect("ratios");
            prop_assert!((mean.ratio * back.ratio - 1.0).abs() < 1e-9);
            prop_assert!((mean.low * back.high - 1.0).abs() < 1e-9);
            prop_assert!(mean.low <= mean.ratio && mean.ratio <= mean.high);
        }
    }

    #[test]
    fn known_means_and_what_has_none() {
        let mean = geometric_mean(&[0.5, 2.0]).expect("ratios");
        assert!((mean.ratio - 1.0).abs() < 1e-12 && mean.programs == 2 && mean.low < 0.01, "{mean:?}");
        assert_eq!(
            geometric_mean(&[1.25]).map(|mean| (mean.ratio, mean.low, mean.high)),
            Some((1.25, 1.25, 1.25))
        );
        assert_eq!(geometric_mean(&[]), None);
        assert_eq!(geometric_mean(&[1.0, 0.0]), None);
        assert_eq!(overheads(4096, 0, &[]), None);
        assert_eq!(overheads(4096, 0, &[0, 4096]), None);
    }
}
