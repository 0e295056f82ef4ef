//! From runs to figures: medians, and ratios to the first plan.

use crate::replay_graph::mmtk::{Prepared, Replayed};
use heaptoll_replay::findings::tally;
use heaptoll_statistics::{ALPHA, Interval, median};

use super::cells::Cell;
use super::figures::{Checked, Ending, GraphReplayFigures, Heap, PlanRow, Row, Spent};
use super::heaps;
use super::misses::{self, Misses, SimulatedMachine};
use super::request::GraphReplayRequest;

/// What was measured.
pub struct Measured<'a> {
    /// What was requested.
    pub request: &'a GraphReplayRequest,
    /// Seed of the order of runs.
    pub seed: u64,
    /// What the trace holds.
    pub prepared: Prepared,
    /// By plan.
    pub plans: Vec<PlanRow>,
    /// By plan and heap.
    pub cells: Vec<Cell>,
    /// Whether all runs were made.
    pub complete: bool,
}

/// The figures.
pub fn findings(measured: Measured) -> GraphReplayFigures {
    let request = measured.request;
    let ratios = ratios(&measured);
    let rows_of = |heap: usize| -> Vec<Row> {
        let here = |cell: &&Cell| cell.heap.is_none_or(|of| of == heap);
        let row = |cell: &Cell| Row {
            misses: simulated(cell, &measured),
            ..row(cell, &measured.plans[cell.plan].plan, ratios.of(cell.plan, heap))
        };
        measured.cells.iter().filter(here).map(row).collect()
    };
    let heaps = (0..request.heaps.len()).map(|at| Heap { size: request.heaps[at], rows: rows_of(at) });
    GraphReplayFigures {
        trace: request.trace.display().to_string(),
        base: request.base,
        collector_threads: request.collector_threads,
        runs: request.runs,
        seed: measured.seed,
        checked: request.check,
        simulated: request.misses.as_ref().map(|question| SimulatedMachine {
            machine: question.machine.clone(),
            origin: question.origin.into(),
            collections: question.collections,
        }),
        complete: measured.complete,
        least_heap_bytes: heaps::least(&measured.plans),
        heaps: heaps.collect(),
        warnings: measured.prepared.warnings.clone(),
        plans: measured.plans,
        prepared: measured.prepared,
    }
}

/// CPU of a run, ns: of the thread that replays, and of the collector without the replay's bookkeeping, which ran on the
/// collector's threads and is measured by their CPU clocks.
fn cpu_ns(run: &Replayed) -> [f64; 2] {
    [run.mutator_cpu_ns as f64, run.collector_cpu_ns as f64 - run.collections.bookkeeping_cpu_ns as f64]
}

/// What is compared: CPU of all threads, and of the one that replays.
const METRICS: [fn(&Replayed) -> f64; 2] = [|run| cpu_ns(run).iter().sum(), |run| cpu_ns(run)[0]];

/// Ratios to the first plan, one family of intervals.
struct Ratios {
    /// Plan and heap.
    places: Vec<(usize, usize)>,
    /// One for each metric and place.
    intervals: Vec<Option<Interval>>,
}

impl Ratios {
    fn of(&self, plan: usize, heap: usize) -> [Option<Interval>; 2] {
        let place = self.places.iter().position(|place| *place == (plan, heap));
        place.map_or([None; 2], |at| [0, 1].map(|metric| self.intervals[METRICS.len() * at + metric]))
    }
}

fn ratios(measured: &Measured) -> Ratios {
    let cell = |plan: usize, heap: usize| {
        let is = |cell: &&Cell| cell.plan == plan && cell.heap.is_none_or(|of| of == heap);
        measured.cells.iter().find(is).filter(|cell| !cell.runs.is_empty())
    };
    let (mut places, mut series) = (Vec::new(), Vec::new());
    for heap in 0..measured.request.heaps.len() {
        let Some(base) = cell(0, heap) else { continue };
        for plan in 1..measured.plans.len() {
            let Some(other) = cell(plan, heap) else { continue };
            places.push((plan, heap));
            series.extend(METRICS.map(|metric| log_ratios(other, base, metric, measured.request.runs)));
        }
    }
    let intervals = heaptoll_statistics::paired(&series, ALPHA, measured.seed);
    Ratios { places, intervals }
}

fn log_ratios(one: &Cell, base: &Cell, metric: fn(&Replayed) -> f64, runs: u32) -> Vec<Option<f64>> {
    let of = |cell: &Cell, number: u32| {
        let run = cell.runs.iter().find(|run| run.0 == number)?;
        Some(metric(&run.1)).filter(|value| *value > 0.0)
    };
    (0..runs).map(|number| Some((of(one, number)? / of(base, number)?).ln())).collect()
}

fn row(cell: &Cell, plan: &str, [cpu_ratio, mutator_ratio]: [Option<Interval>; 2]) -> Row {
    Row {
        plan: plan.to_owned(),
        heap_bytes: cell.heap.map(|_| cell.heap_bytes),
        ending: ending(cell),
        failures: tally(&cell.failures),
        spent: spent(cell),
        cpu_ratio,
        mutator_ratio,
        checked: cell.checked.as_ref().map(checked),
        misses: None,
    }
}

fn simulated(cell: &Cell, measured: &Measured) -> Option<Misses> {
    let question = measured.request.misses.as_ref()?;
    misses::misses(cell.simulated.as_ref()?, &question.machine, measured.seed)
}

fn ending(cell: &Cell) -> Ending {
    if let Some(full) = &cell.full {
        return Ending::DoesNotFit {
            objects: full.objects,
            live_bytes: full.live_bytes,
            present_bytes: full.present_bytes,
        };
    }
    let mut others = [&cell.checked, &cell.simulated].into_iter().flatten();
    let whole = !cell.runs.is_empty() || others.any(|run| run.fits);
    if whole { Ending::Fits } else { Ending::Unknown }
}

fn checked(run: &Replayed) -> Checked {
    let found = &run.collections;
    Checked {
        collections: found.checked,
        violation: found.violation.clone(),
        damage: found.damage.clone(),
        reached_objects: found.reached_objects,
        reached_bytes: found.reached_bytes,
        beyond_objects: found.beyond_objects,
        beyond_bytes: found.beyond_bytes,
    }
}

fn spent(cell: &Cell) -> Option<Spent> {
    let of = |figure: &dyn Fn(&Replayed) -> f64| {
        median(&cell.runs.iter().map(|(_, run)| figure(run)).collect::<Vec<f64>>())
    };
    let pauses: Vec<f64> =
        cell.runs.iter().flat_map(|(_, run)| &run.collections.pauses_ns).map(|ns| *ns as f64).collect();
    (!cell.runs.is_empty()).then(|| Spent {
        runs: cell.runs.len() as u32,
        cpu_s: of(&|run| cpu_ns(run).iter().sum::<f64>() / 1e9),
        mutator_cpu_s: of(&|run| cpu_ns(run)[0] / 1e9),
        collector_cpu_s: of(&|run| cpu_ns(run)[1] / 1e9),
        bookkeeping_s: of(&|run| run.collections.bookkeeping_cpu_ns as f64 / 1e9),
        elapsed_s: of(&|run| run.replay_ns as f64 / 1e9),
        full_collections: of(&|run| run.collections.full as f64),
        nursery_collections: of(&|run| run.collections.nursery as f64),
        copied_bytes: of(&|run| run.copied_bytes as f64),
        median_pause_ns: median(&pauses),
        longest_pause_ns: pauses.iter().copied().fold(0.0, f64::max),
        hidden: of(&|run| run.collections.hidden as f64),
        most_hidden: of(&|run| run.collections.most_hidden as f64),
        lost_edges: of(&|run| run.lost_edges as f64),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use heaptoll_moving_answers::Collections;

    use super::*;
    use crate::replay_graph::cells::Purpose;
    use crate::replay_graph::request::{HeapBase, HeapSize};

    fn run(mutator_cpu_ns: u64, collector_cpu_ns: u64, pauses_ns: Vec<u64>) -> Replayed {
        let collections = Collections {
            pauses_ns,
            bookkeeping_ns: 100_000,
            bookkeeping_cpu_ns: 100,
            ..Collections::default()
        };
        Replayed { fits: true, mutator_cpu_ns, collector_cpu_ns, collections, ..Replayed::default() }
    }

    fn cell(plan: usize, heap: Option<usize>, runs: Vec<Replayed>) -> Cell {
        let mut cell = Cell::new(plan, heap, 4096);
        cell.runs = (0..).zip(runs).collect();
        cell
    }

    fn request(heaps: usize) -> GraphReplayRequest {
        GraphReplayRequest {
            trace: "a.graph".into(),
            plans: vec![],
            heaps: vec![HeapSize::Times(2.0); heaps],
            base: HeapBase::Least,
            tolerance: 0.01,
            check: false,
            misses: None,
            runs: 2,
            seed: Some(1),
            collector_threads: 1,
            timeout: Duration::from_secs(1),
            memory_limit_bytes: 1 << 30,
        }
    }

    fn of(request: &GraphReplayRequest, plans: &[&str], cells: Vec<Cell>) -> GraphReplayFigures {
        let plans = plans.iter().map(|plan| PlanRow::new(plan)).collect();
        let prepared = Prepared::default();
        findings(Measured { request, seed: 1, prepared, plans, cells, complete: true })
    }

    #[test]
    fn bookkeeping_is_no_cost_of_a_collector_and_ratios_are_paired_with_the_first_plan() {
        let cells = vec![
            cell(0, Some(0), vec![run(1000, 1100, vec![10, 30]), run(2000, 2100, vec![20])]),
            cell(1, Some(0), vec![run(1000, 5100, vec![]), run(2000, 10_100, vec![])]),
        ];
        let figures = of(&request(1), &["marksweep", "semispace"], cells);
        let [first, second] = &figures.heaps[0].rows[..] else { panic!("{figures:?}") };
        let spent = first.spent.expect("runs");
        assert_eq!((spent.mutator_cpu_s, spent.collector_cpu_s), (1.5e-6, 1.5e-6));
        assert_eq!((spent.median_pause_ns, spent.longest_pause_ns), (20.0, 30.0));
        assert_eq!((first.cpu_ratio, first.ending), (None, Ending::Fits));
        let ratio = |interval: Option<Interval>| interval.map(|found| (found.ratio * 100.0).round());
        assert_eq!((ratio(second.cpu_ratio), ratio(second.mutator_ratio)), (Some(300.0), Some(100.0)));
    }

    #[test]
    fn a_plan_that_collects_nothing_is_in_every_heap_and_one_that_does_not_fit_has_no_ratio() {
        let live = Replayed { fits: false, live_bytes: 77, present_bytes: 99, ..Replayed::default() };
        let mut full = cell(0, Some(1), vec![]);
        full.add(Purpose::Time(0), live);
        assert!(full.is_settled());
        let cells = vec![
            cell(0, Some(0), vec![run(1000, 100, vec![]), run(1000, 100, vec![])]),
            full,
            cell(1, None, vec![run(500, 100, vec![]), run(500, 100, vec![])]),
        ];
        let figures = of(&request(2), &["immix", "nogc"], cells);
        let rows = figures.heaps.iter().map(|heap| &heap.rows).collect::<Vec<_>>();
        assert!(rows.iter().all(|rows| rows[1].plan == "mmtk:nogc" && rows[1].heap_bytes.is_none()));
        assert!(rows[0][1].cpu_ratio.is_some_and(|found| (found.ratio - 0.5).abs() < 1e-9));
        assert_eq!(rows[1][1].cpu_ratio, None);
        let ending = Ending::DoesNotFit { objects: 0, live_bytes: 77, present_bytes: 99 };
        assert_eq!((rows[1][0].ending, rows[1][0].spent), (ending, None));
    }
}
