//! The points of a series that a chart can show.

use crate::document::{Axis, Chart, Form, Role, Series};

/// More points than a line of this width can show are thinned, keeping lows and highs.
const POINTS: usize = 1000;
/// The most marks that are shown one by one.
const MARKS: usize = 20_000;

/// The points of a series that can be shown, thinned where there are too many; stacks only together, so they stay whole,
/// and so do series with a text a point, as long as they are few.
pub(super) fn shown(series: &Series, chart: &Chart) -> Vec<(f64, f64)> {
    let points = fitting(&series.points, chart);
    let most = match (chart.form, series.role) {
        (Form::Stacked, _) | (_, Role::Failures) => usize::MAX,
        (Form::Points, _) => MARKS,
        _ => POINTS,
    };
    if points.len() <= most { points } else { thinned(&points, most) }
}

/// The points that the chart's axes have a place for.
pub(super) fn fitting(points: &[(f64, f64)], chart: &Chart) -> Vec<(f64, f64)> {
    points
        .iter()
        .filter(|(x, y)| fits(&chart.x, *x) && fits(&chart.y, *y))
        .map(|&(x, y)| (rounded(x), rounded(y)))
        .collect()
}

/// Whether an axis has a place for it.
pub(super) fn fits(axis: &Axis, value: f64) -> bool {
    value.is_finite() && (!axis.log || value > 0.0)
}

/// About `most` points, the lowest and the highest of each stretch and the last, so that no peak is lost.
fn thinned(points: &[(f64, f64)], most: usize) -> Vec<(f64, f64)> {
    let chunk = points.len().div_ceil((most / 2).max(1)).max(1);
    let mut kept = Vec::with_capacity(most + 2);
    for points in points.chunks(chunk) {
        let low = points.iter().min_by(|a, b| a.1.total_cmp(&b.1));
        let high = points.iter().max_by(|a, b| a.1.total_cmp(&b.1));
        let mut ends: Vec<(f64, f64)> = low.into_iter().chain(high).copied().collect();
        ends.sort_by(|a, b| a.0.total_cmp(&b.0));
        ends.dedup();
        kept.extend(ends);
    }
    kept.extend(points.last().copied());
    kept
}

/// Five significant digits: what a chart can show, without the other eleven in the file.
pub(super) fn rounded(value: f64) -> f64 {
    format!("{value:.4e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_the_peak_and_the_end() {
        let points: Vec<(f64, f64)> =
            (0..10_000).map(|i| (f64::from(i) / 100.0, if i == 4711 { 976.0 } else { 2.0 })).collect();
        let kept = thinned(&points, 400);
        assert!(kept.len() <= 401, "{}", kept.len());
        assert!(kept.contains(&(47.11, 976.0)) && kept.last() == Some(&(99.99, 2.0)), "{kept:?}");
        assert!(kept.is_sorted_by(|a, b| a.0 <= b.0));
    }

    #[test]
    fn a_logarithmic_axis_leaves_out_what_it_cannot_show() {
        let axis = Axis { log: true, ..Axis::default() };
        let mut chart = Chart {
            title: String::new(),
            caption: String::new(),
            form: Form::Steps,
            x: axis.clone(),
            y: axis,
            series: vec![],
        };
        let series = |points: &[(f64, f64)]| Series { points: points.into(), ..Series::default() };
        assert_eq!(
            shown(&series(&[(0.0, 1.0), (10.0, 0.5), (100.0, 0.25)]), &chart),
            [(10.0, 0.5), (100.0, 0.25)]
        );
        assert_eq!(shown(&series(&[(1.0, 0.75), (f64::NAN, 1.0)]), &chart), [(1.0, 0.75)]);
        chart.x.log = false;
        let long: Vec<(f64, f64)> =
            (0..50_000).map(|i| (f64::from(i), if i == 4711 { 9.0 } else { 1.0 })).collect();
        let kept = shown(&series(&long), &chart);
        assert!(kept.len() <= POINTS + 1 && kept.contains(&(4711.0, 9.0)), "{}", kept.len());
    }
}
