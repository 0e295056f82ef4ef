//! Student's t: intervals of means and of slopes.

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::ALPHA;

/// How many standard errors an interval reaches to either side, of `family` intervals that hold together (Bonferroni).
pub fn reach(freedom: usize, family: usize) -> f64 {
    let side = ALPHA / (2.0 * family.max(1) as f64);
    StudentsT::new(0.0, 1.0, freedom.max(1) as f64).map_or(f64::INFINITY, |t| t.inverse_cdf(1.0 - side))
}

/// A mean, and by how much its interval reaches to either side; `None` below two values.
pub fn mean(values: &[f64], family: usize) -> Option<(f64, f64)> {
    let (mean, variance) = variance_of_mean(values)?;
    Some((mean, reach(values.len() - 1, family) * variance.sqrt()))
}

/// The mean of `b` less that of `a`, and by how much its interval reaches to either side, without a variance in common
/// (Welch) and with the freedom of the shorter one; `None` where one has fewer than two values.
pub fn difference(a: &[f64], b: &[f64], family: usize) -> Option<(f64, f64)> {
    let (of_a, of_b) = (variance_of_mean(a)?, variance_of_mean(b)?);
    let freedom = a.len().min(b.len()) - 1;
    Some((of_b.0 - of_a.0, reach(freedom, family) * (of_a.1 + of_b.1).sqrt()))
}

/// The mean and its variance.
fn variance_of_mean(values: &[f64]) -> Option<(f64, f64)> {
    let n = values.len();
    if n < 2 {
        return None;
    }
    let mean = values.iter().sum::<f64>() / n as f64;
    let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    Some((mean, squares / (n - 1) as f64 / n as f64))
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

    #[test]
    fn the_reach_is_that_of_the_tables() {
        assert!((reach(9, 1) - 2.262).abs() < 1e-3);
        assert!((reach(5, 5) - 4.032).abs() < 1e-3, "0.005 on either side");
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
        assert_eq!(difference(&[1.0], &[1.0, 2.0], 1), None);
        let (found, half) = difference(&[1.0, 3.0], &[5.0, 5.0, 5.0], 1).expect("enough");
        assert!((found - 3.0).abs() < 1e-12 && (half - 12.706).abs() < 1e-2, "one degree of freedom: {half}");
    }

    #[test]
    fn a_mean_of_one_has_no_interval() {
        assert_eq!(mean(&[1.0], 1), None);
        let (mean, half) = mean(&[1.0, 2.0, 3.0], 1).expect("three");
        assert!((mean - 2.0).abs() < 1e-12 && (half - 4.303 / 3f64.sqrt()).abs() < 1e-3);
    }
}
