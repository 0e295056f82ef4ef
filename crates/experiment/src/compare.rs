//! From rows to tables: medians, paired ratios with simultaneous intervals, verdicts in words. Pure functions.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use heaptoll_statistics::{ALPHA, FEWEST_PAIRS, Interval, median};

use crate::company::{self, Company};
use crate::comparison::{
    CollectionFigures, Comparison, Figure, HeapCurves, Metric, OverallRow, ProgramTable, Row,
};
use crate::disturbance::{Disturbance, Disturbed};
use crate::exact;
use crate::experiment::Experiment;
use crate::heap_curves::heap_curves;
use crate::lower_bound;
use crate::means::{LogRatios, Mean, means};
use crate::nodes::node_ratios;
use crate::observation::{Collections, Observation, Outcome, Phase};
use crate::side::{Side, Sides, Startup};
use crate::sweep::{OfProgram, Sweep};
use crate::{varied_curves, verdict};

/// Marks rows whose output differs from the baseline's. Where the baseline disagrees with itself the catalog's digest
/// decides, if there is one; else output cannot be a test and nothing is marked. A baseline that always prints the
/// same, but not what the catalog expects, is another version of the program: [`compare`] notes it.
pub fn judge_outputs(experiment: &mut Experiment) {
    for program in &experiment.programs {
        if program.serve.is_some() {
            continue;
        }
        let baseline = baseline_digests(experiment, &program.name);
        let reference = match (baseline.as_slice(), &program.expected_digest) {
            ([only], _) => only.clone(),
            (_, Some(expected)) => expected.clone(),
            _ => continue,
        };
        let judged = experiment.observations.iter_mut().filter(|row| row.program == program.name);
        for row in judged.filter(|row| row.phase != Phase::Startup && row.outcome.is_ok()) {
            if row.output_digest != reference {
                row.outcome = Outcome::WrongOutput;
            }
        }
    }
}

/// The distinct digests of the baseline's good rows: of measured ones, and of traced ones where there are no others. A
/// program may print otherwise under the tracer, and that proves nothing against its measured runs.
fn baseline_digests(experiment: &Experiment, program: &str) -> Vec<String> {
    let digests = |counts: fn(Phase) -> bool| {
        let of_baseline = experiment.rows(program, &experiment.baseline).filter(|row| counts(row.phase));
        let good = of_baseline.filter(|row| matches!(row.outcome, Outcome::Ok | Outcome::WrongOutput));
        let mut digests: Vec<String> = good.map(|row| row.output_digest.clone()).collect();
        digests.sort();
        digests.dedup();
        digests
    };
    let measured = digests(Phase::is_measured);
    if measured.is_empty() { digests(|phase| phase == Phase::Traced) } else { measured }
}

const METRICS: [Metric; 4] = [Metric::Cpu, Metric::Wall, Metric::PeakRss, Metric::Instructions];

/// Every table of an experiment. Call [`judge_outputs`] first.
pub fn compare(experiment: &Experiment) -> Comparison {
    let repetitions = experiment.repetitions();
    let programs = experiment.programs.iter();
    let programs = programs.map(|program| ComparedProgram::of(experiment, &program.name, repetitions, true));
    gather(experiment, programs.collect(), repetitions)
}

/// One program of a comparison, and what the means over programs take of it. An experiment of many rows is compared
/// program by program, so that the rows of one are in memory at a time.
pub struct ComparedProgram {
    table: ProgramTable,
    /// Of each stack but the baseline: CPU time and peak memory.
    ratios: LogRatios,
    bounds: Option<lower_bound::Computed>,
    varied: OfProgram<varied_curves::Axis>,
}

/// The metrics of means over programs.
const OVERALL: [Metric; 2] = [Metric::Cpu, Metric::PeakRss];

impl ComparedProgram {
    /// Compares a program whose rows, if no others, are in the experiment, over `repetitions` repetitions (rounds, of
    /// programs whose stacks take turns); with lower bounds of overhead only where they are requested.
    pub fn of(experiment: &Experiment, program: &str, repetitions: u32, bounds: bool) -> ComparedProgram {
        let mut sides = Sides::of(experiment, program);
        let company = company::settle(experiment, &mut sides, repetitions);
        let base = sides.find(&experiment.baseline);
        let others = sides.all.iter().filter(|side| side.stack != experiment.baseline);
        let ratios = base.map_or(vec![], |base| {
            let of = |side: &Side| OVERALL.map(|metric| side.log_ratios(base, metric, repetitions));
            others.map(|side| (side.stack.to_owned(), of(side))).collect()
        });
        ComparedProgram {
            varied: OfProgram::of(&varied_curves::axis(experiment), experiment, &sides, program, repetitions),
            table: table(experiment, program, &sides, company, repetitions),
            ratios,
            bounds: bounds.then(|| lower_bound::Computed::of(experiment, program, repetitions)).flatten(),
        }
    }
}

/// The comparison of an experiment, whose rows need not be there, from that of all of its programs in their order.
pub fn gather(experiment: &Experiment, programs: Vec<ComparedProgram>, repetitions: u32) -> Comparison {
    let overall = overall(experiment, &programs, repetitions);
    let (mut tables, mut bounds, mut swept) = (Vec::new(), Vec::new(), Vec::new());
    for program in programs {
        tables.push(program.table);
        swept.push(program.varied);
        bounds.extend(program.bounds);
    }
    let mut comparison = Comparison {
        baseline: experiment.baseline.clone(),
        alpha: experiment.alpha(),
        tables,
        overall,
        lower_bounds: lower_bound::gather(experiment, bounds, repetitions),
        heaps: HeapCurves::default(),
        varied: varied_curves::curves(
            experiment,
            &Sweep::gather(&varied_curves::axis(experiment), experiment, swept, repetitions),
        ),
    };
    comparison.heaps = heap_curves(experiment, &comparison);
    comparison
}

fn table(
    experiment: &Experiment,
    program: &str,
    sides: &Sides,
    company: Company,
    repetitions: u32,
) -> ProgramTable {
    // One family: every stack but the baseline, every metric that has values.
    let mut members: Vec<(usize, Metric)> = Vec::new();
    let mut series = Vec::new();
    if let Some(base) = sides.find(&experiment.baseline) {
        for (index, side) in sides.all.iter().enumerate().filter(|(_, side)| side.stack != base.stack) {
            for metric in METRICS.into_iter().filter(|metric| !side.values(*metric).is_empty()) {
                members.push((index, metric));
                series.push(side.log_ratios(base, metric, repetitions));
            }
        }
    }
    let intervals = experiment.paired(&series);
    let ratio = |index: usize, metric: Metric| -> Option<Interval> {
        members.iter().position(|member| *member == (index, metric)).and_then(|at| intervals[at])
    };

    let mut rows: Vec<Row> = sides
        .all
        .iter()
        .zip(own_ratios(experiment, sides, repetitions))
        .enumerate()
        .map(|(index, (side, own_ratios))| {
            let figures: BTreeMap<Metric, Figure> = METRICS
                .into_iter()
                .filter_map(|metric| Some((metric, figure(&side.values(metric), ratio(index, metric))?)))
                .collect();
            Row { load_ratios: own_ratios, ..row(experiment, program, side, figures) }
        })
        .collect();
    mark_frontier(&mut rows);
    rows.sort_by(|a, b| sort_key(a).total_cmp(&sort_key(b)));
    let half_widths: Vec<f64> = rows
        .iter()
        .filter_map(|row| row.figures.get(&Metric::Cpu)?.ratio)
        .filter(|interval| interval.pairs as usize >= FEWEST_PAIRS)
        .map(|interval| interval.high / interval.ratio)
        .collect();
    let digests = baseline_digests(experiment, program);
    let noted = verdict::notes(experiment, program, &rows, &digests, sides.startup);
    let asides = noted.asides.into_iter().chain(company.aside);
    let mut notes: Vec<String> = noted.doubts.into_iter().chain(company.doubts).collect();
    let doubts = notes.len();
    notes.extend(asides);
    ProgramTable {
        exact: exact::table(experiment, program, sides.startup, &rows),
        program: program.into(),
        detectable_cpu_ratio: (!half_widths.is_empty()).then(|| median(&half_widths)),
        disturbance: disturbed(experiment, program),
        nodes: node_ratios(experiment, program, sides, repetitions),
        rows,
        asides: notes.len() - doubts,
        includes_startup: matches!(sides.startup, Startup::Failed | Startup::Everything),
        notes,
        company: company.effect,
    }
}

/// Ratios to the baseline of what loads and programs report themselves, by stack. Each figure is a family of its own.
fn own_ratios(experiment: &Experiment, sides: &Sides, rounds: u32) -> Vec<BTreeMap<String, Interval>> {
    let mut all = vec![BTreeMap::new(); sides.all.len()];
    let Some(base) = sides.find(&experiment.baseline) else { return all };
    for name in base.own_names() {
        let of = |side: &Side| match side.stack == base.stack {
            true => Vec::new(),
            false => side.own_log_ratios(base, name, rounds),
        };
        let series: Vec<Vec<Option<f64>>> = sides.all.iter().map(of).collect();
        let intervals = experiment.paired(&series);
        for (own, interval) in all.iter_mut().zip(intervals) {
            own.extend(interval.map(|interval| (name.to_owned(), interval)));
        }
    }
    all
}

/// What disturbed the timed runs of a program; rows of one block share their span.
fn disturbed(experiment: &Experiment, program: &str) -> Option<Disturbed> {
    let timed =
        experiment.observations.iter().filter(|row| row.program == program && row.phase == Phase::Timed);
    let block = |row: &Observation| experiment.stack(program, &row.stack).map_or(0, |stack| stack.block);
    let spans = timed.filter_map(|row| Some(((row.repetition, block(row)), row.disturbance?)));
    let spans: Vec<Disturbance> = if experiment.is_in_lockstep(program) {
        spans.collect::<BTreeMap<(u32, u32), Disturbance>>().into_values().collect()
    } else {
        spans.map(|(_, span)| span).collect()
    };
    Disturbed::of(&spans)
}

fn figure(values: &[f64], ratio: Option<Interval>) -> Option<Figure> {
    (!values.is_empty()).then(|| Figure {
        median: median(values),
        min: values.iter().copied().fold(f64::INFINITY, f64::min),
        max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        ratio,
    })
}

fn row(experiment: &Experiment, program: &str, side: &Side, figures: BTreeMap<Metric, Figure>) -> Row {
    let marks = marks(experiment, program, side.stack);
    // Pauses and elapsed times of runs that shared a processor are not a run's own.
    let rows: Vec<&Observation> = side.by_itself().values().copied().collect();
    let middle = |values: Vec<f64>| (!values.is_empty()).then(|| median(&values));
    let mut by_name: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for (name, value) in rows.iter().flat_map(|row| row.own_figures()) {
        by_name.entry(name.to_owned()).or_default().push(value);
    }
    Row {
        stack: side.stack.into(),
        good: side.timed.len() as u32,
        startup_cpu_s: side.startup_cpu_s(),
        minor_faults: median(&rows.iter().map(|row| row.minor_faults as f64).collect::<Vec<_>>()),
        involuntary_switches_per_cpu_s: middle(
            side.timed.values().filter(|row| row.cpu_s() > 0.0).map(|row| switches_per_cpu_s(row)).collect(),
        ),
        heap_high_water_bytes: middle(
            rows.iter().filter_map(|row| row.heap_high_water_bytes).map(|bytes| bytes as f64).collect(),
        ),
        collections: collections(&rows),
        load_figures: by_name.into_iter().map(|(name, values)| (name, median(&values))).collect(),
        load_ratios: BTreeMap::new(),
        verdict: verdict::text(
            side.stack == experiment.baseline,
            &figures,
            &marks,
            experiment.does_not_fit(program, side.stack),
        ),
        on_frontier: false,
        marks,
        figures,
    }
}

fn switches_per_cpu_s(row: &Observation) -> f64 {
    row.involuntary_switches as f64 / row.cpu_s()
}

fn collections(rows: &[&Observation]) -> Option<CollectionFigures> {
    let collections: Vec<Collections> = rows.iter().filter_map(|row| row.collections).collect();
    let middle = |figure: fn(&Collections) -> u64| {
        median(&collections.iter().map(|one| figure(one) as f64).collect::<Vec<_>>())
    };
    (!collections.is_empty()).then(|| CollectionFigures {
        count: middle(|one| one.count),
        pause_total_s: middle(|one| one.pause_total_ns) / 1e9,
        pause_max_s: middle(|one| one.pause_max_ns) / 1e9,
        reclaimed_bytes: middle(|one| one.reclaimed_bytes),
    })
}

/// What went wrong, most frequent first, e.g. `3x killed by signal 11`.
fn marks(experiment: &Experiment, program: &str, stack: &str) -> Vec<String> {
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    let rows = experiment.rows(program, stack);
    for row in rows.filter(|row| row.phase.is_measured() && row.outcome.is_failure()) {
        *counts.entry(row.outcome.to_string()).or_default() += 1;
    }
    let mut sorted: Vec<(String, u32)> = counts.into_iter().collect();
    sorted.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    sorted.into_iter().map(|(what, count)| format!("{count}x {what}")).collect()
}

fn sort_key(row: &Row) -> f64 {
    row.figures.get(&Metric::Cpu).map_or(f64::INFINITY, |figure| {
        figure.ratio.map_or_else(|| if row.good > 0 { 1.0 } else { f64::INFINITY }, |interval| interval.ratio)
    })
}

fn mark_frontier(rows: &mut [Row]) {
    let costs: Vec<Option<(f64, f64)>> = rows
        .iter()
        .map(|row| {
            // A manager that fails now and then is no choice, however cheap.
            row.marks.is_empty().then_some(())?;
            Some((row.figures.get(&Metric::Cpu)?.median, row.figures.get(&Metric::PeakRss)?.median))
        })
        .collect();
    for (row, own) in rows.iter_mut().zip(&costs) {
        let Some(own) = own else { continue };
        let dominates = |other: &(f64, f64)| other.0 <= own.0 && other.1 <= own.1 && other != own;
        row.on_frontier = !costs.iter().flatten().any(dominates);
    }
}

/// Geometric means over the programs on which a stack has enough pairs, with intervals over repetitions.
fn overall(experiment: &Experiment, programs: &[ComparedProgram], repetitions: u32) -> Vec<OverallRow> {
    if programs.len() < 2 {
        return Vec::new();
    }
    let ratios: Vec<&LogRatios> = programs.iter().map(|program| &program.ratios).collect();
    let means = means(experiment, &ratios, repetitions, |stack| stack != experiment.baseline);
    let row = |Mean { stack, programs, ratios: [cpu, peak_rss] }| OverallRow {
        stack: stack.to_owned(),
        programs,
        cpu,
        peak_rss,
    };
    let mut rows: Vec<OverallRow> = means.into_iter().map(row).collect();
    let key = |row: &OverallRow| row.cpu.map_or(f64::INFINITY, |interval| interval.ratio);
    rows.sort_by(|a, b| key(a).total_cmp(&key(b)));
    rows
}

/// One line of a comparison between two experiments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Across {
    /// Program name.
    pub program: String,
    /// Stack name.
    pub stack: String,
    /// The compared metric.
    pub metric: Metric,
    /// Median in A.
    pub a_median: f64,
    /// Median in B.
    pub b_median: f64,
    /// Whether these are runs alone, where the table of the experiment has runs at once.
    pub alone: bool,
    /// B/A with a simultaneous interval; `None` with fewer than four good rows on a side.
    pub ratio: Option<Interval>,
}

/// Compares what two experiments have in common: same program, same stack. The rows were not measured together, so a
/// change of the machine between them shows as a difference; the caller notes that. Of what ran in lockstep its runs by
/// themselves are compared.
pub fn across(a: &Experiment, b: &Experiment) -> Vec<Across> {
    let mut lines = Vec::new();
    let mut series = Vec::new();
    for program in &a.programs {
        let (sides_a, sides_b) = (Sides::of(a, &program.name), Sides::of(b, &program.name));
        for in_a in &sides_a.all {
            let Some(in_b) = sides_b.find(in_a.stack) else { continue };
            for metric in [Metric::Cpu, Metric::PeakRss] {
                let (values_a, values_b) = (in_a.values_by_itself(metric), in_b.values_by_itself(metric));
                if values_a.is_empty() || values_b.is_empty() {
                    continue;
                }
                lines.push(Across {
                    program: program.name.clone(),
                    stack: in_a.stack.into(),
                    metric,
                    a_median: median(&values_a),
                    b_median: median(&values_b),
                    alone: metric == Metric::Cpu && (in_a.is_together() || in_b.is_together()),
                    ratio: None,
                });
                series.push((values_a, values_b));
            }
        }
    }
    for (line, ratio) in lines.iter_mut().zip(heaptoll_statistics::unpaired(&series, ALPHA, a.settings.seed))
    {
        line.ratio = ratio;
    }
    lines
}

/// The verdict of one line of [`across`].
pub fn across_verdict(metric: Metric, ratio: Option<Interval>) -> String {
    verdict::across(metric, ratio)
}

#[cfg(test)]
#[path = "compare_tests.rs"]
mod tests;
