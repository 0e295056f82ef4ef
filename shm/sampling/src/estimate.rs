//! Sums over samples, and how far they are certain.

use crate::weight::Weight;

/// Standard errors to either side of a 95 % interval.
const REACH: f64 = 1.959_963_984_540_054;

/// An estimate: of the allocations of a call stack, or of those that are live.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Estimate {
    /// Sampled objects.
    pub samples: u64,
    /// Estimated objects.
    pub objects: f64,
    /// Estimated bytes, as requested.
    pub bytes: f64,
    /// Variance of the objects.
    pub objects_variance: f64,
    /// Variance of the bytes, bytes².
    pub bytes_variance: f64,
}

impl Estimate {
    /// With one more sample.
    #[must_use]
    pub fn with(self, weight: &Weight) -> Estimate {
        self.plus(Estimate {
            samples: 1,
            objects: weight.objects,
            bytes: weight.bytes,
            objects_variance: weight.objects_variance,
            bytes_variance: weight.bytes_variance,
        })
    }

    /// The sum of two.
    #[must_use]
    pub fn plus(self, other: Estimate) -> Estimate {
        Estimate {
            samples: self.samples.saturating_add(other.samples),
            objects: self.objects + other.objects,
            bytes: self.bytes + other.bytes,
            objects_variance: self.objects_variance + other.objects_variance,
            bytes_variance: self.bytes_variance + other.bytes_variance,
        }
    }

    /// What is left of it without a part of it. Nothing is less than 0, and without samples all is 0: sums of floating
    /// point that were made in another order differ in their last digits.
    #[must_use]
    pub fn minus(self, part: Estimate) -> Estimate {
        let samples = self.samples.saturating_sub(part.samples);
        if samples == 0 {
            return Estimate::default();
        }
        Estimate {
            samples,
            objects: (self.objects - part.objects).max(0.0),
            bytes: (self.bytes - part.bytes).max(0.0),
            objects_variance: (self.objects_variance - part.objects_variance).max(0.0),
            bytes_variance: (self.bytes_variance - part.bytes_variance).max(0.0),
        }
    }

    /// The 95 % interval of the bytes.
    pub fn bytes_interval(&self) -> (f64, f64) {
        interval(self.bytes, self.bytes_variance)
    }

    /// The 95 % interval of the objects.
    pub fn objects_interval(&self) -> (f64, f64) {
        interval(self.objects, self.objects_variance)
    }
}

/// The 95 % interval of an estimate of this variance.
///
/// Most sites have few samples, where a normal interval around the estimate is too short above and too long below. So the
/// estimate is taken for a number of samples n = sum² / variance of equal weight variance / sum, of which this is the
/// score interval of a Poisson count: all means whose distance from n is within the reach of *their* standard error.
pub fn interval(sum: f64, variance: f64) -> (f64, f64) {
    interval_within(sum, variance, REACH)
}

/// The same, to so many standard errors to either side.
pub fn interval_within(sum: f64, variance: f64, reach: f64) -> (f64, f64) {
    if sum <= 0.0 || variance <= 0.0 {
        return (sum.max(0.0), sum.max(0.0));
    }
    let weight = variance / sum;
    let count = sum / weight;
    let middle = count + reach * reach / 2.0;
    let half = reach * libm::sqrt(count + reach * reach / 4.0);
    (weight * (middle - half), weight * (middle + half))
}

/// Bytes of small objects below which 95 % of the call stacks of which nothing was sampled are.
pub fn largest_unseen(mean: u64) -> f64 {
    // -ln(0.05): the probability of no sample point in so many means is 5 %.
    if mean <= 1 { 0.0 } else { mean as f64 * 2.995_732_273_553_991 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(weights: &[(u64, usize)], mean: u64) -> Estimate {
        weights.iter().fold(Estimate::default(), |sum, &(bytes, count)| {
            (0..count).fold(sum, |sum, _| sum.with(&Weight::of(bytes, mean)))
        })
    }

    #[test]
    fn intervals_hold_the_estimate_and_nothing_below_zero() {
        for count in [1, 2, 5, 100, 10_000] {
            let estimate = of(&[(64, count)], 1 << 19);
            let (low, high) = estimate.bytes_interval();
            assert!(0.0 < low && low < estimate.bytes && estimate.bytes < high, "{estimate:?} {low} {high}");
        }
        // The score interval of a count of 10 is 5.4 to 18.4.
        let (low, high) = of(&[(1, 10)], 1 << 20).bytes_interval();
        let mib = (1 << 20) as f64;
        assert!((low / mib - 5.432).abs() < 0.01 && (high / mib - 18.409).abs() < 0.01, "{low} {high}");
    }

    #[test]
    fn what_is_always_sampled_is_certain() {
        let estimate = of(&[(1 << 30, 3)], 1 << 19);
        assert_eq!(estimate.bytes_interval(), (estimate.bytes, estimate.bytes));
        assert_eq!(of(&[(5, 7)], 1).bytes_interval(), (35.0, 35.0));
        assert_eq!(Estimate::default().objects_interval(), (0.0, 0.0));
    }

    #[test]
    fn a_part_is_taken_away_without_a_rest() {
        let (all, part) = (of(&[(100, 10), (3, 5)], 4096), of(&[(100, 10)], 4096));
        let left = all.minus(part);
        assert_eq!(left.samples, 5);
        assert!((left.bytes / of(&[(3, 5)], 4096).bytes - 1.0).abs() < 1e-9);
        assert_eq!(all.minus(all), Estimate::default());
        assert_eq!(part.minus(all), Estimate::default(), "more was taken than there was");
    }
}
