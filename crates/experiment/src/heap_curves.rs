//! Costs of collectors over the size of their heap, with those of the other stacks at their own memory, and the lower
//! bound of overhead of each (Cai, Blackburn, Bond and Maas 2022): a collector has no one cost, but one for each heap.
//!
//! Each heap is a stack of its own in the same paired runs, so every figure here is one of the tables.

use heaptoll_statistics::Interval;

use crate::comparison::{
    BoundRow, Comparison, Costs, HeapCurve, HeapCurves, HeapPoint, Metric, ProgramHeaps, ProgramTable, Row,
};
use crate::experiment::Experiment;

/// The curves of a comparison, from its tables.
pub fn heap_curves(experiment: &Experiment, comparison: &Comparison) -> HeapCurves {
    let programs: Vec<ProgramHeaps> =
        comparison.tables.iter().filter_map(|table| of_program(experiment, comparison, table)).collect();
    let overall =
        if comparison.overall.is_empty() { vec![] } else { overall(experiment, comparison, &programs) };
    HeapCurves { programs, overall }
}

fn of_program(
    experiment: &Experiment,
    comparison: &Comparison,
    table: &ProgramTable,
) -> Option<ProgramHeaps> {
    let mut found = ProgramHeaps { program: table.program.clone(), ..ProgramHeaps::default() };
    // In the order in which they were requested, and not in that of the table.
    for stack in experiment.stacks_of(&table.program) {
        let Some(row) = table.rows.iter().find(|row| row.stack == stack.name) else { continue };
        let costs = costs(comparison, &table.program, row);
        let Some(limit) = &stack.heap else {
            found.points.extend((row.good > 0).then_some(costs));
            continue;
        };
        let point = HeapPoint {
            factor: limit.factor,
            heap_bytes: Some(limit.bytes),
            fits: row.good > 0 && row.marks.is_empty(),
            programs: u32::from(costs.cpu.is_some()),
            costs,
        };
        match found.curves.iter_mut().find(|curve| curve.collector == limit.collector) {
            Some(curve) => curve.heaps.push(point),
            None => found.curves.push(HeapCurve {
                collector: limit.collector.clone(),
                smallest_bytes: Some(limit.smallest_bytes),
                heaps: vec![point],
                ..HeapCurve::default()
            }),
        }
    }
    found.curves.iter_mut().for_each(judge);
    (!found.curves.is_empty()).then_some(found)
}

fn costs(comparison: &Comparison, program: &str, row: &Row) -> Costs {
    let bounds = comparison.lower_bounds.programs.iter().find(|bounds| bounds.program == program);
    let bounds = bounds.and_then(|bounds| bounds.cpu.as_ref());
    let of_stack = |bound: &&BoundRow| bound.stack == row.stack;
    let bound = bounds.and_then(|bounds| bounds.rows.iter().find(of_stack));
    let (cpu, rss) = (row.figures.get(&Metric::Cpu), row.figures.get(&Metric::PeakRss));
    Costs {
        stack: row.stack.clone(),
        cpu_s: cpu.map(|figure| figure.median),
        cpu: cpu.and_then(|figure| figure.ratio),
        peak_rss_kib: rss.map(|figure| figure.median),
        peak_rss: rss.and_then(|figure| figure.ratio),
        overhead: bound.and_then(|bound| bound.bound),
        is_least: bounds.is_some_and(|bounds| bounds.baseline == row.stack)
            && bound.is_some_and(|bound| bound.attributed_s == 0.0),
    }
}

/// Geometric means over programs, by collector and factor.
fn overall(experiment: &Experiment, comparison: &Comparison, programs: &[ProgramHeaps]) -> Vec<HeapCurve> {
    let curves = || programs.iter().flat_map(|program| &program.curves);
    let mut found: Vec<HeapCurve> = Vec::new();
    for curve in curves() {
        if found.iter().all(|other| other.collector != curve.collector) {
            let heaps = curve.heaps.iter().map(|heap| mean(comparison, programs, heap)).collect();
            found.push(HeapCurve { collector: curve.collector.clone(), heaps, ..HeapCurve::default() });
        }
    }
    // A collector that was left out of a program is not compared with what ran on all of them.
    let times = |collector: &str| curves().filter(|other| other.collector == collector).count();
    found.iter_mut().filter(|curve| times(&curve.collector) == experiment.programs.len()).for_each(judge);
    found
}

/// The means of one heap.
fn mean(comparison: &Comparison, programs: &[ProgramHeaps], heap: &HeapPoint) -> HeapPoint {
    let stack = &heap.costs.stack;
    let points = programs.iter().flat_map(|program| &program.curves).flat_map(|curve| &curve.heaps);
    HeapPoint {
        factor: heap.factor,
        heap_bytes: None,
        fits: points.filter(|point| point.costs.stack == *stack).all(|point| point.fits),
        programs: comparison.overall.iter().find(|row| row.stack == *stack).map_or(0, |row| row.programs),
        costs: mean_costs(comparison, stack),
    }
}

/// What a stack costs on average over programs.
pub fn mean_costs(comparison: &Comparison, stack: &str) -> Costs {
    let row = comparison.overall.iter().find(|row| row.stack == stack);
    let bound = comparison.lower_bounds.overall.iter().find(|row| row.stack == stack);
    Costs {
        stack: stack.into(),
        cpu: row.and_then(|row| row.cpu),
        peak_rss: row.and_then(|row| row.peak_rss),
        overhead: bound.and_then(|bound| bound.cpu),
        ..Costs::default()
    }
}

/// Sorts the heaps and finds from which on the collector costs no more CPU than the baseline.
fn judge(curve: &mut HeapCurve) {
    curve.heaps.sort_by(|a, b| a.factor.total_cmp(&b.factor));
    let from = |is: fn(&Interval) -> bool| {
        let good = curve.heaps.iter().rev().take_while(|heap| {
            let cpu = heap.costs.cpu.as_ref().filter(|cpu| cpu.has_enough_pairs());
            heap.fits && cpu.is_some_and(is)
        });
        good.last().map(|heap| heap.factor)
    };
    curve.no_more_cpu_from = from(|cpu| !(cpu.differs && cpu.ratio > 1.0));
    curve.less_cpu_from = from(|cpu| cpu.differs && cpu.ratio < 1.0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{compare, judge_outputs};
    use crate::heap_limit::HeapLimit;
    use crate::observation::Outcome;
    use crate::testing::{experiment, row, stack};

    /// CPU seconds of a collector in heaps of 1, 1.5, 2 and 4 times 100 pages; nothing where it does not fit.
    fn with_costs(costs: [Option<f64>; 4]) -> Experiment {
        let mut made = experiment(&["glibc", "collector", "malloc"]);
        for (factor, cpu_s) in [4.0, 2.0, 1.5, 1.0].into_iter().zip(costs) {
            let limit = HeapLimit::of("collector", factor, 100 * 4096);
            made.stacks.push(crate::experiment::StackInfo {
                heap: Some(limit.clone()),
                ..stack("prog", &limit.stack())
            });
            for repetition in 0..8 {
                let mut one = row(&limit.stack(), repetition, cpu_s.unwrap_or(1.0), 1000);
                if cpu_s.is_none() {
                    one.outcome = Outcome::Exit(1);
                }
                made.observations.push(one);
            }
        }
        for (name, cpu_s) in [("glibc", 1.0), ("collector", 1.2), ("malloc", 0.8)] {
            for repetition in 0..8 {
                let noise = 1.0 + 0.001 * f64::from(repetition % 3);
                made.observations.push(row(name, repetition, cpu_s * noise, 2000));
            }
        }
        judge_outputs(&mut made);
        made
    }

    fn of(costs: [Option<f64>; 4]) -> ProgramHeaps {
        compare(&with_costs(costs)).heaps.programs.remove(0)
    }

    #[test]
    fn a_curve_has_a_point_for_each_heap_and_the_others_are_points() {
        let found = of([Some(0.7), Some(0.9), Some(1.3), Some(3.0)]);
        let curve = &found.curves[0];
        let factors: Vec<f64> = curve.heaps.iter().map(|heap| heap.factor).collect();
        assert_eq!(factors, [1.0, 1.5, 2.0, 4.0]);
        assert_eq!((curve.smallest_bytes, curve.heaps[2].heap_bytes), (Some(409_600), Some(819_200)));
        assert_eq!((curve.no_more_cpu_from, curve.less_cpu_from), (Some(2.0), Some(2.0)));
        let points: Vec<&str> = found.points.iter().map(|point| point.stack.as_str()).collect();
        assert_eq!(points, ["glibc", "collector", "malloc"]);
        let cpu = curve.heaps[0].costs.cpu.expect("a ratio");
        assert!((cpu.ratio - 3.0).abs() < 0.01 && curve.heaps[0].costs.overhead.is_some());
    }

    #[test]
    fn a_heap_in_which_it_does_not_fit_is_no_cheaper_heap() {
        let found = of([Some(0.7), None, Some(0.6), None]);
        let curve = &found.curves[0];
        assert_eq!(curve.heaps.iter().map(|heap| heap.fits).collect::<Vec<_>>(), [false, true, false, true]);
        assert_eq!(curve.less_cpu_from, Some(4.0));
        assert_eq!(of([Some(2.0); 4]).curves[0].no_more_cpu_from, None);
    }

    #[test]
    fn an_experiment_without_fixed_heaps_has_no_curves() {
        assert_eq!(compare(&experiment(&["glibc", "malloc"])).heaps, HeapCurves::default());
    }

    #[test]
    fn the_verdict_of_a_heap_that_is_too_small_is_that_it_does_not_fit() {
        let made = with_costs([Some(0.7), Some(0.9), Some(1.3), None]);
        let table = &compare(&made).tables[0];
        let verdict = table.rows.iter().find(|row| row.stack == "collector@1x").map(|row| &row.verdict);
        assert_eq!(verdict.map(String::as_str), Some("does not fit in 400 KiB: 8x exit status 1"));
        assert!(made.does_not_fit("prog", "collector@1x").is_some());
    }
}
