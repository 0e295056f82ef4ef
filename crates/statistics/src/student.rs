//! Student's t: intervals of means and of slopes.

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::ALPHA;

/// More values than these are not asked for; with many more, the search for a quantile does not end.
const MOST_NEEDED: f64 = 100_000.0;

/// How many standard errors an interval reaches to either side, of `family` intervals that hold together (Bonferroni).
pub fn reach(freedom: usize, family: usize) -> f64 {
    let side = ALPHA / (2.0 * family.max(1) as f64);
    StudentsT::new(0.0, 1.0, freedom.max(1) as f64).map_or(f64::INFINITY, |t| t.inverse_cdf(1.0 - side))
}

/// About how many values bring an interval, which reaches `half` to either side with `count` of them, down to `distance`, of
/// `family` that hold together and with the same spread; `None` where it is more than anyone has.
pub fn needed(count: usize, half: f64, distance: f64, family: usize) -> Option<f64> {
    let share = half / distance;
    let known = reach(count.checked_sub(1)?, family);
    let at = |reach: f64| count as f64 * (share * reach / known).powi(2);
    // The reach of more values is shorter; how much so hardly changes with how many more.
    let first = Some(at(known)).filter(|first| *first <= MOST_NEEDED)?;
    Some(at(reach(first as usize, family)).ceil())
}

/// What a mean and its interval need of values, which need not be kept.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Summary {
    /// How many values.
    pub count: usize,
    mean: f64,
    /// Sum of the squared differences from the mean.
    squares: f64,
}

impl Summary {
    /// Of these values.
    pub fn of(values: &[f64]) -> Summary {
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        let squares = values.iter().map(|value| (value - mean).powi(2)).sum();
        Summary { count: values.len(), mean, squares }
    }

    /// Of the values of both (Chan, Golub and LeVeque 1983).
    pub fn merged(self, other: Summary) -> Summary {
        let count = self.count + other.count;
        let (n, one, two) = (count.max(1) as f64, self.count as f64, other.count as f64);
        let apart = other.mean - self.mean;
        let mean = self.mean + apart * two / n;
        Summary { count, mean, squares: self.squares + other.squares + apart * apart * one * two / n }
    }

    /// The mean, and by how much its interval reaches to either side; `None` below two values.
    pub fn mean(self, family: usize) -> Option<(f64, f64)> {
        let variance = self.variance_of_mean()?;
        Some((self.mean, reach(self.count - 1, family) * variance.sqrt()))
    }

    fn variance_of_mean(self) -> Option<f64> {
        (self.count >= 2).then(|| self.squares / (self.count - 1) as f64 / self.count as f64)
    }
}

/// A mean, and by how much its interval reaches to either side; `None` below two values.
pub fn mean(values: &[f64], family: usize) -> Option<(f64, f64)> {
    Summary::of(values).mean(family)
}

/// The mean of `b` less that of `a`, and by how much its interval reaches to either side, without a variance in common
/// (Welch) and with the freedom of the shorter one; `None` where one has fewer than two values.
pub fn difference(a: Summary, b: Summary, family: usize) -> Option<(f64, f64)> {
    let (of_a, of_b) = (a.variance_of_mean()?, b.variance_of_mean()?);
    let freedom = a.count.min(b.count) - 1;
    Some((b.mean - a.mean, reach(freedom, family) * (of_a + of_b).sqrt()))
}

/// Least squares of y on x: slope, and by how much its interval reaches to either side (`None` below three points).
/// Nothing where all x are one.
pub fn slope(points: &[(f64, f64)], family: usize) -> Option<(f64, Option<f64>)> {
    let n = points.len() as f64;
    let (x, y) = (
        points.iter().map(|point| point.0).sum::<f64>() / n,
        points.iter().map(|point| point.1).sum::<f64>() / n,
    );
    let squares = points.iter().map(|point| (point.0 - x).powi(2)).sum::<f64>();
    if points.len() < 2 || squares <= 1e-12 {
        return None;
    }
    let slope = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum::<f64>() / squares;
    if points.len() < 3 {
        return Some((slope, None));
    }
    let rest = points.iter().map(|point| (point.1 - y - slope * (point.0 - x)).powi(2)).sum::<f64>();
    let error = (rest / (n - 2.0) / squares).sqrt();
    Some((slope, Some(reach(points.len() - 2, family) * error)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop, prop_assert, proptest};

    proptest! {
        #[test]
        fn merged_summaries_are_that_of_all_values(
            values in prop::collection::vec(-9.0f64..9.0, 0..20), at in 0usize..20,
        ) {
            let (one, two) = values.split_at(at.min(values.len()));
            let (merged, all) = (Summary::of(one).merged(Summary::of(two)), Summary::of(&values));
            prop_assert!(merged.count == all.count);
            prop_assert!((merged.mean - all.mean).abs() < 1e-9 && (merged.squares - all.squares).abs() < 1e-9);
        }
    }

    #[test]
    fn the_reach_is_that_of_the_tables() {
        assert!((reach(9, 1) - 2.262).abs() < 1e-3);
        assert!((reach(5, 5) - 4.032).abs() < 1e-3, "0.005 on either side");
    }

    /// The interval of what is needed reaches as far as was requested, to a tenth.
    #[test]
    fn what_is_needed_brings_an_interval_down_to_the_distance() {
        for (count, half, distance, family) in [(6, 0.2, 0.1, 1), (10, 0.05, 0.02, 6), (20, 0.3, 0.29, 3)] {
            let needed = needed(count, half, distance, family).expect("a number");
            let width = |n: usize| reach(n - 1, family) / (n as f64).sqrt();
            let reached = half * width(needed as usize) / width(count);
            assert!((reached / distance - 1.0).abs() < 0.1 && needed > count as f64, "{needed}: {reached}");
        }
        assert_eq!(
            (needed(10, 0.1, 0.0, 1), needed(0, 0.1, 0.1, 1)),
            (None, None),
            "a distance of none took forever"
        );
        assert!(needed(10, 0.1, 0.0011, 20).is_some() && needed(10, 0.1, 0.0009, 20).is_none());
    }

    #[test]
    fn a_line_has_its_slope_and_no_width() {
        let points: Vec<(f64, f64)> = (1..6).map(|x| (f64::from(x), 3.0 * f64::from(x) - 1.0)).collect();
        let (slope, half) = slope(&points, 1).expect("five points");
        assert!((slope - 3.0).abs() < 1e-9 && half.is_some_and(|half| half < 1e-6));
    }

    #[test]
    fn two_points_have_a_slope_without_an_interval_and_one_place_has_none() {
        assert_eq!(slope(&[(0.0, 0.0), (1.0, 2.0)], 1), Some((2.0, None)));
        assert_eq!(slope(&[(1.0, 0.0), (1.0, 2.0), (1.0, 3.0)], 1), None);
    }

    #[test]
    fn a_difference_has_the_spread_of_both() {
        let of = Summary::of;
        assert_eq!(difference(of(&[1.0]), of(&[1.0, 2.0]), 1), None);
        let (found, half) = difference(of(&[1.0, 3.0]), of(&[5.0, 5.0, 5.0]), 1).expect("enough");
        assert!((found - 3.0).abs() < 1e-12 && (half - 12.706).abs() < 1e-2, "one degree of freedom: {half}");
    }

    #[test]
    fn a_mean_of_one_has_no_interval() {
        assert_eq!(mean(&[1.0], 1), None);
        let (mean, half) = mean(&[1.0, 2.0, 3.0], 1).expect("three");
        assert!((mean - 2.0).abs() < 1e-12 && (half - 4.303 / 3f64.sqrt()).abs() < 1e-3);
    }
}
