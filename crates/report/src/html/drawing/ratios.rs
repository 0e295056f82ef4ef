//! Ratios with their intervals, a place one below the other.

use plotly::common::{ErrorData, ErrorType, Marker, Mode};
use plotly::layout::{
    Axis as PlotAxis, AxisRange, AxisType, Layout, Shape, ShapeLayer, ShapeLine, ShapeType,
};
use plotly::{Plot, Scatter};

use super::appearance::{hovers, ink, layout, plot_text};
use super::axes;
use super::ratio_axis::RatioAxis;
use crate::document::{Chart, Series};
use crate::html::palette::Palette;

/// Longer names are cut on an axis; hovering shows the whole.
const LABEL_CHARS: usize = 16;
/// Of what shows no difference.
const PALE: f64 = 0.45;
/// The share of a place that the series in it take.
const GROUP: f64 = 0.72;

/// Draws the chart and returns its layout; `None` without a ratio.
pub(super) fn draw(chart: &Chart, palette: &Palette, plot: &mut Plot) -> Option<Layout> {
    let all = || chart.series.iter().flat_map(|series| &series.points);
    all().next()?;
    let ends = chart.series.iter().flat_map(|series| &series.band).flat_map(|(low, high)| [*low, *high]);
    let axis = RatioAxis::around(all().map(|point| point.0).chain(ends));
    let is_shared = shares_places(chart);
    let step = GROUP / chart.series.len().max(1) as f64;
    for (index, series) in chart.series.iter().enumerate() {
        // The same place within each group, so that a series can be followed down the page.
        let above = if is_shared { GROUP / 2.0 - step * (index as f64 + 0.5) } else { 0.0 };
        let ink = ink(index, series, palette);
        let hovers = hovers(series, "%{x:,.4~g}");
        for (at, (ratio, place)) in series.points.iter().enumerate() {
            let (low, high) = series.band.get(at).copied().unwrap_or((*ratio, *ratio));
            let opacity = if series.claimed.get(at) == Some(&true) { 1.0 } else { PALE };
            let error = ErrorData::new(ErrorType::Data)
                .array(vec![(high - ratio).max(0.0)])
                .array_minus(vec![(ratio - low).max(0.0)])
                .symmetric(false)
                .thickness(1.8)
                .width(3)
                .color(ink.color.clone());
            let hover = hovers.get(at).or(hovers.first()).cloned().unwrap_or_default();
            plot.add_trace(
                Scatter::new(vec![*ratio], vec![above - place])
                    .mode(Mode::Markers)
                    .name(plot_text(&series.name))
                    .opacity(opacity)
                    .marker(Marker::new().size(10).symbol(ink.symbol.clone()).color(ink.color.clone()))
                    .error_x(error)
                    .hover_template(hover),
            );
        }
    }
    let places = chart.y.names.len();
    let each = if is_shared { (12 * chart.series.len()).clamp(26, 110) } else { 30 };
    let across = axes::plain(&plot_text(&chart.x.title))
        .type_(AxisType::Log)
        .range(AxisRange::new(axis.ends.0.log10(), axis.ends.1.log10()))
        .tick_values(axis.ticks.clone())
        .tick_text(axis.labels());
    let bands = (0..places).step_by(2).filter(|_| is_shared).map(|place| band(-(place as f64)));
    let shapes = std::iter::once(line_at_one()).chain(bands).collect();
    Some(layout(74 + each * places).x_axis(across).y_axis(names(&chart.y.names)).shapes(shapes))
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

fn names(names: &[String]) -> PlotAxis {
    let short = |name: &String| match name.chars().count() <= LABEL_CHARS {
        true => plot_text(name),
        false => plot_text(&name.chars().take(LABEL_CHARS - 1).chain(['…']).collect::<String>()),
    };
    PlotAxis::new()
        .auto_margin(true)
        .tick_values((0..names.len()).map(|place| -(place as f64)).collect())
        .tick_text(names.iter().map(short).collect())
        .range(AxisRange::new(-(names.len() as f64) + 0.45, 0.55))
        .show_grid(false)
        .zero_line(false)
        .fixed_range(true)
}

fn line_at_one() -> Shape {
    let line = Shape::new().shape_type(ShapeType::Line).x_ref("x").y_ref("paper");
    let line = line.x0(1.0).x1(1.0).y0(0.0).y1(1.0).layer(ShapeLayer::Below);
    line.line(ShapeLine::new().color(axes::MUTED).width(1.2))
}

/// Behind a place, so that the eye stays in it.
fn band(middle: f64) -> Shape {
    let band = Shape::new().shape_type(ShapeType::Rect).x_ref("paper").y_ref("y");
    let band = band.x0(0.0).x1(1.0).y0(middle - 0.5).y1(middle + 0.5).layer(ShapeLayer::Below);
    band.fill_color("var(--band)").line(ShapeLine::new().width(0.0))
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
        let plot = super::super::plot(&chart, super::super::Names::Outside, &Palette::default());
        let json: serde_json::Value = serde_json::from_str(&plot.expect("a plot").to_json()).expect("JSON");
        let near = |value: &serde_json::Value, wanted: f64| {
            assert!((value.as_f64().expect("a number") - wanted).abs() < 1e-12, "{value} {wanted}");
        };
        near(&json["data"][0]["x"][0], 0.91);
        near(&json["data"][0]["error_x"]["array"][0], 0.94 - 0.91);
        near(&json["data"][0]["error_x"]["arrayminus"][0], 0.91 - 0.88);
        near(&json["data"][0]["opacity"], 1.0);
        near(&json["data"][1]["y"][0], -1.0);
        near(&json["data"][1]["opacity"], PALE);
        assert!(!shares_places(&chart));
    }
}
