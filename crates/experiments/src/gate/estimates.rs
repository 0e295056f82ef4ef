//! Differences of sampled profiles: each with the interval that the number of its samples gives.

use heaptoll_record::sampling::{interval, largest_unseen};

use super::site_sums::Sums;

/// A figure of one call site on one side, with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Estimated {
    value: f64,
    low: f64,
    high: f64,
}

/// A figure of sums: its value, its variance, and whether it counts objects.
#[derive(Clone, Copy)]
pub(super) struct Figure {
    pub(super) value: fn(&Sums) -> u64,
    pub(super) variance: fn(&Sums) -> f64,
    pub(super) counts_objects: bool,
}

impl Figure {
    /// The figure of a side whose samples are so many bytes apart on average; none: it is exact. Where nothing was
    /// sampled there may be as much as samples pass over, in objects of the size that `other` has.
    pub(super) fn of(self, sums: &Sums, other: &Sums, mean_bytes: Option<u64>) -> Estimated {
        let value = (self.value)(sums) as f64;
        let (low, high) = match mean_bytes {
            None => (value, value),
            Some(mean_bytes) if value == 0.0 => {
                let bytes = largest_unseen(mean_bytes);
                let size = other.bytes as f64 / (other.calls as f64).max(1.0);
                (0.0, if self.counts_objects { bytes / size.max(1.0) } else { bytes })
            }
            Some(_) => interval(value, (self.variance)(sums)),
        };
        Estimated { value, low, high }
    }
}

impl Estimated {
    /// The 95 % interval of `new` less `base`, from those of both (Zou and Donner 2008, equation 3).
    pub(super) fn difference(base: Estimated, new: Estimated) -> [i64; 2] {
        let difference = new.value - base.value;
        let low = (new.value - new.low).hypot(base.high - base.value);
        let high = (new.high - new.value).hypot(base.value - base.low);
        [(difference - low) as i64, (difference + high) as i64]
    }
}

/// The variance of estimated objects, and of their bytes, whose samples are so many bytes apart on average: each object of
/// their mean size is sampled with one probability.
pub(super) fn variances(objects: u64, bytes: u64, mean_bytes: Option<u64>) -> (f64, f64) {
    let Some(mean_bytes) = mean_bytes.filter(|_| objects > 0) else { return (0.0, 0.0) };
    let size = bytes as f64 / objects as f64;
    let sampled = -(-size / mean_bytes as f64).exp_m1();
    // Objects without bytes are never sampled.
    let each = if sampled > 0.0 { (1.0 - sampled) / sampled } else { 0.0 };
    (objects as f64 * each, bytes as f64 * size * each)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: Figure =
        Figure { value: |sums| sums.exit, variance: |sums| sums.variance.exit, counts_objects: false };
    const MEAN: Option<u64> = Some(1 << 19);

    /// So many samples of objects of 64 bytes.
    fn samples(count: u64) -> Sums {
        let bytes = count << 19;
        let mut sums = Sums { exit: bytes, bytes, calls: bytes / 64, ..Sums::default() };
        (sums.variance.calls, sums.variance.exit) = variances(sums.calls, bytes, MEAN);
        sums
    }

    fn between(base: u64, new: u64) -> [f64; 2] {
        let (base, new) = (samples(base), samples(new));
        let found = Estimated::difference(BYTES.of(&base, &new, MEAN), BYTES.of(&new, &base, MEAN));
        found.map(|bytes| bytes as f64 / f64::from(1 << 19))
    }

    #[test]
    fn the_interval_of_a_difference_is_that_of_the_samples_of_both() {
        // 10 and 20 samples: the score intervals 5.43 to 18.4 and 12.9 to 30.9.
        let [low, high] = between(10, 20);
        assert!((low + 1.0).abs() < 0.2 && (high - 21.8).abs() < 0.2, "{low} {high}");
        let [low, high] = between(3, 100);
        assert!(low > 75.0 && high < 120.0, "{low} {high}");
    }

    /// Before, two samples were "262,148 more calls".
    #[test]
    fn few_samples_show_nothing_where_the_other_side_may_have_passed_over_as_many() {
        assert!(between(0, 2)[0] < 0.0 && between(0, 12)[0] > 0.0);
        let calls =
            Figure { value: |sums| sums.calls, variance: |sums| sums.variance.calls, counts_objects: true };
        let (none, some) = (samples(0), samples(2));
        let found = Estimated::difference(calls.of(&none, &some, MEAN), calls.of(&some, &none, MEAN));
        assert!(found[0] < 0 && found[1] > 0, "{found:?}");
    }

    #[test]
    fn exact_sides_have_exact_differences() {
        let (base, new) = (samples(1), samples(4));
        assert_eq!(
            Estimated::difference(BYTES.of(&base, &new, None), BYTES.of(&new, &base, None)),
            [3 << 19; 2]
        );
        assert_eq!(variances(5, 100, None), (0.0, 0.0));
    }
}
