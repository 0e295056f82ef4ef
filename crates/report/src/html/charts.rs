//! The charts of the page, built from ready figures.

use heaptoll_experiment::comparison::{Comparison, Figure, Metric, ProgramTable};
use heaptoll_experiment::experiment::Experiment;
use heaptoll_experiment::observation::{MemoryTrack, Observation, Phase};
use heaptoll_statistics::Interval;
use plotly::common::{
    DashType, ErrorData, ErrorType, Font, Label, Line, LineShape, Marker, MarkerSymbol, Mode, Title,
};
use plotly::configuration::DisplayModeBar;
use plotly::layout::{
    Axis, AxisRange, AxisType, DragMode, HoverMode, Layout, Margin, RangeMode, Shape, ShapeLayer, ShapeLine,
    ShapeType,
};
use plotly::{Configuration, Plot, Scatter};

use super::palette::Palette;
use super::ratio_axis::RatioAxis;
use crate::format;

const INK: &str = "var(--ink)";
const MUTED: &str = "var(--muted)";
const GRID: &str = "var(--line)";
const CLEAR: &str = "rgba(0,0,0,0)";

/// Longer names are cut on an axis; hovering shows the whole.
const LABEL_CHARS: usize = 16;

/// Ratios of one program's stacks with their intervals, cheapest on top; `None` without any ratio.
pub(super) fn program_ratios(
    table: &ProgramTable,
    metric: Metric,
    baseline: &str,
    palette: &Palette,
) -> Option<Plot> {
    let rows: Vec<(&str, &Interval)> = table
        .rows
        .iter()
        .filter_map(|row| Some((row.stack.as_str(), row.figures.get(&metric)?.ratio.as_ref()?)))
        .collect();
    let axis = RatioAxis::around(rows.iter().flat_map(|(_, i)| [i.low, i.ratio, i.high]));
    let mut plot = plot();
    for (place, (stack, interval)) in rows.iter().enumerate() {
        plot.add_trace(ratio_point(stack, interval, -(place as f64), palette, stack));
    }
    let labels = rows.iter().map(|(stack, _)| plot_text(&short(stack))).collect();
    let places = (0..rows.len()).map(|place| -(place as f64)).collect();
    let layout = layout(74 + 30 * rows.len())
        .x_axis(ratio_x(&axis, metric, baseline))
        .y_axis(names_y(places, labels, (-(rows.len() as f64) + 0.4, 0.6)))
        .shapes(vec![line_at_one()]);
    plot.set_layout(layout);
    (!rows.is_empty()).then_some(plot)
}

/// Ratios of every stack on every program, the geometric means on top; `None` without any ratio.
pub(super) fn overall_ratios(comparison: &Comparison, metric: Metric, palette: &Palette) -> Option<Plot> {
    let mut bands: Vec<(String, Vec<(&str, &Interval)>)> = Vec::new();
    let means = comparison.overall.iter().filter_map(|row| {
        let interval = match metric {
            Metric::Cpu => row.cpu.as_ref(),
            Metric::PeakRss => row.peak_rss.as_ref(),
            Metric::Wall | Metric::Instructions => None,
        };
        Some((row.stack.as_str(), interval?))
    });
    bands.push(("<b>geometric mean</b>".to_owned(), means.collect()));
    for table in &comparison.tables {
        let ratios = table
            .rows
            .iter()
            .filter_map(|row| Some((row.stack.as_str(), row.figures.get(&metric)?.ratio.as_ref()?)));
        bands.push((plot_text(&short(&table.program)), ratios.collect()));
    }
    let stacks: Vec<&str> = palette.names().filter(|name| *name != comparison.baseline).collect();
    let axis =
        RatioAxis::around(bands.iter().flat_map(|(_, b)| b).flat_map(|(_, i)| [i.low, i.ratio, i.high]));
    let step = 0.72 / stacks.len().max(1) as f64;
    let mut plot = plot();
    let mut any = false;
    for (slot, stack) in stacks.iter().enumerate() {
        // The same place within each band, so that a stack can be followed down the page.
        let offset = 0.36 - step * (slot as f64 + 0.5);
        for (place, (label, ratios)) in bands.iter().enumerate() {
            for (_, interval) in ratios.iter().filter(|(name, _)| name == stack) {
                any = true;
                plot.add_trace(ratio_point(stack, interval, offset - place as f64, palette, label));
            }
        }
    }
    let mut shapes = vec![line_at_one()];
    for place in (0..bands.len()).step_by(2) {
        shapes.push(band(-(place as f64)));
    }
    let (labels, count): (Vec<String>, usize) =
        (bands.iter().map(|(label, _)| label.clone()).collect(), bands.len());
    let band_height = (12 * stacks.len()).clamp(26, 110);
    let layout = layout(74 + band_height * count)
        .x_axis(ratio_x(&axis, metric, &comparison.baseline))
        .y_axis(names_y((0..count).map(|p| -(p as f64)).collect(), labels, (-(count as f64) + 0.5, 0.5)))
        .shapes(shapes);
    plot.set_layout(layout);
    any.then_some(plot)
}

/// CPU against memory, a point a stack, whiskers from the smallest to the largest; the frontier joined by steps.
pub(super) fn time_against_memory(table: &ProgramTable, palette: &Palette) -> Option<Plot> {
    let mut plot = plot();
    let mut frontier: Vec<(f64, f64)> = Vec::new();
    let mut points = Vec::new();
    let mut memory = Vec::new();
    for row in &table.rows {
        let (Some(cpu), Some(rss)) = (row.figures.get(&Metric::Cpu), row.figures.get(&Metric::PeakRss))
        else {
            continue;
        };
        let (x, y) = (cpu.median, rss.median / 1024.0);
        memory.push(y);
        if row.on_frontier {
            frontier.push((x, y));
        }
        let mark = palette.mark(&row.stack);
        let marker = Marker::new().size(12).symbol(mark.symbol).color(mark.color.clone());
        let marker = if row.on_frontier {
            marker.line(Line::new().width(1.5).color(INK))
        } else {
            marker.opacity(0.75)
        };
        let place = if row.on_frontier { "<br>on the frontier" } else { "" };
        let hover = format!(
            "<b>{}</b><br>CPU {} s<br>peak RSS {} MiB{place}<extra></extra>",
            plot_text(&row.stack),
            format::in_unit(Metric::Cpu, x),
            format::in_unit(Metric::PeakRss, rss.median),
        );
        points.push(
            Scatter::new(vec![x], vec![y])
                .mode(Mode::Markers)
                .name(plot_text(&row.stack))
                .marker(marker)
                .error_x(whiskers(cpu, 1.0, &mark.color))
                .error_y(whiskers(rss, 1024.0, &mark.color))
                .hover_template(hover),
        );
    }
    if points.is_empty() {
        return None;
    }
    frontier.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (xs, ys) = frontier.into_iter().unzip();
    let steps = Line::new().shape(LineShape::Hv).dash(DashType::Dot).width(1.5).color(MUTED);
    plot.add_trace(
        Scatter::<f64, f64>::new(xs, ys)
            .mode(Mode::Lines)
            .name("frontier")
            .line(steps)
            .hover_info(plotly::common::HoverInfo::Skip),
    );
    for point in points {
        plot.add_trace(point);
    }
    plot.set_layout(layout(320).x_axis(axis("CPU, s")).y_axis(spread_axis("peak RSS, MiB", &memory)));
    Some(plot)
}

/// Resident memory over time, a line a stack; `None` without tracks.
pub(super) fn memory_over_time(experiment: &Experiment, program: &str, palette: &Palette) -> Option<Plot> {
    let mut plot = plot();
    let mut ends = Vec::new();
    for track in
        experiment.tracks.iter().filter(|track| track.program == program && !track.samples.is_empty())
    {
        let mark = palette.mark(&track.stack);
        let (xs, ys): (Vec<f64>, Vec<f64>) = thinned(track).into_iter().unzip();
        let hover =
            format!("<b>{}</b><br>%{{x:.3~f}} s: %{{y:.1f}} MiB<extra></extra>", plot_text(&track.stack));
        let line = Line::new().width(1.6).color(mark.color.clone());
        // The symbol stands at the end of the line, where the eye seeks the name.
        let end = (xs.last().copied().unwrap_or(0.0), ys.last().copied().unwrap_or(0.0));
        plot.add_trace(
            Scatter::new(xs, ys)
                .mode(Mode::Lines)
                .name(plot_text(&track.stack))
                .line(line)
                .hover_template(hover),
        );
        let marker = Marker::new().size(8).symbol(mark.symbol).color(mark.color);
        ends.push(end.1);
        plot.add_trace(
            Scatter::new(vec![end.0], vec![end.1])
                .mode(Mode::Markers)
                .marker(marker)
                .hover_info(plotly::common::HoverInfo::Skip),
        );
    }
    let y = spread_axis("resident, MiB", &ends).range_mode(RangeMode::ToZero);
    plot.set_layout(layout(320).x_axis(axis("seconds since start").range_mode(RangeMode::ToZero)).y_axis(y));
    (!ends.is_empty()).then_some(plot)
}

/// Every timed invocation as a dot in the order made, so that drift shows; bad rows as crosses.
pub(super) fn invocations(rows: &[&Observation], palette: &Palette) -> Option<Plot> {
    // Of a stack that did not run in lockstep with the others there are runs by itself only.
    let has_timed = |stack: &str| rows.iter().any(|row| row.stack == stack && row.phase == Phase::Timed);
    let timed: Vec<&&Observation> = rows
        .iter()
        .filter(|row| row.phase == Phase::Timed || row.phase == Phase::Alone && !has_timed(&row.stack))
        .collect();
    let mut plot = plot();
    for stack in palette.names() {
        let mark = palette.mark(stack);
        for good in [true, false] {
            let of: Vec<&&&Observation> =
                timed.iter().filter(|row| row.stack == stack && row.outcome.is_ok() == good).collect();
            if of.is_empty() {
                continue;
            }
            let symbol = if good { mark.symbol.clone() } else { MarkerSymbol::XThinOpen };
            let marker = Marker::new().size(7).symbol(symbol).color(mark.color.clone());
            let marker = if good { marker.opacity(0.85) } else { marker.line(Line::new().width(2.0)) };
            let hover = of
                .iter()
                .map(|row| {
                    format!(
                        "<b>{}</b>, repetition {}<br>CPU {} s, wall {} s<br>peak RSS {} MiB, load {:.2}<br>{}<extra></extra>",
                        plot_text(stack),
                        row.repetition + 1,
                        format::seconds(cpu_s(row)),
                        format::seconds(row.wall_s),
                        format::mib_from_kib(row.peak_rss_kib as f64),
                        row.load_average,
                        plot_text(&row.outcome.to_string())
                    )
                })
                .collect();
            let xs: Vec<u32> = of.iter().map(|row| row.order).collect();
            let ys: Vec<f64> = of.iter().map(|row| rounded(cpu_s(row))).collect();
            plot.add_trace(
                Scatter::new(xs, ys)
                    .mode(Mode::Markers)
                    .name(plot_text(stack))
                    .marker(marker)
                    .hover_template_array(hover),
            );
        }
    }
    plot.set_layout(layout(300).x_axis(axis("invocation, in the order made")).y_axis(axis("CPU, s")));
    (!timed.is_empty()).then_some(plot)
}

/// What the tables call CPU: a server's is counted from ready to stopped.
pub(super) fn cpu_s(row: &Observation) -> f64 {
    row.serve.as_ref().map_or(row.cpu_s(), |serve| serve.loaded_cpu_s)
}

/// Text for plotly, which reads a little HTML of its own.
pub(super) fn plot_text(text: &str) -> String {
    format::printable(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('%', "&#37;")
}

fn short(name: &str) -> String {
    if name.chars().count() <= LABEL_CHARS {
        return name.to_owned();
    }
    name.chars().take(LABEL_CHARS - 1).chain(['…']).collect()
}

fn ratio_point(
    stack: &str,
    interval: &Interval,
    y: f64,
    palette: &Palette,
    label: &str,
) -> Box<Scatter<f64, f64>> {
    let mark = palette.mark(stack);
    // Full where a difference is claimed, pale where none was seen.
    let opacity = if interval.differs { 1.0 } else { 0.45 };
    let error = ErrorData::new(ErrorType::Data)
        .array(vec![(interval.high - interval.ratio).max(0.0)])
        .array_minus(vec![(interval.ratio - interval.low).max(0.0)])
        .symmetric(false)
        .thickness(1.8)
        .width(3)
        .color(mark.color.clone());
    let seen = if interval.differs { String::new() } else { format!("<br>{}", format::NO_DIFFERENCE) };
    let name = plot_text(stack);
    let head = if label == stack { format!("<b>{name}</b>") } else { format!("<b>{name}</b>, {label}") };
    Scatter::new(vec![interval.ratio], vec![y])
        .mode(Mode::Markers)
        .name(name)
        .opacity(opacity)
        .marker(Marker::new().size(10).symbol(mark.symbol).color(mark.color))
        .error_x(error)
        .hover_template(format!(
            "{head}<br>{}, {} pairs{seen}<extra></extra>",
            format::interval(interval),
            interval.pairs
        ))
}

fn whiskers(figure: &Figure, divisor: f64, color: &str) -> ErrorData {
    ErrorData::new(ErrorType::Data)
        .array(vec![((figure.max - figure.median) / divisor).max(0.0)])
        .array_minus(vec![((figure.median - figure.min) / divisor).max(0.0)])
        .symmetric(false)
        .thickness(1.0)
        .width(0)
        .color(color.to_owned())
}

/// At most this many samples of a track go into the page: more than a line of this width can show.
const SAMPLES: usize = 400;

/// A track as (s, MiB), thinned by keeping the lowest and the highest sample of each stretch, so no peak is lost.
fn thinned(track: &MemoryTrack) -> Vec<(f64, f64)> {
    let shown = |sample: &(f64, u64)| (rounded(sample.0), rounded(sample.1 as f64 / 1024.0));
    if track.samples.len() <= SAMPLES {
        return track.samples.iter().map(shown).collect();
    }
    thinned_points(&track.samples.iter().map(shown).collect::<Vec<_>>(), SAMPLES)
}

/// About `most` points, the lowest and the highest of each stretch and the last, so that no peak is lost.
pub(super) fn thinned_points(points: &[(f64, f64)], most: usize) -> Vec<(f64, f64)> {
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

pub(super) fn plot() -> Plot {
    let mut plot = Plot::new();
    plot.set_configuration(
        Configuration::new().responsive(true).display_mode_bar(DisplayModeBar::False).display_logo(false),
    );
    plot
}

pub(super) fn layout(height: usize) -> Layout {
    Layout::new()
        .height(height)
        .auto_size(true)
        .show_legend(false)
        .margin(Margin::new().left(8).right(14).top(8).bottom(14).auto_expand(true))
        .paper_background_color(CLEAR)
        .plot_background_color(CLEAR)
        .font(Font::new().family("var(--font)").size(12).color(INK))
        .hover_mode(HoverMode::Closest)
        .hover_label(
            Label::new().background_color("var(--raised)").border_color(GRID).font(Font::new().color(INK)),
        )
        // Dragging would take the scrolling of a phone away.
        .drag_mode(DragMode::False)
}

pub(super) fn axis(title: &str) -> Axis {
    Axis::new()
        .title(Title::with_text(title).font(Font::new().size(12).color(MUTED)))
        .auto_margin(true)
        .grid_color(GRID)
        .zero_line(false)
        .line_color(GRID)
        .show_line(true)
        .tick_color(GRID)
        .fixed_range(true)
        .n_ticks(6)
}

/// An axis of amounts: logarithmic where one of them would press all others flat, as a manager that frees nothing does.
pub(super) fn spread_axis(title: &str, values: &[f64]) -> Axis {
    let above_zero = || values.iter().copied().filter(|value| *value > 0.0);
    let (least, most) = (above_zero().fold(f64::INFINITY, f64::min), above_zero().fold(0.0, f64::max));
    if most <= 20.0 * least {
        return axis(title);
    }
    axis(&format!("{title} (logarithmic)")).type_(AxisType::Log)
}

fn ratio_x(fit: &RatioAxis, metric: Metric, baseline: &str) -> Axis {
    let what = if metric == Metric::PeakRss { "peak memory" } else { metric.label() };
    axis(&format!("{what}, ratio to {}", plot_text(&short(baseline))))
        .type_(AxisType::Log)
        .range(AxisRange::new(fit.ends.0.log10(), fit.ends.1.log10()))
        .tick_values(fit.ticks.clone())
        .tick_text(fit.labels())
}

fn names_y(places: Vec<f64>, labels: Vec<String>, ends: (f64, f64)) -> Axis {
    Axis::new()
        .auto_margin(true)
        .tick_values(places)
        .tick_text(labels)
        .range(AxisRange::new(ends.0, ends.1))
        .show_grid(false)
        .zero_line(false)
        .fixed_range(true)
}

fn line_at_one() -> Shape {
    Shape::new()
        .shape_type(ShapeType::Line)
        .x_ref("x")
        .y_ref("paper")
        .x0(1.0)
        .x1(1.0)
        .y0(0.0)
        .y1(1.0)
        .layer(ShapeLayer::Below)
        .line(ShapeLine::new().color(MUTED).width(1.2))
}

fn band(middle: f64) -> Shape {
    Shape::new()
        .shape_type(ShapeType::Rect)
        .x_ref("paper")
        .y_ref("y")
        .x0(0.0)
        .x1(1.0)
        .y0(middle - 0.5)
        .y1(middle + 0.5)
        .layer(ShapeLayer::Below)
        .fill_color("var(--band)")
        .line(ShapeLine::new().width(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{HOSTILE, Shape as Made, experiment};

    #[test]
    fn thinning_keeps_the_peak_and_the_end() {
        let samples: Vec<(f64, u64)> =
            (0..10_000).map(|i| (i as f64 / 100.0, if i == 4711 { 999_424 } else { 2048 })).collect();
        let track = MemoryTrack {
            program: "p".into(),
            stack: "s".into(),
            repetition: 0,
            samples,
            vm_hwm_kib: 0,
            anonymous_peak_kib: 0,
        };
        let kept = thinned(&track);
        assert!(kept.len() <= SAMPLES + 1, "{}", kept.len());
        assert!(kept.contains(&(47.11, 976.0)) && kept.last() == Some(&(99.99, 2.0)), "{kept:?}");
        assert!(kept.is_sorted_by(|a, b| a.0 <= b.0));
    }

    #[test]
    fn intervals_reach_the_chart_unchanged() {
        let (experiment, comparison) = experiment(Made::Single);
        let palette = Palette::new(&experiment);
        let table = &comparison.tables[0];
        let plot = program_ratios(table, Metric::Cpu, "glibc", &palette).unwrap();
        let json: serde_json::Value = serde_json::from_str(&plot.to_json()).unwrap();
        let shown = json["data"].as_array().unwrap();
        let given: Vec<&Interval> =
            table.rows.iter().filter_map(|row| row.figures[&Metric::Cpu].ratio.as_ref()).collect();
        assert_eq!(shown.len(), given.len());
        for (trace, interval) in shown.iter().zip(given) {
            assert_eq!(trace["x"][0], interval.ratio);
            let high = trace["error_x"]["array"][0].as_f64().unwrap() + interval.ratio;
            let low = interval.ratio - trace["error_x"]["arrayminus"][0].as_f64().unwrap();
            assert!((high - interval.high).abs() < 1e-12 && (low - interval.low).abs() < 1e-12);
        }
    }

    #[test]
    fn names_cannot_speak_plotly_s_html() {
        let (experiment, comparison) = experiment(Made::Troubled);
        let palette = Palette::new(&experiment);
        let rows: Vec<&Observation> =
            experiment.observations.iter().filter(|row| row.program == HOSTILE).collect();
        let plots = [
            overall_ratios(&comparison, Metric::Cpu, &palette),
            invocations(&rows, &palette),
            memory_over_time(&experiment, HOSTILE, &palette),
        ];
        for plot in plots {
            assert!(!plot.unwrap().to_json().contains("<script"));
        }
    }
}
