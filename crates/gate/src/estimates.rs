//! Differences of sampled profiles: each with the interval that the number of its samples gives. All intervals of a
//! comparison hold together, so that a comparison of a profile with its like finds nothing.

use heaptoll_record::sampling::interval_within;
use heaptoll_statistics::ALPHA;
use heaptoll_statistics::student::reach;

use super::site_sums::Sums;

/// Degrees of freedom at which Student's t is the normal distribution.
const NORMAL: usize = 1_000_000;

/// A figure of one call site on one side, with its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Estimated {
    value: f64,
    low: f64,
    high: f64,
}

/// How far intervals reach.
#[derive(Clone, Copy)]
pub(super) struct Reach {
    errors: f64,
    /// Of a call site, samples pass over this many of their mean distances at most.
    unseen: f64,
}

impl Reach {
    /// Of `family` intervals, which all hold together with 95 % probability.
    pub(super) fn of(family: usize) -> Reach {
        Reach { errors: reach(NORMAL, family), unseen: (family.max(1) as f64 / ALPHA).ln() }
    }
}

/// A figure of sums: its value, its variance, and whether it counts objects.
#[derive(Clone, Copy)]
pub(super) struct Figure {
    pub(super) value: fn(&Sums) -> u64,
    pub(super) variance: fn(&Sums) -> f64,
    pub(super) counts_objects: bool,
}

impl Figure {
    /// The figure of a side. `mean_bytes` is the mean distance of its samples; without it the figure is exact. Samples may
    /// pass over some more, in objects as small as the smallest of the call site on either side.
    pub(super) fn of(self, sums: &Sums, other: &Sums, mean_bytes: Option<u64>, reach: Reach) -> Estimated {
        let value = (self.value)(sums) as f64;
        let Some(mean_bytes) = mean_bytes else { return Estimated { value, low: value, high: value } };
        let (low, high) = interval_within(value, (self.variance)(sums), reach.errors);
        let bytes = mean_bytes as f64 * reach.unseen;
        let least = [sums.least_size, other.least_size].into_iter().flatten().fold(f64::INFINITY, f64::min);
        let unseen = if self.counts_objects { bytes / least.max(1.0) } else { bytes };
        Estimated { value, low, high: high.max(value + unseen) }
    }
}

impl Estimated {
    /// The interval of `new` less `base`, from those of both (Zou and Donner 2008, equation 3).
    pub(super) fn difference(base: Estimated, new: Estimated) -> [i64; 2] {
        let difference = new.value - base.value;
        let low = (new.value - new.low).hypot(base.high - base.value);
        let high = (new.high - new.value).hypot(base.value - base.low);
        [(difference - low) as i64, (difference + high) as i64]
    }
}

#[cfg(test)]
mod tests {
    use super::super::site_sums::variances;
    use super::*;

    const BYTES: Figure =
        Figure { value: |sums| sums.exit, variance: |sums| sums.variance.exit, counts_objects: false };
    const CALLS: Figure =
        Figure { value: |sums| sums.calls, variance: |sums| sums.variance.calls, counts_objects: true };
    const MEAN: Option<u64> = Some(1 << 19);

    /// A call site with `count` samples of objects of `size` bytes.
    fn samples(count: u64, size: u64) -> Sums {
        let bytes = (count << 19).max(size * count);
        let mut sums = Sums { exit: bytes, bytes, calls: bytes / size, ..Sums::default() };
        (sums.variance.calls, sums.variance.exit) = variances(sums.calls, bytes, MEAN);
        sums.least_size = (count > 0).then_some(size as f64);
        sums
    }

    fn difference(figure: Figure, base: &Sums, new: &Sums, mean: Option<u64>, family: usize) -> [i64; 2] {
        let reach = Reach::of(family);
        Estimated::difference(figure.of(base, new, mean, reach), figure.of(new, base, mean, reach))
    }

    fn between(base: u64, new: u64, family: usize) -> [f64; 2] {
        difference(BYTES, &samples(base, 64), &samples(new, 64), MEAN, family)
            .map(|bytes| bytes as f64 / f64::from(1 << 19))
    }

    #[test]
    fn the_interval_of_a_difference_is_that_of_the_samples_of_both() {
        // 10 and 20 samples: the score intervals 5.43 to 18.4 and 12.9 to 30.9.
        let [low, high] = between(10, 20, 1);
        assert!((low + 1.0).abs() < 0.2 && (high - 21.8).abs() < 0.2, "{low} {high}");
        let [low, high] = between(3, 100, 1);
        assert!(low > 75.0 && high < 125.0, "{low} {high}");
    }

    /// Before, 10 of 29 comparisons of a program with itself found a change.
    #[test]
    fn intervals_are_the_wider_the_more_of_them_hold_together() {
        assert!(between(10, 25, 1)[0] > 0.0 && between(10, 25, 20)[0] < 0.0);
        assert!(between(10, 60, 20)[0] > 0.0);
    }

    /// Before, two samples were "262,148 more calls", and one of a small buffer next to a large block "17 more calls".
    #[test]
    fn few_samples_show_nothing_where_the_other_side_may_have_passed_over_as_many() {
        assert!(between(0, 2, 1)[0] < 0.0 && between(0, 14, 1)[0] > 0.0);
        let found = difference(CALLS, &samples(0, 64), &samples(2, 64), MEAN, 1);
        assert!(found[0] < 0 && found[1] > 0, "{found:?}");
        let large = Sums { least_size: Some(1e9), ..samples(1, 1 << 30) };
        let mut both = large;
        both.add(samples(1, 4096));
        let found = difference(CALLS, &large, &both, MEAN, 1);
        assert!(found[0] <= 0 && found[1] > 0, "{found:?}");
    }

    #[test]
    fn exact_sides_have_exact_differences() {
        let found = difference(BYTES, &samples(1, 64), &samples(4, 64), None, 9);
        assert_eq!(found, [3 << 19; 2]);
        assert_eq!(variances(5, 100, None), (0.0, 0.0));
    }
}
