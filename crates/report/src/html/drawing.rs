//! A document's [`Chart`] as plotly draws it: curves with bands, steps, stacks, bars with the ends of their intervals,
//! and published values next to them.

use plotly::common::{
    Anchor, DashType, ErrorData, ErrorType, Fill, Font, HoverInfo, Line, LineShape, Marker, MarkerSymbol,
    Mode, Orientation,
};
use plotly::layout::{Axis as PlotAxis, AxisType, BarMode, HoverMode, Legend, Margin};
use plotly::{Bar, Plot, Scatter};

use super::amount_axis;
use super::chart_registry::{ChartRegistry, ChartSlot};
use super::charts::{self, plot_text};
use crate::document::{Axis, Chart, Form, Series};
use crate::format;

/// More points than a line of this width can show are thinned, keeping lows and highs.
const POINTS: usize = 1000;
/// Hues of the style sheet, then grey.
const HUES: [&str; 7] = [
    "var(--hue-0)",
    "var(--hue-1)",
    "var(--hue-2)",
    "var(--hue-3)",
    "var(--hue-4)",
    "var(--hue-5)",
    "var(--hue-base)",
];
/// Of bars, once the hues are used up.
const PALE: f64 = 0.5;
/// How much of its colour the band around a line has.
const BAND: f64 = 0.18;
/// The share of the space between two places that a group of bars takes.
const GROUP: f64 = 0.82;
/// In the legend.
const PUBLISHED: &str = "published";

/// Where the names of the series stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Names {
    /// In the chart.
    Inside,
    /// Next to it, on the page.
    Outside,
}

/// A slot for a chart on the page.
pub(super) struct DrawingSlot {
    /// Of the element.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// How to read it.
    pub caption: String,
    /// Names that stand on the page; empty where they are inside.
    pub keys: Vec<Key>,
}

/// A name in a legend on the page.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Key {
    /// Name.
    pub name: String,
    /// CSS colour.
    pub color: &'static str,
    /// `bar`, `pale`, `line`, `dash` or `published`: a class of the style sheet.
    pub class: &'static str,
}

/// Adds a chart to the registry; `None` without a point that can be shown.
pub(super) fn add_chart(chart: &Chart, names: Names, registry: &mut ChartRegistry) -> Option<DrawingSlot> {
    let ChartSlot { id, .. } = registry.put(plot(chart, names), "", "")?;
    Some(DrawingSlot {
        id,
        title: format::printable(&chart.title),
        caption: format::printable(&chart.caption),
        keys: if names == Names::Outside { keys(chart) } else { vec![] },
    })
}

/// The names of what is drawn; none where there is one only.
fn keys(chart: &Chart) -> Vec<Key> {
    let drawn = |(_, series): &(usize, &Series)| {
        let any = !shown(series, chart).is_empty() || !fitting(&series.published, chart).is_empty();
        any && !series.name.is_empty()
    };
    let mut keys: Vec<Key> = chart
        .series
        .iter()
        .enumerate()
        .filter(drawn)
        .map(|(index, series)| Key {
            name: format::printable(&series.name),
            color: HUES[index % HUES.len()],
            class: match (chart.form == Form::Bars, index >= HUES.len()) {
                (true, false) => "bar",
                (true, true) => "pale",
                (false, false) => "line",
                (false, true) => "dash",
            },
        })
        .collect();
    let published = chart.series.iter().any(|series| !fitting(&series.published, chart).is_empty());
    if published {
        keys.push(Key { name: PUBLISHED.into(), color: "var(--ink)", class: "published" });
    }
    if keys.len() > 1 { keys } else { vec![] }
}

/// The chart; `None` without a point that can be shown.
pub(super) fn plot(chart: &Chart, names: Names) -> Option<Plot> {
    let mut plot = charts::plot();
    let mut any = false;
    let mut published = Vec::new();
    for (index, series) in chart.series.iter().enumerate() {
        let points = shown(series, chart);
        let theirs = fitting(&series.published, chart);
        if !theirs.is_empty() {
            any = true;
            published.push(published_trace(theirs, index, series, chart, published.is_empty()));
        }
        if points.is_empty() {
            continue;
        }
        any = true;
        if chart.form == Form::Bars {
            plot.add_trace(bar(points, index, series, chart));
            continue;
        }
        if let Some(outline) = band(series, chart) {
            let color = HUES[index % HUES.len()];
            let (xs, ys): (Vec<f64>, Vec<f64>) = outline.into_iter().unzip();
            let area = Scatter::new(xs, ys).mode(Mode::Lines).fill(Fill::ToSelf).fill_color(color);
            let area = area.line(Line::new().width(0.0).color(color)).opacity(BAND);
            plot.add_trace(area.show_legend(false).hover_info(HoverInfo::Skip));
        }
        plot.add_trace(line(points, index, series, chart.form));
    }
    let named = chart.series.iter().filter(|series| !series.name.is_empty()).count() > 1;
    let named = (named || !published.is_empty()) && names == Names::Inside;
    for trace in published {
        plot.add_trace(trace);
    }
    let hover = if chart.form == Form::Stacked { HoverMode::XUnified } else { HoverMode::Closest };
    let legend = Legend::new().orientation(Orientation::Horizontal).y(1.02).y_anchor(Anchor::Bottom);
    let points = || {
        let published = chart.series.iter().flat_map(|series| fitting(&series.published, chart));
        chart.series.iter().flat_map(|series| shown(series, chart)).chain(published)
    };
    let layout = charts::layout(if named { 420 } else { 320 })
        .show_legend(named)
        .legend(legend.font(Font::new().size(12).color("var(--ink)")))
        .margin(Margin::new().left(8).right(14).top(if named { 40 } else { 8 }).bottom(14).auto_expand(true))
        .bar_mode(BarMode::Group)
        .hover_mode(hover)
        .x_axis(axis(&chart.x, points().map(|point| point.0)))
        .y_axis(axis(&chart.y, points().map(|point| point.1)));
    plot.set_layout(layout);
    any.then_some(plot)
}

fn head(series: &Series) -> String {
    let name = plot_text(&series.name);
    if name.is_empty() { name } else { format!("<b>{name}</b><br>") }
}

fn line(points: Vec<(f64, f64)>, index: usize, series: &Series, form: Form) -> Box<Scatter<f64, f64>> {
    let color = HUES[index % HUES.len()];
    let hover = format!("{}%{{x:,.4~g}}: %{{y:,.4~g}}<extra></extra>", head(series));
    // After the hues are used up a dash distinguishes lines.
    let mut line = Line::new().width(1.8).color(color);
    if index >= HUES.len() {
        line = line.dash(DashType::Dash);
    }
    if form != Form::Lines {
        line = line.shape(LineShape::Hv);
    }
    let (xs, ys): (Vec<f64>, Vec<f64>) = points.into_iter().unzip();
    let mut scatter = Scatter::new(xs, ys).name(plot_text(&series.name)).hover_template(hover);
    if form == Form::Stacked {
        line = line.width(0.6);
        scatter = scatter.stack_group("all").fill(Fill::ToNextY).fill_color(color);
    }
    scatter.mode(Mode::Lines).line(line)
}

fn bar(points: Vec<(f64, f64)>, index: usize, series: &Series, chart: &Chart) -> Box<Bar<f64, f64>> {
    let hover = format!("{}%{{x}}: %{{y:,.4~g}}<extra></extra>", head(series));
    let ends: Vec<Option<(f64, f64)>> =
        points.iter().map(|point| ends_at(series, chart, point.0, point.1)).collect();
    let values: Vec<f64> = points.iter().map(|point| point.1).collect();
    let (xs, ys): (Vec<f64>, Vec<f64>) = points.into_iter().unzip();
    let mut marker = Marker::new().color(HUES[index % HUES.len()]);
    if index >= HUES.len() {
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
    let at = series.points.iter().position(|point| charts::rounded(point.0) == x)?;
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
    let color = HUES[index % HUES.len()];
    let marker = Marker::new().symbol(MarkerSymbol::DiamondOpen).size(7).color(color);
    let dots = Line::new().width(1.2).dash(DashType::Dot).color(color);
    scatter.mode(Mode::LinesMarkers).line(dots).marker(marker)
}

fn axis(axis: &Axis, values: impl Iterator<Item = f64>) -> PlotAxis {
    let drawn = charts::axis(&plot_text(&axis.title));
    if axis.log {
        let drawn = drawn.type_(AxisType::Log);
        return match amount_axis::ticks(values) {
            Some((places, labels)) => drawn.tick_values(places).tick_text(labels),
            None => drawn,
        };
    }
    if axis.names.is_empty() {
        return drawn;
    }
    let places = (0..axis.names.len()).map(|place| place as f64).collect();
    drawn.tick_values(places).tick_text(axis.names.iter().map(|name| plot_text(name)).collect())
}

fn fits(axis: &Axis, value: f64) -> bool {
    value.is_finite() && (!axis.log || value > 0.0)
}

/// The outline of a series' band: along its upper ends and back along the lower ones.
fn band(series: &Series, chart: &Chart) -> Option<Vec<(f64, f64)>> {
    let ends: Vec<(f64, f64, f64)> = series
        .points
        .iter()
        .zip(&series.band)
        .filter(|((x, _), (low, high))| fits(&chart.x, *x) && fits(&chart.y, *low) && fits(&chart.y, *high))
        .map(|((x, _), (low, high))| (charts::rounded(*x), charts::rounded(*low), charts::rounded(*high)))
        .collect();
    let upper = ends.iter().map(|(x, _, high)| (*x, *high));
    let lower = ends.iter().rev().map(|(x, low, _)| (*x, *low));
    (chart.form == Form::Lines && ends.len() > 1).then(|| upper.chain(lower).collect())
}

/// The points of a series that can be shown, thinned where there are too many; stacks only together, so they stay whole.
fn shown(series: &Series, chart: &Chart) -> Vec<(f64, f64)> {
    let points = fitting(&series.points, chart);
    if chart.form == Form::Stacked || points.len() <= POINTS {
        return points;
    }
    charts::thinned_points(&points, POINTS)
}

/// The points that the chart's axes have a place for.
fn fitting(points: &[(f64, f64)], chart: &Chart) -> Vec<(f64, f64)> {
    points
        .iter()
        .filter(|(x, y)| fits(&chart.x, *x) && fits(&chart.y, *y))
        .map(|&(x, y)| (charts::rounded(x), charts::rounded(y)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(form: Form, log: bool) -> Chart {
        let axis = |title: &str| Axis { title: title.into(), log, names: vec![] };
        let series = |name: &str, points: &[(f64, f64)]| Series {
            name: name.into(),
            points: points.into(),
            ..Series::default()
        };
        Chart {
            title: "Survival".into(),
            caption: "How to read it.".into(),
            form,
            x: axis("age, bytes"),
            y: axis("share"),
            series: vec![
                series("all <b>", &[(0.0, 1.0), (10.0, 0.5), (100.0, 0.25)]),
                series("small", &[(1.0, 0.75), (f64::NAN, 1.0)]),
            ],
        }
    }

    fn drawn(chart: &Chart) -> serde_json::Value {
        serde_json::from_str(&plot(chart, Names::Outside).expect("a plot").to_json()).expect("JSON")
    }

    #[test]
    fn a_logarithmic_axis_leaves_out_what_it_cannot_show() {
        let chart = chart(Form::Steps, true);
        assert_eq!(shown(&chart.series[0], &chart), [(10.0, 0.5), (100.0, 0.25)]);
        assert_eq!(shown(&chart.series[1], &chart), [(1.0, 0.75)]);
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
        assert!(plot(&lines, Names::Inside).is_none());
    }

    #[test]
    fn long_lines_are_thinned_and_keep_their_peak() {
        let mut long = chart(Form::Lines, false);
        long.series[0].points =
            (0..50_000).map(|i| (f64::from(i), if i == 4711 { 9.0 } else { 1.0 })).collect();
        let kept = shown(&long.series[0], &long);
        assert!(kept.len() <= POINTS + 1 && kept.contains(&(4711.0, 9.0)), "{}", kept.len());
    }
}
