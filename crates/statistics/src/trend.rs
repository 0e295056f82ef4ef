//! How fast a series rises: the median of the slopes between all pairs of its points (Theil 1950, Sen 1968), which a
//! fifth of outliers does not move, with an interval.
//!
//! Values of a series in time depend on those before them, so intervals for independent points would be far too
//! narrow. The interval is that of a block bootstrap (Künsch 1989) of the *steps* from point to point: series are made of
//! blocks of neighbouring steps, drawn with replacement, and the slope of each is computed. A series that wanders has an
//! interval that holds 0; one whose every part rises has not.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Series drawn for an interval.
const DRAWN: usize = 200;
/// Steps of a block, as a share of all: long enough for what repeats within a tenth of the run.
const BLOCKS: usize = 10;
/// Fewest points of which a slope has an interval.
const FEWEST_POINTS: usize = 20;

/// A slope, y over x, and the interval that holds it with 95 % confidence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trend {
    /// The slope.
    pub slope: f64,
    /// The interval's lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// The trend of a series whose x rise. None of fewer than 20 points, and where x does not rise.
pub fn trend(points: &[(f64, f64)]) -> Option<Trend> {
    let (first, last) = (points.first()?, points.last()?);
    if points.len() < FEWEST_POINTS || last.0 <= first.0 {
        return None;
    }
    let steps: Vec<(f64, f64)> =
        points.windows(2).map(|pair| (pair[1].0 - pair[0].0, pair[1].1 - pair[0].1)).collect();
    let mut slopes = Vec::with_capacity(points.len() * points.len() / 2);
    let slope = median_slope(points, &mut slopes)?;
    // The same numbers in every run: what a series shows does not depend on chance.
    let mut random = ChaCha8Rng::seed_from_u64(points.len() as u64);
    let length = steps.len().div_ceil(BLOCKS);
    let mut drawn: Vec<f64> =
        (0..DRAWN).filter_map(|_| median_slope(&redrawn(&steps, length, &mut random), &mut slopes)).collect();
    drawn.sort_by(f64::total_cmp);
    let (low, high) = (drawn.len() / 40, drawn.len() - 1 - drawn.len() / 40);
    Some(Trend { slope, low: *drawn.get(low)?, high: *drawn.get(high)? })
}

/// A series of as many steps, in blocks of neighbours.
fn redrawn(steps: &[(f64, f64)], length: usize, random: &mut ChaCha8Rng) -> Vec<(f64, f64)> {
    let mut at = (0.0, 0.0);
    let mut series = vec![at];
    while series.len() <= steps.len() {
        let start = random.random_range(0..=steps.len() - length);
        for step in steps[start..start + length].iter().take(steps.len() + 1 - series.len()) {
            at = (at.0 + step.0, at.1 + step.1);
            series.push(at);
        }
    }
    series
}

/// The median of the slopes between all pairs of points whose x differ.
fn median_slope(points: &[(f64, f64)], slopes: &mut Vec<f64>) -> Option<f64> {
    slopes.clear();
    for (at, from) in points.iter().enumerate() {
        let later = points[at + 1..].iter().filter(|to| to.0 > from.0);
        slopes.extend(later.map(|to| (to.1 - from.1) / (to.0 - from.0)));
    }
    if slopes.is_empty() {
        return None;
    }
    let middle = slopes.len() / 2;
    Some(*slopes.select_nth_unstable_by(middle, f64::total_cmp).1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(y: impl Fn(usize) -> f64) -> Vec<(f64, f64)> {
        (0..61).map(|at| (at as f64, y(at))).collect()
    }

    #[test]
    fn a_line_has_its_slope_and_outliers_do_not_move_it() {
        let found = trend(&series(|at| 3.0 * at as f64)).expect("a trend");
        assert_eq!((found.slope, found.low, found.high), (3.0, 3.0, 3.0));
        let with_outliers =
            trend(&series(|at| if at % 7 == 3 { 1e6 } else { 3.0 * at as f64 })).expect("a trend");
        assert!((2.5..3.5).contains(&with_outliers.slope), "{with_outliers:?}");
    }

    #[test]
    fn a_series_that_repeats_does_not_rise() {
        let saw = trend(&series(|at| (at % 6) as f64)).expect("a trend");
        assert!(saw.low <= 0.0 && saw.high >= 0.0, "{saw:?}");
        let still = trend(&series(|_| 5.0)).expect("a trend");
        assert_eq!((still.slope, still.low, still.high), (0.0, 0.0, 0.0));
    }

    /// Independent points would claim a trend of most of these.
    #[test]
    fn series_that_wander_rarely_rise() {
        let mut claims = 0;
        for seed in 0..40 {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            let mut at = 0.0;
            let walk: Vec<(f64, f64)> = (0..61)
                .map(|x| {
                    at += random.random_range(-1.0..1.0);
                    (f64::from(x), at)
                })
                .collect();
            claims += usize::from(trend(&walk).is_some_and(|found| found.low > 0.0));
        }
        assert!(claims <= 5, "{claims}");
    }

    #[test]
    fn a_leak_under_a_saw_is_seen_and_few_points_have_no_trend() {
        let found = trend(&series(|at| at as f64 + (at % 5) as f64)).expect("a trend");
        assert!(found.low > 0.0 && found.low <= 1.0 && found.high >= 1.0, "{found:?}");
        assert_eq!(trend(&series(|at| at as f64)[..19]), None);
        assert_eq!(trend(&[(1.0, 2.0); 30]), None);
    }
}
