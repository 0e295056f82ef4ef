//! Ratios with their intervals, a place one below the other.

use super::appearance::ink;
use super::picture::{Picture, Scale, Shape, Trace};
use super::ratio_axis::RatioAxis;
use super::scales::named;
use super::traces::notes;
use crate::document::{Chart, Series};
use crate::format::printable;
use crate::html::palette::Palette;

/// The share of a place that the series in it take.
const GROUP: f64 = 0.72;

/// The chart; without a trace where there is no ratio.
pub(super) fn picture(chart: &Chart, palette: &Palette) -> Picture {
    let is_shared = shares_places(chart);
    let step = GROUP / chart.series.len().max(1) as f64;
    let trace = |(index, series): (usize, &Series)| {
        // The same place within each group, so that a series can be followed down the page.
        let above = if is_shared { GROUP / 2.0 - step * (index as f64 + 0.5) } else { 0.0 };
        let ink = ink(index, series, palette);
        let claimed = |at: usize| series.claimed.get(at) == Some(&true);
        let pale = (0..series.points.len()).map(|at| !claimed(at)).collect();
        let shape = Shape::Marks { path: ink.path, size: 10.0, hollow: false, opacity: 1.0, pale };
        let points = series.points.iter().map(|(ratio, place)| (*ratio, above - place)).collect();
        let trace = Trace::new(&series.name, &ink.color, shape, points);
        Trace { across: series.band.clone(), cap: 3.0, notes: Some(notes(series)), ..trace }
    };
    let drawn = chart.series.iter().enumerate().filter(|(_, series)| !series.points.is_empty());
    let traces: Vec<Trace> = drawn.map(trace).collect();
    let axis = RatioAxis::around(traces.iter().flat_map(Trace::xs));
    let ticks = axis.ticks.iter().copied().zip(axis.labels()).collect();
    let title = printable(&chart.x.title);
    let places = chart.y.names.len();
    let each = if is_shared { (12 * chart.series.len()).clamp(26, 110) } else { 30 };
    Picture {
        height: 74 + each * places,
        x: Scale { title, log: true, named: false, ends: axis.ends, ticks },
        y: named("", &chart.y.names, -1.0),
        together: false,
        // Behind every other place, so that the eye stays in it.
        shaded: (0..places)
            .step_by(2)
            .filter(|_| is_shared)
            .map(|place| (-0.5 - place as f64, 0.5 - place as f64))
            .collect(),
        upright: Some(1.0),
        traces,
    }
}

/// Whether two series have a point at one place.
fn shares_places(chart: &Chart) -> bool {
    let places = |series: &Series| series.points.iter().map(|point| point.1).collect::<Vec<_>>();
    let mut all: Vec<f64> = chart.series.iter().flat_map(places).collect();
    let points = all.len();
    all.sort_by(f64::total_cmp);
    all.dedup();
    all.len() < points
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{Axis, Form};

    #[test]
    fn intervals_reach_the_chart_unchanged() {
        let series = |name: &str, ratio: f64, ends: (f64, f64), place: f64| Series {
            name: name.into(),
            points: vec![(ratio, place)],
            band: vec![ends],
            claimed: vec![ends.1 < 1.0],
            ..Series::default()
        };
        let chart = Chart {
            title: String::new(),
            caption: String::new(),
            form: Form::Ratios,
            x: Axis::even("CPU, ratio to glibc"),
            y: Axis { names: vec!["a".into(), "b".into()], ..Axis::default() },
            series: vec![series("a", 0.91, (0.88, 0.94), 0.0), series("b", 1.02, (0.9, 1.1), 1.0)],
        };
        let picture = picture(&chart, &Palette::default());
        assert_eq!(picture.traces[0].points, [(0.91, 0.0)]);
        assert_eq!(picture.traces[0].across, [(0.88, 0.94)]);
        assert_eq!(picture.traces[1].points, [(1.02, -1.0)]);
        let pale = |trace: &Trace| matches!(&trace.shape, Shape::Marks { pale, .. } if pale[..] == [true]);
        assert_eq!(picture.traces.iter().map(pale).collect::<Vec<_>>(), [false, true]);
        assert!(!shares_places(&chart));
    }
}
