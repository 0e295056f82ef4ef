//! Lines, areas, bars and marks, and what belongs to them: bands, ends of intervals, published values.

use super::appearance::{CROSS, DIAMOND, Ink, MUTED, PUBLISHED, ink};
use super::picture::{Picture, Scale, Shape, Trace};
use super::points::{fits, fitting, rounded, shown};
use super::scales::scale;
use crate::document::{Chart, Form, Role, Series};
use crate::html::palette::Palette;

/// Of bars, once the hues are used up.
const PALE: f64 = 0.5;
/// How much of its colour the band around a line has.
const BAND: f64 = 0.18;
/// How much of its colour a stacked area has.
const AREA: f64 = 0.75;
/// The share of the space between two places that a group of bars takes.
const GROUP: f64 = 0.82;
/// The margin next to the values, as a share of what they span.
const MARGIN: f64 = 0.04;
/// px.
const HEIGHT: usize = 320;

/// The chart; without a trace where no point can be shown.
pub(super) fn picture(chart: &Chart, palette: &Palette) -> Picture {
    let mut traces = Vec::new();
    let mut published = Vec::new();
    // The heights of the areas so far.
    let mut below = Vec::new();
    for (index, series) in chart.series.iter().enumerate() {
        let ink = ink(index, series, palette);
        let theirs = fitting(&series.published, chart);
        if !theirs.is_empty() {
            published.extend(published_traces(theirs, index, series, chart, &ink));
        }
        let points = shown(series, chart);
        if points.is_empty() {
            continue;
        }
        match chart.form {
            _ if series.role == Role::Frontier => traces.push(frontier(points, series)),
            Form::Bars => traces.push(bars(points, index, series, chart, &ink)),
            Form::Points | Form::Joined => traces.extend(marks(points, series, chart, &ink)),
            Form::Stacked => traces.push(area(&points, series, chart, &ink, &mut below)),
            Form::Lines | Form::Steps | Form::Ratios => {
                traces.extend(band(series, chart, &ink));
                traces.extend(line(points, series, chart.form, &ink, palette));
            }
        }
    }
    traces.extend(published);
    let (x, y) = axes(chart, &traces);
    let together = chart.form == Form::Stacked;
    Picture { height: HEIGHT, x, y, together, shaded: vec![], upright: None, traces }
}

/// Axes with a place for all of it.
fn axes(chart: &Chart, traces: &[Trace]) -> (Scale, Scale) {
    let (gap, margin) = match chart.form {
        Form::Bars => (gap(chart) / 2.0, 0.0),
        Form::Points | Form::Joined => (0.0, MARGIN),
        _ => (0.0, 0.0),
    };
    let xs = traces.iter().flat_map(Trace::xs).flat_map(|x| [x - gap, x + gap]);
    let floor = (chart.form == Form::Bars).then_some(0.0);
    let ys = traces.iter().flat_map(Trace::ys).chain(floor);
    (scale(&chart.x, xs, margin), scale(&chart.y, ys, MARGIN))
}

/// A line, and the symbol at its end, where the eye seeks the name; a point alone is no line.
fn line(
    points: Vec<(f64, f64)>,
    series: &Series,
    form: Form,
    ink: &Ink,
    palette: &Palette,
) -> impl Iterator<Item = Trace> {
    let has_end = palette.find(&series.name).is_some() || points.len() == 1;
    let end = points.last().copied().filter(|_| has_end).map(|end| {
        let shape = Shape::Marks { path: ink.path, size: 8.0, hollow: false, opacity: 1.0, pale: vec![] };
        Trace::new("", &ink.color, shape, vec![end]).silent()
    });
    // After the hues are used up a dash distinguishes lines.
    let dash = if ink.again { "7 5" } else { "" };
    let shape = Shape::Line { width: 1.8, dash, step: form != Form::Lines };
    [noted(Trace::new(&series.name, &ink.color, shape, points), series)].into_iter().chain(end)
}

/// An area on those so far; a value holds until the next point.
fn area(
    points: &[(f64, f64)],
    series: &Series,
    chart: &Chart,
    ink: &Ink,
    below: &mut Vec<(f64, f64)>,
) -> Trace {
    if below.is_empty() {
        let mut xs: Vec<f64> =
            chart.series.iter().flat_map(|series| shown(series, chart)).map(|point| point.0).collect();
        xs.sort_by(f64::total_cmp);
        xs.dedup();
        *below = xs.into_iter().map(|x| (x, 0.0)).collect();
    }
    let base = below.iter().map(|point| point.1).collect();
    for (x, height) in below.iter_mut() {
        let before = points.partition_point(|point| point.0 <= *x);
        *height += before.checked_sub(1).map_or(0.0, |at| points[at].1);
    }
    let shape = Shape::Area { base, opacity: AREA, step: true };
    Trace::new(&series.name, &ink.color, shape, below.clone())
}

/// Marks with the ends of their intervals; joined where that is the form.
fn marks(points: Vec<(f64, f64)>, series: &Series, chart: &Chart, ink: &Ink) -> impl Iterator<Item = Trace> {
    let line = (chart.form == Form::Joined && points.len() > 1).then(|| {
        let shape = Shape::Line { width: 1.5, dash: "", step: false };
        Trace::new("", &ink.color, shape, points.clone()).silent()
    });
    let failed = series.role == Role::Failures;
    let size = if points.len() > 1 && chart.form == Form::Points { 7.0 } else { 11.0 };
    let path = if failed { CROSS } else { ink.path };
    let opacity = if failed { 1.0 } else { 0.85 };
    let shape = Shape::Marks { path, size, hollow: failed, opacity, pale: vec![] };
    let mut marks = noted(Trace::new(&series.name, &ink.color, shape, points), series);
    if marks.points.len() == series.points.len() {
        (marks.across, marks.up) = (series.across.clone(), series.band.clone());
    }
    line.into_iter().chain([marks])
}

/// With a text for each point. What belongs to one point each is right only while all of them are drawn.
fn noted(trace: Trace, series: &Series) -> Trace {
    let notes = if trace.points.len() == series.points.len() { notes(series) } else { vec![] };
    Trace { notes: Some(notes), ..trace }
}

/// What pointing at the points shows; empty for their figures.
pub(super) fn notes(series: &Series) -> Vec<String> {
    let lines = |text: &String| text.split('\n').map(crate::format::printable).collect::<Vec<_>>().join("\n");
    series.labels.iter().map(lines).collect()
}

fn frontier(points: Vec<(f64, f64)>, series: &Series) -> Trace {
    let shape = Shape::Line { width: 1.5, dash: "2 3", step: true };
    Trace::new(&series.name, MUTED, shape, points).silent()
}

fn bars(points: Vec<(f64, f64)>, index: usize, series: &Series, chart: &Chart, ink: &Ink) -> Trace {
    let ends: Vec<Option<(f64, f64)>> =
        points.iter().map(|point| ends_at(series, chart, point.0, point.1)).collect();
    let each = || points.iter().zip(&ends).map(|(point, ends)| ends.unwrap_or((point.1, point.1)));
    let up = if ends.iter().any(Option::is_some) { each().collect() } else { vec![] };
    let (offset, width) = slot(index, chart);
    let shape = Shape::Bars { offset, width, opacity: if ink.again { PALE } else { 1.0 } };
    let cap = if chart.series.len() > 3 { 0.0 } else { 3.0 };
    Trace { up, cap, ..Trace::new(&series.name, &ink.color, shape, points) }
}

/// Offset and width of a series' bars.
fn slot(index: usize, chart: &Chart) -> (f64, f64) {
    let group = GROUP * gap(chart);
    let width = group / chart.series.len().max(1) as f64;
    (index as f64 * width - group / 2.0, width)
}

/// The space between two places of bars.
fn gap(chart: &Chart) -> f64 {
    let mut xs: Vec<f64> =
        chart.series.iter().flat_map(|series| &series.points).map(|point| point.0).collect();
    xs.sort_by(f64::total_cmp);
    xs.dedup();
    let least = xs.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min);
    if least.is_finite() && chart.x.names.is_empty() { least } else { 1.0 }
}

/// The ends of the interval of the bar at `x`. A logarithmic axis has no place for zero: such an end is cut at a tenth.
fn ends_at(series: &Series, chart: &Chart, x: f64, value: f64) -> Option<(f64, f64)> {
    let at = series.points.iter().position(|point| rounded(point.0) == x)?;
    let (low, high) = *series.band.get(at)?;
    let low = if chart.y.log && low <= 0.0 { value / 10.0 } else { low };
    (low.is_finite() && high.is_finite()).then_some((low, high))
}

/// Published values: on their bars, or as a dotted line next to ours.
fn published_traces(
    points: Vec<(f64, f64)>,
    index: usize,
    series: &Series,
    chart: &Chart,
    ink: &Ink,
) -> impl Iterator<Item = Trace> {
    let is_bars = chart.form == Form::Bars;
    let (offset, width) = slot(index, chart);
    let across = if is_bars { offset + width / 2.0 } else { 0.0 };
    let points: Vec<(f64, f64)> = points.into_iter().map(|(x, y)| (x + across, y)).collect();
    let color = if is_bars { "var(--ink)" } else { &ink.color };
    let dots = (!is_bars).then(|| {
        let shape = Shape::Line { width: 1.2, dash: "2 3", step: false };
        Trace::new("", color, shape, points.clone()).silent()
    });
    let shape = Shape::Marks { path: DIAMOND, size: 7.0, hollow: true, opacity: 1.0, pale: vec![] };
    let name = [&series.name, PUBLISHED].map(str::to_owned).join(" ").trim().to_owned();
    dots.into_iter().chain([Trace::new(&name, color, shape, points)])
}

/// The area between the ends of the intervals of a line's points.
fn band(series: &Series, chart: &Chart, ink: &Ink) -> Option<Trace> {
    let fit = |x: f64, low: f64, high: f64| fits(&chart.x, x) && fits(&chart.y, low) && fits(&chart.y, high);
    let ends =
        series.points.iter().zip(&series.band).filter(|(point, (low, high))| fit(point.0, *low, *high));
    let ends = ends.map(|((x, _), (low, high))| ((rounded(*x), rounded(*high)), rounded(*low)));
    let (upper, base): (Vec<(f64, f64)>, Vec<f64>) = ends.unzip();
    let shape = Shape::Area { base, opacity: BAND, step: false };
    let is_band = chart.form == Form::Lines && upper.len() > 1;
    is_band.then(|| Trace::new("", &ink.color, shape, upper).silent())
}

#[cfg(test)]
mod tests {
    use super::super::keys;
    use super::*;
    use crate::testing::chart;

    fn drawn(chart: &Chart) -> serde_json::Value {
        serde_json::to_value(picture(chart, &Palette::default())).expect("JSON")
    }

    #[test]
    fn the_band_of_a_line_runs_between_the_ends_of_its_intervals() {
        let mut banded = chart(Form::Lines, false);
        banded.series[0].band = vec![(0.9, 1.1), (0.4, 0.6), (0.2, f64::INFINITY)];
        let area = &drawn(&banded)["traces"][0];
        assert_eq!(area["points"], serde_json::json!([[0.0, 1.1], [10.0, 0.6]]));
        assert_eq!((&area["base"], &area["shape"]), (&serde_json::json!([0.9, 0.4]), &"area".into()));
        assert_eq!(
            drawn(&banded)["traces"].as_array().map(Vec::len),
            Some(4),
            "and a mark for a point alone"
        );
        banded.form = Form::Bars;
        assert_eq!(drawn(&banded)["traces"][0]["shape"], "bars");
    }

    #[test]
    fn areas_lie_on_those_before_at_the_places_of_all_of_them() {
        let mut stacked = chart(Form::Stacked, false);
        stacked.series[0].points = vec![(0.0, 1.0), (2.0, 3.0)];
        stacked.series[1].points = vec![(1.0, 10.0), (2.0, 20.0)];
        let json = drawn(&stacked);
        assert_eq!(json["traces"][0]["points"], serde_json::json!([[0.0, 1.0], [1.0, 1.0], [2.0, 3.0]]));
        assert_eq!(json["traces"][1]["base"], serde_json::json!([1.0, 1.0, 3.0]));
        assert_eq!(json["traces"][1]["points"], serde_json::json!([[0.0, 1.0], [1.0, 11.0], [2.0, 23.0]]));
        assert_eq!(json["y"]["ends"][0], 0.0);
    }

    #[test]
    fn bars_have_the_ends_of_their_intervals_and_published_values_stand_on_them() {
        let mut bars = chart(Form::Bars, false);
        bars.x.names = vec!["cfrac".into(), "gawk".into()];
        bars.series[0].points = vec![(0.0, 1.0), (1.0, 2.0)];
        bars.series[0].band = vec![(0.75, 1.5), (2.0, f64::INFINITY)];
        bars.series[1].published = vec![(1.0, 3.0)];
        let json = drawn(&bars);
        assert_eq!(json["traces"][0]["up"], serde_json::json!([[0.75, 1.5], [2.0, 2.0]]));
        let near = |value: &serde_json::Value, wanted: f64| {
            let value = value.as_f64().expect("a number");
            assert!((value - wanted).abs() < 1e-12, "{value} {wanted}");
        };
        near(&json["traces"][0]["offset"], -0.41);
        near(&json["traces"][1]["offset"], 0.0);
        let mark = &json["traces"][2]["points"][0];
        near(&mark[0], 1.205);
        near(&mark[1], 3.0);
        let names = |palette| keys(&bars, &palette).into_iter().map(|key| key.name).collect::<Vec<_>>();
        assert_eq!(names(Palette::default()), ["all <b>", "small", PUBLISHED]);
        assert_eq!(
            names(Palette::new(["small"].into_iter())),
            [PUBLISHED],
            "the page's legend has the others"
        );
    }

    #[test]
    fn bars_at_numbers_are_as_wide_as_the_least_space_between_them() {
        let mut bars = chart(Form::Bars, false);
        bars.series[0].points = vec![(0.0, 1.0), (10.0, 2.0), (14.0, 2.0)];
        bars.series.truncate(1);
        let json = drawn(&bars);
        assert_eq!(json["traces"][0]["width"], 4.0 * GROUP);
        assert_eq!(json["x"]["ends"], serde_json::json!([-2.0, 16.0]));
    }

    #[test]
    fn the_low_end_of_a_bar_is_cut_where_a_logarithmic_axis_ends() {
        let mut bars = chart(Form::Bars, true);
        bars.series[0].band = vec![(0.0, 2.0), (-1.0, 2.0), (0.1, 0.5)];
        assert_eq!(ends_at(&bars.series[0], &bars, 10.0, 0.5), Some((0.05, 2.0)));
        assert_eq!(ends_at(&bars.series[0], &bars, 100.0, 0.25), Some((0.1, 0.5)));
        assert_eq!(ends_at(&bars.series[0], &bars, 7.0, 0.25), None);
    }

    #[test]
    fn published_values_are_shown_where_there_are_none_of_ours() {
        let mut lines = chart(Form::Lines, false);
        lines.series[0].points.clear();
        lines.series[0].published = vec![(1.0, 2.0), (2.0, 3.0)];
        lines.series.truncate(1);
        let json = drawn(&lines);
        assert_eq!(json["traces"][1]["points"], serde_json::json!([[1.0, 2.0], [2.0, 3.0]]));
        lines.series[0].published.clear();
        assert_eq!(drawn(&lines)["traces"], serde_json::json!([]));
    }
}
