//! Charts of costs over the size of the heap, and over memory.

use heaptoll_experiment::comparison::{Costs, HeapCurve, HeapPoint};
use heaptoll_statistics::Interval;
use heaptoll_units::{count, kib};

use crate::document::{Axis, Chart, Form, Series};
use crate::format;

/// A stack over itself.
const ITSELF: Interval = Interval { ratio: 1.0, low: 1.0, high: 1.0, differs: false, pairs: 0 };

/// What is drawn.
pub(super) struct Plotted<'a> {
    /// Collectors in fixed heaps.
    pub(super) curves: &'a [HeapCurve],
    /// Stacks at their own memory.
    pub(super) points: &'a [Costs],
    /// The stack that ratios are to.
    pub(super) baseline: &'a str,
}

/// CPU over the heap, CPU over memory, and the lower bound of overhead; those that have figures.
pub(super) fn charts(plotted: &Plotted) -> Vec<Chart> {
    let mut charts = vec![cpu_over_heap(plotted), cpu_over_memory(plotted), overhead(plotted)];
    charts.retain(|chart| chart.series.iter().any(|series| series.points.len() > 1));
    charts
}

fn cpu_over_heap(plotted: &Plotted) -> Chart {
    let cpu = |costs: &Costs| match costs.stack == plotted.baseline {
        true => Some(ITSELF),
        false => costs.cpu,
    };
    over_heap(
        plotted,
        "CPU over heap size",
        "Each collector in heaps of several times its smallest. Level lines: stacks at their own memory.",
        &format!("CPU, ratio to {}", plotted.baseline),
        cpu,
    )
}

fn overhead(plotted: &Plotted) -> Chart {
    let bound = |costs: &Costs| match costs.is_least {
        true => Some(ITSELF),
        false => costs.overhead,
    };
    over_heap(
        plotted,
        "Lower bound on overhead",
        "CPU divided by the cheapest stack's CPU without its known memory-management cost: a lower bound on \
         overhead.",
        "CPU, times the ideal, lower bound",
        bound,
    )
}

/// A figure over the heap's factor, with level lines of what has no limit.
fn over_heap(
    plotted: &Plotted,
    title: &str,
    caption: &str,
    y: &str,
    of: impl Fn(&Costs) -> Option<Interval>,
) -> Chart {
    let factors = || plotted.curves.iter().flat_map(|curve| &curve.heaps).map(|heap| heap.factor);
    let (first, last) = (factors().fold(f64::INFINITY, f64::min), factors().fold(0.0, f64::max));
    let mut series: Vec<Series> = plotted.curves.iter().map(|curve| curve_of(curve, &of)).collect();
    // A collector's own size of the heap is none of a fixed line.
    let is_curve = |costs: &Costs| plotted.curves.iter().any(|curve| curve.collector == costs.stack);
    for costs in plotted.points.iter().filter(|costs| !is_curve(costs)) {
        let Some(value) = of(costs) else { continue };
        series.push(Series {
            name: costs.stack.clone(),
            points: vec![(first, value.ratio), (last, value.ratio)],
            labels: vec![label(&value); 2],
            ..Series::default()
        });
    }
    let values = series.iter().flat_map(|series| &series.points).map(|point| point.1);
    let y = Axis::spread(y, values.collect::<Vec<_>>());
    Chart {
        title: title.into(),
        caption: caption.into(),
        form: Form::Joined,
        x: Axis::spread("heap, times the smallest", factors()),
        y,
        series,
    }
}

fn curve_of(curve: &HeapCurve, of: &impl Fn(&Costs) -> Option<Interval>) -> Series {
    let mut series = Series { name: curve.collector.clone(), ..Series::default() };
    for heap in curve.heaps.iter().filter(|heap| heap.fits) {
        let Some(value) = of(&heap.costs) else { continue };
        series.points.push((heap.factor, value.ratio));
        series.band.push((value.low, value.high));
        series.labels.push(format!("{}\n{}", size(heap), label(&value)));
    }
    series
}

fn label(value: &Interval) -> String {
    if value.pairs == 0 { "1".into() } else { format::interval(value) }
}

fn size(heap: &HeapPoint) -> String {
    let bytes = heap.heap_bytes.map_or(String::new(), |bytes| format!(" ({} KiB)", kib(bytes)));
    format!("{} times the smallest heap{bytes}", heap.factor)
}

/// Medians of CPU over medians of peak memory: a line a collector, a point any other.
fn cpu_over_memory(plotted: &Plotted) -> Chart {
    let point = |costs: &Costs| Some((costs.peak_rss_kib?, costs.cpu_s?));
    let text = |at: (f64, f64)| format!("CPU {} s, peak RSS {} KiB", format::seconds(at.1), count(at.0));
    let mut series = Vec::new();
    for curve in plotted.curves {
        let found = curve.heaps.iter().filter(|heap| heap.fits);
        let found: Vec<_> = found.filter_map(|heap| Some((heap, point(&heap.costs)?))).collect();
        series.push(Series {
            name: curve.collector.clone(),
            points: found.iter().map(|(_, at)| *at).collect(),
            labels: found.iter().map(|(heap, at)| format!("{}\n{}", size(heap), text(*at))).collect(),
            ..Series::default()
        });
    }
    for costs in plotted.points {
        let Some(at) = point(costs) else { continue };
        series.push(Series {
            name: costs.stack.clone(),
            points: vec![at],
            labels: vec![format!("its own memory\n{}", text(at))],
            ..Series::default()
        });
    }
    let all: Vec<(f64, f64)> = series.iter().flat_map(|series| series.points.clone()).collect();
    Chart {
        title: "CPU over memory".into(),
        caption: "Medians. A line is a collector in heaps of several sizes, a single point a stack that takes the memory it wants."
            .into(),
        form: Form::Joined,
        x: Axis::spread("peak RSS, KiB", all.iter().map(|at| at.0)),
        y: Axis::spread("CPU, s", all.iter().map(|at| at.1)),
        series,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs(stack: &str, ratio: f64) -> Costs {
        let interval = Interval { ratio, low: ratio - 0.1, high: ratio + 0.1, differs: true, pairs: 8 };
        Costs {
            stack: stack.into(),
            cpu_s: Some(ratio),
            cpu: Some(interval),
            peak_rss_kib: Some(1000.0 / ratio),
            ..Costs::default()
        }
    }

    #[test]
    fn collectors_are_curves_allocators_levels_and_points() {
        let heap = |factor: f64, fits| HeapPoint {
            factor,
            heap_bytes: Some(4096),
            fits,
            programs: 1,
            costs: costs("c", 4.0 / factor),
        };
        let heaps = vec![heap(1.0, false), heap(2.0, true), heap(4.0, true)];
        let curves = [HeapCurve { collector: "c".into(), heaps, ..HeapCurve::default() }];
        let points = [costs("glibc", 1.0), costs("c", 1.2), costs("malloc", 0.8)];
        let charts = charts(&Plotted { curves: &curves, points: &points, baseline: "glibc" });
        let titles: Vec<&str> = charts.iter().map(|chart| chart.title.as_str()).collect();
        assert_eq!(titles, ["CPU over heap size", "CPU over memory"], "there is no bound");
        let of = |chart: usize, name: &str| -> Vec<usize> {
            let named = charts[chart].series.iter().filter(|series| series.name == name);
            named.map(|series| series.points.len()).collect()
        };
        // What does not fit is no point; levels reach over all factors.
        assert_eq!((of(0, "c"), of(0, "malloc"), of(0, "glibc")), (vec![2], vec![2], vec![2]));
        assert_eq!(charts[0].series[1].points, [(1.0, 1.0), (4.0, 1.0)]);
        assert_eq!((of(1, "c"), of(1, "malloc")), (vec![2, 1], vec![1]));
    }
}
