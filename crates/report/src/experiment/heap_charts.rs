//! Charts of costs over the size of the heap, and over memory.

use heaptoll_experiment::comparison::{Costs, HeapCurve};
use heaptoll_units::{count, kib};

use super::heap_text::heap;
use crate::document::{Axis, Chart, Form, Item, Series};
use crate::format;
use crate::sweep::{self, ITSELF, Places};

/// CPU and the lower bound of overhead over the heap, and CPU over memory; those that have figures.
pub(super) fn charts(what: &str, curves: &[HeapCurve], others: &[Costs], baseline: &str) -> Vec<Item> {
    let heaps = curves.iter().flat_map(|curve| &curve.heaps);
    let mut factors: Vec<f64> = heaps.map(|heap| heap.factor).collect();
    factors.sort_by(f64::total_cmp);
    factors.dedup();
    // Level lines are of stacks at their own memory. A collector's own size of the heap is none of a fixed line.
    let is_level = |costs: &&Costs| curves.iter().all(|curve| curve.collector != costs.stack);
    let levels: Vec<&Costs> = others.iter().filter(is_level).collect();
    let names = curves.iter().map(|curve| curve.collector.as_str());
    let names: Vec<&str> = names.chain(levels.iter().map(|costs| costs.stack.as_str())).collect();
    let costs = |name: usize, place: usize| match curves.get(name) {
        None => Some(levels[name - curves.len()]),
        Some(curve) => {
            let mut fits = curve.heaps.iter().filter(|heap| heap.fits);
            fits.find(|heap| heap.factor == factors[place]).map(|heap| &heap.costs)
        }
    };
    let of = |figure: usize, name: usize, place: usize| match (figure, costs(name, place)?) {
        (0, costs) if costs.stack == baseline => Some(ITSELF),
        (0, costs) => costs.cpu,
        (_, costs) if costs.is_least => Some(ITSELF),
        (_, costs) => costs.overhead,
    };
    let label = |factor: &f64| {
        let size = |curve: &HeapCurve| {
            let bytes = curve.heaps.iter().find(|heap| heap.factor == *factor)?.heap_bytes?;
            Some(format!(", {} KiB under {}", kib(bytes), curve.collector))
        };
        format!("{factor} times the smallest heap{}", curves.iter().filter_map(size).collect::<String>())
    };
    let places = Places {
        axis: "heap, times the smallest; level: stacks at their own memory",
        labels: factors.iter().map(label).collect(),
        positions: factors.clone(),
        base: None,
    };
    let ideal = "the cheapest stack's CPU without its known memory-management cost: a lower bound";
    let figures = [("CPU over heap size", baseline), ("Lower bound on overhead", ideal)];
    let drawn = sweep::charts(what, &places, &figures, &names, &of);
    drawn.into_iter().chain(cpu_over_memory(what, curves, others).map(Item::Chart)).collect()
}

/// Medians of CPU over medians of peak memory: a line a collector, a point any other. None over programs.
fn cpu_over_memory(what: &str, curves: &[HeapCurve], others: &[Costs]) -> Option<Chart> {
    let mark = |costs: &Costs, size: String| {
        let at = (costs.peak_rss_kib?, costs.cpu_s?);
        let text = format!("{size}\nCPU {} s, peak RSS {} KiB", format::seconds(at.1), count(at.0));
        Some((at, text))
    };
    let marked = |name: &str, marks: Vec<((f64, f64), String)>| {
        let (points, labels) = marks.into_iter().unzip();
        Series { name: name.into(), points, labels, ..Series::default() }
    };
    let collectors = curves.iter().map(|curve| {
        let fits = curve.heaps.iter().filter(|one| one.fits);
        marked(&curve.collector, fits.filter_map(|one| mark(&one.costs, heap(one))).collect())
    });
    let own = others
        .iter()
        .map(|costs| marked(&costs.stack, mark(costs, "its own memory".into()).into_iter().collect()));
    let series: Vec<Series> = collectors.chain(own).filter(|series| !series.points.is_empty()).collect();
    let all = || series.iter().flat_map(|series| &series.points);
    let (x, y) = (all().map(|at| at.0), all().map(|at| at.1));
    let (x, y) = (Axis::spread("peak RSS, KiB", x), Axis::spread("CPU, s", y));
    let caption = "Medians. A line is a collector in heaps of several sizes, a single point a stack that takes the memory \
                   it wants.";
    let has_lines = series.iter().any(|series| series.points.len() > 1);
    let title = format!("CPU over memory: {what}");
    has_lines.then(|| Chart { title, caption: caption.into(), form: Form::Joined, x, y, series })
}

#[cfg(test)]
mod tests {
    use heaptoll_experiment::comparison::HeapPoint;
    use heaptoll_statistics::Interval;

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
        let charts: Vec<Chart> = charts("cfrac", &curves, &points, "glibc")
            .into_iter()
            .filter_map(|item| if let Item::Chart(chart) = item { Some(chart) } else { None })
            .collect();
        let titles: Vec<&str> = charts.iter().map(|chart| chart.title.as_str()).collect();
        assert_eq!(titles, ["CPU over heap size: cfrac", "CPU over memory: cfrac"], "there is no bound");
        let of = |chart: usize, name: &str| -> Vec<usize> {
            let named = charts[chart].series.iter().filter(|series| series.name == name);
            named.map(|series| series.points.len()).collect()
        };
        // What does not fit is no point; levels reach over all factors.
        assert_eq!((of(0, "c"), of(0, "malloc"), of(0, "glibc")), (vec![2], vec![3], vec![3]));
        assert_eq!(charts[0].series[1].points, [(1.0, 1.0), (2.0, 1.0), (4.0, 1.0)]);
        assert_eq!(
            charts[0].series[0].labels[0],
            "2 times the smallest heap, 4 KiB under c\n2.00 (1.90–2.10)"
        );
        assert_eq!((of(1, "c"), of(1, "malloc")), (vec![2, 1], vec![1]));
    }
}
