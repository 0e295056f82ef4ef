//! Lines, areas, bars and marks, and what belongs to them: bands, ends of intervals, published values.

use plotly::common::{
    DashType, ErrorData, ErrorType, Fill, HoverInfo, Line, LineShape, Marker, MarkerSymbol, Mode,
};
use plotly::layout::{HoverMode, Layout};
use plotly::{Bar, Plot, Scatter};

use super::appearance::{Ink, PUBLISHED, head, hovers, ink, layout, plot_text, with_legend};
use super::axes;
use super::points::{fits, fitting, rounded, shown};
use crate::document::{Chart, Form, Role, Series};
use crate::html::palette::Palette;

/// Of bars, once the hues are used up.
const PALE: f64 = 0.5;
/// How much of its colour the band around a line has.
const BAND: f64 = 0.18;
/// The share of the space between two places that a group of bars takes.
const GROUP: f64 = 0.82;

/// Draws the chart and returns its layout; `None` without a point that can be shown.
pub(super) fn draw(chart: &Chart, named: bool, palette: &Palette, plot: &mut Plot) -> Option<Layout> {
    let mut any = false;
    let mut published = Vec::new();
    for (index, series) in chart.series.iter().enumerate() {
        let ink = ink(index, series, palette);
        let theirs = fitting(&series.published, chart);
        if !theirs.is_empty() {
            any = true;
            published.push(published_trace(theirs, index, series, chart, &ink, published.is_empty()));
        }
        let points = shown(series, chart);
        if !points.is_empty() {
            any = true;
            add(points, index, series, chart, &ink, palette, plot);
        }
    }
    for trace in published {
        plot.add_trace(trace);
    }
    let hover = if chart.form == Form::Stacked { HoverMode::XUnified } else { HoverMode::Closest };
    let points = || {
        let published = chart.series.iter().flat_map(|series| fitting(&series.published, chart));
        chart.series.iter().flat_map(|series| shown(series, chart)).chain(published)
    };
    let layout = if named { with_legend(420) } else { layout(320) };
    let layout = layout
        .hover_mode(hover)
        .x_axis(axes::axis(&chart.x, points().map(|point| point.0)))
        .y_axis(axes::axis(&chart.y, points().map(|point| point.1)));
    any.then_some(layout)
}

/// One series.
fn add(
    points: Vec<(f64, f64)>,
    index: usize,
    series: &Series,
    chart: &Chart,
    ink: &Ink,
    palette: &Palette,
    plot: &mut Plot,
) {
    if series.role == Role::Frontier {
        plot.add_trace(frontier(points, series));
        return;
    }
    match chart.form {
        Form::Bars => plot.add_trace(bar(points, index, series, chart, ink)),
        Form::Points | Form::Joined => plot.add_trace(marks(points, series, chart, ink)),
        Form::Lines | Form::Steps | Form::Stacked | Form::Ratios => {
            if let Some(outline) = band(series, chart) {
                let (xs, ys): (Vec<f64>, Vec<f64>) = outline.into_iter().unzip();
                let area = Scatter::new(xs, ys).mode(Mode::Lines).fill(Fill::ToSelf);
                let area = area.fill_color(ink.color.clone()).opacity(BAND);
                let area = area.line(Line::new().width(0.0).color(ink.color.clone()));
                plot.add_trace(area.show_legend(false).hover_info(HoverInfo::Skip));
            }
            // The symbol stands at the end of the line, where the eye seeks the name.
            let end = points.last().copied().filter(|_| palette.find(&series.name).is_some());
            plot.add_trace(line(points, series, chart.form, ink));
            if let Some((x, y)) = end {
                let marker = Marker::new().size(8).symbol(ink.symbol.clone()).color(ink.color.clone());
                let end = Scatter::new(vec![x], vec![y]).mode(Mode::Markers).marker(marker);
                plot.add_trace(end.show_legend(false).hover_info(HoverInfo::Skip));
            }
        }
    }
}

fn line(points: Vec<(f64, f64)>, series: &Series, form: Form, ink: &Ink) -> Box<Scatter<f64, f64>> {
    let hover = format!("{}%{{x:,.4~g}}: %{{y:,.4~g}}<extra></extra>", head(series));
    // After the hues are used up a dash distinguishes lines.
    let mut line = Line::new().width(1.8).color(ink.color.clone());
    if ink.again {
        line = line.dash(DashType::Dash);
    }
    if form != Form::Lines {
        line = line.shape(LineShape::Hv);
    }
    let (xs, ys): (Vec<f64>, Vec<f64>) = points.into_iter().unzip();
    let mut scatter = Scatter::new(xs, ys).name(plot_text(&series.name)).hover_template(hover);
    if form == Form::Stacked {
        line = line.width(0.6);
        scatter = scatter.stack_group("all").fill(Fill::ToNextY).fill_color(ink.color.clone());
    }
    scatter.mode(Mode::Lines).line(line)
}

/// Marks with the ends of their intervals; joined where that is the form.
fn marks(points: Vec<(f64, f64)>, series: &Series, chart: &Chart, ink: &Ink) -> Box<Scatter<f64, f64>> {
    let is_joined = chart.form == Form::Joined && points.len() > 1;
    let is_many = points.len() > 1 && chart.form == Form::Points;
    let marker = Marker::new().size(if is_many { 7 } else { 11 }).color(ink.color.clone());
    let marker = match series.role {
        Role::Failures => marker.symbol(MarkerSymbol::XThinOpen).line(Line::new().width(2.0)),
        _ => marker.symbol(ink.symbol.clone()).opacity(0.85),
    };
    let whole = points.len() == series.points.len();
    let hovers = if whole { hovers(series, "%{x:,.4~g}: %{y:,.4~g}") } else { vec![head(series)] };
    let (xs, ys): (Vec<f64>, Vec<f64>) = points.into_iter().unzip();
    let whiskers = |ends: &[(f64, f64)], of: fn(&(f64, f64)) -> f64| {
        let parts = || series.points.iter().map(of).zip(ends);
        ErrorData::new(ErrorType::Data)
            .array(parts().map(|(value, ends)| (ends.1 - value).max(0.0)).collect())
            .array_minus(parts().map(|(value, ends)| (value - ends.0).max(0.0)).collect())
            .symmetric(false)
            .thickness(1.0)
            .width(0)
            .color(ink.color.clone())
    };
    let mut scatter = Scatter::new(xs, ys)
        .mode(if is_joined { Mode::LinesMarkers } else { Mode::Markers })
        .name(plot_text(&series.name))
        .line(Line::new().width(1.5).color(ink.color.clone()))
        .marker(marker);
    scatter = match &hovers[..] {
        [one] => scatter.hover_template(one),
        _ => scatter.hover_template_array(hovers),
    };
    if whole && series.across.len() == series.points.len() {
        scatter = scatter.error_x(whiskers(&series.across, |point| point.0));
    }
    if whole && series.band.len() == series.points.len() {
        scatter = scatter.error_y(whiskers(&series.band, |point| point.1));
    }
    scatter
}

fn frontier(points: Vec<(f64, f64)>, series: &Series) -> Box<Scatter<f64, f64>> {
    let steps = Line::new().shape(LineShape::Hv).dash(DashType::Dot).width(1.5).color(axes::MUTED);
    let (xs, ys): (Vec<f64>, Vec<f64>) = points.into_iter().unzip();
    let scatter = Scatter::new(xs, ys).mode(Mode::Lines).name(plot_text(&series.name));
    scatter.line(steps).hover_info(HoverInfo::Skip)
}

fn bar(
    points: Vec<(f64, f64)>,
    index: usize,
    series: &Series,
    chart: &Chart,
    ink: &Ink,
) -> Box<Bar<f64, f64>> {
    let hover = format!("{}%{{x}}: %{{y:,.4~g}}<extra></extra>", head(series));
    let ends: Vec<Option<(f64, f64)>> =
        points.iter().map(|point| ends_at(series, chart, point.0, point.1)).collect();
    let values: Vec<f64> = points.iter().map(|point| point.1).collect();
    let (xs, ys): (Vec<f64>, Vec<f64>) = points.into_iter().unzip();
    let mut marker = Marker::new().color(ink.color.clone());
    if ink.again {
        marker = marker.opacity(PALE);
    }
    let mut bar = Bar::new(xs, ys).name(plot_text(&series.name)).hover_template(hover).marker(marker);
    // Where places have names the groups are laid out here, so that published values stand on their bars.
    if let Some((offset, width)) = slot(index, chart) {
        bar = bar.offset(offset).width(width);
    }
    if ends.iter().any(Option::is_some) {
        let part = |of: fn(f64, (f64, f64)) -> f64| {
            let each = values.iter().zip(&ends);
            each.map(|(value, ends)| ends.map_or(0.0, |ends| of(*value, ends).max(0.0))).collect()
        };
        let error = ErrorData::new(ErrorType::Data)
            .array(part(|value, (_, high)| high - value))
            .array_minus(part(|value, (low, _)| value - low))
            .symmetric(false)
            .thickness(1.2)
            .width(if chart.series.len() > 3 { 0 } else { 3 })
            .color("var(--ink)");
        bar = bar.error_y(error);
    }
    bar
}

/// Offset and width of a series' bars where places have names.
fn slot(index: usize, chart: &Chart) -> Option<(f64, f64)> {
    let width = GROUP / chart.series.len().max(1) as f64;
    (!chart.x.names.is_empty()).then(|| (index as f64 * width - GROUP / 2.0, width))
}

/// The ends of the interval of the bar at `x`. A logarithmic axis has no place for zero: such an end is cut at a tenth.
fn ends_at(series: &Series, chart: &Chart, x: f64, value: f64) -> Option<(f64, f64)> {
    let at = series.points.iter().position(|point| rounded(point.0) == x)?;
    let (low, high) = *series.band.get(at)?;
    let low = if chart.y.log && low <= 0.0 { value / 10.0 } else { low };
    (low.is_finite() && high.is_finite()).then_some((low, high))
}

/// Published values: on their bars, or as a dotted line next to ours.
fn published_trace(
    points: Vec<(f64, f64)>,
    index: usize,
    series: &Series,
    chart: &Chart,
    ink: &Ink,
    first: bool,
) -> Box<Scatter<f64, f64>> {
    let middle = slot(index, chart).map_or(0.0, |(offset, width)| offset + width / 2.0);
    let across = if chart.form == Form::Bars { middle } else { 0.0 };
    let (xs, ys): (Vec<f64>, Vec<f64>) = points.into_iter().map(|(x, y)| (x + across, y)).unzip();
    let hover = format!("{}{PUBLISHED}: %{{y:,.4~g}}<extra></extra>", head(series));
    let scatter = Scatter::new(xs, ys).name(PUBLISHED).show_legend(first).hover_template(hover);
    if chart.form == Form::Bars {
        let marker = Marker::new().symbol(MarkerSymbol::Diamond).size(7).color("var(--paper)");
        return scatter.mode(Mode::Markers).marker(marker.line(Line::new().width(1.3).color("var(--ink)")));
    }
    let color = ink.color.clone();
    let marker = Marker::new().symbol(MarkerSymbol::DiamondOpen).size(7).color(color.clone());
    let dots = Line::new().width(1.2).dash(DashType::Dot).color(color);
    scatter.mode(Mode::LinesMarkers).line(dots).marker(marker)
}

/// The outline of a series' band: along its upper ends and back along the lower ones.
fn band(series: &Series, chart: &Chart) -> Option<Vec<(f64, f64)>> {
    let ends: Vec<(f64, f64, f64)> = series
        .points
        .iter()
        .zip(&series.band)
        .filter(|((x, _), (low, high))| fits(&chart.x, *x) && fits(&chart.y, *low) && fits(&chart.y, *high))
        .map(|((x, _), (low, high))| (rounded(*x), rounded(*low), rounded(*high)))
        .collect();
    let upper = ends.iter().map(|(x, _, high)| (*x, *high));
    let lower = ends.iter().rev().map(|(x, low, _)| (*x, *low));
    (chart.form == Form::Lines && ends.len() > 1).then(|| upper.chain(lower).collect())
}

#[cfg(test)]
mod tests {
    use super::super::{Names, keys, plot};
    use super::*;
    use crate::testing::chart;

    fn drawn(chart: &Chart) -> serde_json::Value {
        serde_json::from_str(&plot(chart, Names::Outside, &Palette::default()).expect("a plot").to_json())
            .expect("JSON")
    }

    #[test]
    fn the_band_of_a_line_runs_along_its_upper_ends_and_back_along_the_lower() {
        let mut banded = chart(Form::Lines, false);
        banded.series[0].band = vec![(0.9, 1.1), (0.4, 0.6), (0.2, f64::INFINITY)];
        let outline = band(&banded.series[0], &banded).expect("two points have ends");
        assert_eq!(outline, [(0.0, 1.1), (10.0, 0.6), (10.0, 0.4), (0.0, 0.9)]);
        assert_eq!(band(&banded.series[1], &banded), None);
        assert!(drawn(&banded).to_string().contains("toself"));
        banded.form = Form::Bars;
        assert_eq!(band(&banded.series[0], &banded), None);
    }

    #[test]
    fn bars_have_the_ends_of_their_intervals_and_published_values_stand_on_them() {
        let mut bars = chart(Form::Bars, false);
        bars.x.names = vec!["cfrac".into(), "gawk".into()];
        bars.series[0].points = vec![(0.0, 1.0), (1.0, 2.0)];
        bars.series[0].band = vec![(0.75, 1.5), (2.0, f64::INFINITY)];
        bars.series[1].published = vec![(1.0, 3.0)];
        let json = drawn(&bars);
        let error = &json["data"][0]["error_y"];
        assert_eq!(error["array"], serde_json::json!([0.5, 0.0]));
        assert_eq!(error["arrayminus"], serde_json::json!([0.25, 0.0]));
        let near = |value: &serde_json::Value, wanted: f64| {
            let value = value.as_f64().expect("a number");
            assert!((value - wanted).abs() < 1e-12, "{value} {wanted}");
        };
        near(&json["data"][0]["offset"], -0.41);
        near(&json["data"][1]["offset"], 0.0);
        let marks = &json["data"][2];
        near(&marks["x"][0], 1.205);
        near(&marks["y"][0], 3.0);
        let names: Vec<String> = keys(&bars).into_iter().map(|key| key.name).collect();
        assert_eq!(names, ["all <b>", "small", PUBLISHED]);
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
        assert_eq!(json["data"][0]["y"], serde_json::json!([2.0, 3.0]));
        lines.series[0].published.clear();
        assert!(plot(&lines, Names::Inside, &Palette::default()).is_none());
    }
}
