//! A lower bound is one whatever is attributed, and states what it rests on.

use proptest::prelude::*;

use super::*;
use crate::compare::compare;
use crate::experiment::ServeInfo;
use crate::observation::{ByOwner, Collections, ExactFigures};
use crate::testing::{experiment, row, stack};

/// The geometric mean of each manager's bounds over its repetitions.
fn means(costs: &[Vec<Option<Cost>>]) -> Vec<f64> {
    let at = baseline(costs).expect("there are costs");
    log_bounds(costs, at)
        .iter()
        .map(|logs| (logs.iter().flatten().sum::<f64>() / logs.iter().flatten().count() as f64).exp())
        .collect()
}

/// Managers over a program of a known cost: by manager, its overhead in each of 6 repetitions and the share of that
/// which is attributed.
fn worlds() -> impl Strategy<Value = (f64, Vec<Vec<(f64, f64)>>)> {
    let managers = prop::collection::vec(prop::collection::vec((0.0..3.0f64, 0.0..=1.0f64), 6), 1..6);
    (0.1..10.0f64, managers)
}

fn costs(ideal: f64, managers: &[Vec<(f64, f64)>]) -> Vec<Vec<Option<Cost>>> {
    let cost = |&(overhead, share): &(f64, f64)| {
        Some(Cost { total: ideal + overhead, attributed: overhead * share })
    };
    managers.iter().map(|runs| runs.iter().map(cost).collect()).collect()
}

proptest! {
    #[test]
    fn no_bound_is_above_the_overhead((ideal, managers) in worlds()) {
        for (bound, runs) in means(&costs(ideal, &managers)).into_iter().zip(&managers) {
            let logs = runs.iter().map(|(overhead, _)| ((ideal + overhead) / ideal).ln());
            let overhead = (logs.sum::<f64>() / runs.len() as f64).exp();
            prop_assert!(bound <= overhead * (1.0 + 1e-12), "{bound} of {overhead}");
        }
    }

    #[test]
    fn nothing_costs_less_than_the_baseline((ideal, managers) in worlds()) {
        for bound in means(&costs(ideal, &managers)) {
            prop_assert!(bound >= 1.0 - 1e-12, "{bound}");
        }
    }

    #[test]
    fn attributing_all_of_an_overhead_makes_the_bounds_exact((ideal, managers) in worlds()) {
        let mut managers = managers;
        for run in &mut managers[0] {
            run.1 = 1.0;
        }
        for (bound, runs) in means(&costs(ideal, &managers)).into_iter().zip(&managers) {
            let logs = runs.iter().map(|(overhead, _)| ((ideal + overhead) / ideal).ln());
            let overhead = (logs.sum::<f64>() / runs.len() as f64).exp();
            prop_assert!((bound / overhead - 1.0).abs() < 1e-9, "{bound} of {overhead}");
        }
    }

    #[test]
    fn attributing_less_or_leaving_a_manager_out_never_raises_a_bound(
        (ideal, managers) in worlds(), less in 0.0..1.0f64, left_out in 0..6usize
    ) {
        let all = means(&costs(ideal, &managers));
        let mut weaker = managers.clone();
        for run in weaker.iter_mut().flatten() {
            run.1 *= less;
        }
        for (weak, all) in means(&costs(ideal, &weaker)).into_iter().zip(&all) {
            prop_assert!(weak <= all * (1.0 + 1e-12), "{weak} {all}");
        }
        if managers.len() > 1 {
            let left_out = left_out % managers.len();
            let mut fewer = managers.clone();
            fewer.remove(left_out);
            let mut rest = all;
            rest.remove(left_out);
            for (few, all) in means(&costs(ideal, &fewer)).into_iter().zip(&rest) {
                prop_assert!(few <= all * (1.0 + 1e-12), "{few} {all}");
            }
        }
    }

    #[test]
    fn a_slower_machine_changes_no_bound((ideal, managers) in worlds(), slower in 0.01..100.0f64) {
        let costs = costs(ideal, &managers);
        let scaled: Vec<Vec<Option<Cost>>> = costs
            .iter()
            .map(|series| {
                let scale = |cost: Cost| Cost { total: cost.total * slower, attributed: cost.attributed * slower };
                series.iter().map(|cost| cost.map(scale)).collect()
            })
            .collect();
        for (a, b) in means(&costs).into_iter().zip(means(&scaled)) {
            prop_assert!((a / b - 1.0).abs() < 1e-9, "{a} {b}");
        }
    }
}

#[test]
fn a_manager_with_one_good_run_is_no_baseline() {
    let cost = |total| Some(Cost { total, attributed: 0.0 });
    let steady = vec![cost(2.0); 8];
    let lucky = std::iter::once(cost(1.0)).chain(vec![None; 7]).collect();
    assert_eq!(baseline(&[lucky, steady]), Some(1));
}

#[test]
fn more_attributed_than_there_was_is_no_baseline() {
    let cost = |total, attributed| Some(Cost { total, attributed });
    assert_eq!(baseline(&[vec![cost(1.0, 1.0); 6], vec![cost(3.0, 1.0); 6]]), Some(1));
    assert_eq!(baseline(&[vec![cost(1.0, 2.0); 6]]), None);
    assert_eq!(baseline(&[]), None);
}

/// glibc and a collector over 8 repetitions; the collector takes 1.5 s of CPU, a third of it in collections.
fn measured() -> Experiment {
    let mut made = experiment(&["glibc", "sweep/glibc"]);
    for repetition in 0..8 {
        let noise = 1.0 + 0.001 * f64::from(repetition % 3);
        made.observations.push(row("glibc", repetition, 1.2 * noise, 100));
        let collections =
            Collections { count: 4, pause_total_ns: 600_000_000, processes: 1, ..Collections::default() };
        made.observations.push(Observation {
            collections: Some(collections),
            collector_cpu_ns: Some(500_000_000),
            ..row("sweep/glibc", repetition, 1.5 * noise, 100)
        });
    }
    made
}

fn bounds(experiment: &Experiment) -> ProgramBounds {
    let mut bounds = lower_bounds(experiment, 8).programs;
    assert_eq!(bounds.len(), 1);
    bounds.remove(0)
}

fn bound(bounds: &Option<Bounds>, stack: &str) -> Option<f64> {
    let rows = &bounds.as_ref().expect("bounds").rows;
    rows.iter().find(|row| row.stack == stack).and_then(|row| row.bound).map(|bound| bound.ratio)
}

#[test]
fn a_collectors_mutator_is_the_baseline_of_an_allocator() {
    let found = bounds(&measured());
    let cpu = found.cpu.as_ref().expect("CPU");
    assert_eq!(cpu.baseline, "sweep/glibc");
    assert!((cpu.baseline_s - 1.0).abs() < 0.01, "{cpu:?}");
    // 1.2 s over 1.0 s, and 1.5 s over 1.0 s.
    let (glibc, sweep) = (bound(&found.cpu, "glibc"), bound(&found.cpu, "sweep/glibc"));
    assert!(glibc.is_some_and(|ratio| (ratio - 1.2).abs() < 0.01), "{glibc:?}");
    assert!(sweep.is_some_and(|ratio| (ratio - 1.5).abs() < 0.01), "{sweep:?}");
    // The time of the test rows is a tenth more than their CPU: 1.65 s, of which 0.6 s are pauses.
    let wall = bound(&found.wall, "sweep/glibc");
    assert!(wall.is_some_and(|ratio| (ratio - 1.65 / 1.05).abs() < 0.01), "{wall:?}");
    assert!(found.notes.iter().any(|note| note.starts_with("glibc: nothing is subtracted")), "{found:?}");
}

#[test]
fn exact_counts_attribute_malloc_and_free() {
    let mut made = measured();
    let instructions = ByOwner { program: 600, allocator: 400, collector: 0 };
    let exact = ExactFigures { instructions, whole: true, ..ExactFigures::default() };
    let traced = Observation { phase: Phase::Traced, exact: Some(exact), ..row("glibc", 0, 40.0, 100) };
    made.observations.push(traced.clone());
    let found = bounds(&made);
    // 60 % of 1.2 s is less than the collector's second.
    let cpu = found.cpu.as_ref().expect("CPU");
    assert_eq!((cpu.baseline.as_str(), cpu.rows[0].attributed.malloc_and_free), ("glibc", true));
    assert!((cpu.baseline_s - 0.72).abs() < 0.01, "{cpu:?}");
    assert!(found.notes.is_empty(), "{:?}", found.notes);
    // Figures of a run that was not received to its end are no share.
    let torn = ExactFigures { whole: false, ..exact };
    *made.observations.last_mut().expect("a row") = Observation { exact: Some(torn), ..traced };
    assert_eq!(bounds(&made).cpu.expect("CPU").baseline, "sweep/glibc");
}

#[test]
fn pauses_that_may_lie_side_by_side_are_not_taken_out_twice() {
    let mut made = measured();
    for collections in made.observations.iter_mut().filter_map(|row| row.collections.as_mut()) {
        collections.processes = 3;
    }
    let wall = bounds(&made).wall.expect("time");
    let sweep = wall.rows.iter().find(|row| row.stack == "sweep/glibc").expect("a row");
    assert!((sweep.attributed_s - 0.2).abs() < 1e-9, "{sweep:?}");
}

#[test]
fn pauses_without_processor_time_leave_cpu_alone() {
    let mut made = measured();
    for row in &mut made.observations {
        row.collector_cpu_ns = None;
    }
    let found = bounds(&made);
    assert_eq!(found.cpu.as_ref().map(|cpu| cpu.baseline.as_str()), Some("glibc"));
    assert_eq!(found.wall.as_ref().map(|wall| wall.baseline.as_str()), Some("sweep/glibc"));
    assert!(found.notes.iter().any(|note| note.contains("CPU time")), "{:?}", found.notes);
    // A baseline of which nothing was attributed is 1 by definition.
    assert_eq!(bound(&found.cpu, "glibc"), None);
}

#[test]
fn a_server_states_why_nothing_is_taken_out() {
    let mut made = measured();
    let serve = ServeInfo { load: vec!["true".into()], stop: "TERM".into(), ..ServeInfo::default() };
    made.programs[0].serve = Some(serve);
    let found = bounds(&made);
    assert!(found.notes.len() == 1 && found.notes[0].contains("server"), "{:?}", found.notes);
    assert_eq!(found.cpu.expect("CPU").baseline, "glibc");
}

#[test]
fn bounds_over_programs_are_geometric_means() {
    let mut made = measured();
    let mut second = made.programs[0].clone();
    second.name = "other".into();
    made.programs.push(second);
    made.stacks.extend(["glibc", "sweep/glibc"].map(|name| stack("other", name)));
    for repetition in 0..8 {
        let noise = 1.0 + 0.001 * f64::from(repetition % 3);
        for (name, cpu) in [("glibc", 1.0), ("sweep/glibc", 2.0)] {
            made.observations
                .push(Observation { program: "other".into(), ..row(name, repetition, cpu * noise, 100) });
        }
    }
    let bounds = compare(&made).lower_bounds;
    assert_eq!(bounds.programs.len(), 2);
    let of = |name: &str| bounds.overall.iter().find(|row| row.stack == name).expect(name);
    let glibc = of("glibc").cpu.expect("an interval");
    assert!((glibc.ratio - 1.2f64.sqrt()).abs() < 0.01 && of("glibc").programs == 2, "{glibc:?}");
    let sweep = of("sweep/glibc").cpu.expect("an interval");
    assert!((sweep.ratio - 3f64.sqrt()).abs() < 0.01, "{sweep:?}");
}

#[test]
fn without_good_rows_there_are_no_bounds() {
    assert_eq!(lower_bounds(&experiment(&["glibc"]), 8), LowerBounds::default());
}
