//! A lower bound of what memory management costs a program (Cai, Blackburn, Bond and Maas 2022).
//!
//! What a program would cost without any memory management cannot be measured. But of each run some of its cost can be
//! *attributed*: the pauses of a collector, the instructions in malloc and free. What is left, the *distilled* cost, is
//! still more than the program alone needs, for no attribution is complete. So is the smallest distilled cost that
//! was seen under any manager; and every manager's total over it is a lower bound of that manager's overhead.
//!
//! Totals are those of the tables: start-up is taken out of them where it is there. The baseline is chosen by the
//! geometric mean over repetitions, and each bound is a mean of ratios taken within repetitions, as all ratios are.

use crate::comparison::{Attributed, BoundRow, Bounds, LowerBounds, Metric, OverallBound, ProgramBounds};
use crate::experiment::Experiment;
use crate::means::{LogRatios, Mean, means};
use crate::observation::{Observation, Phase};
use crate::side::{Side, Sides};
use heaptoll_statistics::{FEWEST_PAIRS, median};

/// The costs that are bounded.
pub const COSTS: [Metric; 2] = [Metric::Wall, Metric::Cpu];

/// One invocation's cost, in the metric's unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// All of it, above 0.
    pub total: f64,
    /// The part that is known to be memory management's.
    pub attributed: f64,
}

impl Cost {
    /// What is left; `None` when that is nothing, for then more was attributed than there was.
    fn distilled(self) -> Option<f64> {
        let left = self.total - self.attributed;
        (left > 0.0).then_some(left)
    }
}

/// Which series has the smallest distilled cost: the geometric mean over its repetitions, of those with enough of them.
pub fn baseline(costs: &[Vec<Option<Cost>>]) -> Option<usize> {
    let distilled = |series: &Vec<Option<Cost>>| -> Vec<f64> {
        series.iter().flatten().filter_map(|cost| cost.distilled()).map(f64::ln).collect()
    };
    let logs: Vec<Vec<f64>> = costs.iter().map(distilled).collect();
    let enough = logs.iter().map(Vec::len).max().unwrap_or(0).clamp(1, FEWEST_PAIRS);
    let mean = |logs: &[f64]| logs.iter().sum::<f64>() / logs.len() as f64;
    let candidates = logs.iter().enumerate().filter(|(_, logs)| logs.len() >= enough);
    candidates.min_by(|(_, a), (_, b)| mean(a).total_cmp(&mean(b))).map(|(at, _)| at)
}

/// Logarithms of totals over the distilled cost of series `baseline`, within repetitions.
pub fn log_bounds(costs: &[Vec<Option<Cost>>], baseline: usize) -> Vec<Vec<Option<f64>>> {
    let base: Vec<Option<f64>> = costs[baseline].iter().map(|cost| cost.and_then(Cost::distilled)).collect();
    let over = |(cost, base): (&Option<Cost>, &Option<f64>)| Some(((*cost)?.total / (*base)?).ln());
    costs.iter().map(|series| series.iter().zip(&base).map(over).collect()).collect()
}

/// The bounds of every program of an experiment whose outputs have been judged.
pub fn lower_bounds(experiment: &Experiment, repetitions: u32) -> LowerBounds {
    let each: Vec<Computed> = experiment
        .programs
        .iter()
        .filter_map(|program| Computed::of(experiment, &program.name, repetitions))
        .collect();
    gather(experiment, each, repetitions)
}

/// The bounds of an experiment, whose rows need not be there, from those of its programs.
pub(crate) fn gather(experiment: &Experiment, each: Vec<Computed>, repetitions: u32) -> LowerBounds {
    let overall = if each.len() < 2 { Vec::new() } else { overall(experiment, &each, repetitions) };
    LowerBounds { programs: each.into_iter().map(|computed| computed.bounds).collect(), overall }
}

/// The row that shows how much of a cost was memory management's. A collector's own CPU time holds in lockstep, too;
/// its pauses and its memory are those of a run by itself.
fn row_of<'a>(side: &Side<'a>, metric: Metric, repetition: u32) -> Option<&'a Observation> {
    let timed = side.row_in(&side.timed, repetition);
    timed
        .filter(|row| metric == Metric::Cpu && row.collector_cpu_ns.is_some())
        .or_else(|| side.row_in(side.by_itself(), repetition))
}

/// The bounds of a program, and the log ratios that they come from, by cost.
pub(crate) struct Computed {
    bounds: ProgramBounds,
    logs: LogRatios,
}

impl Computed {
    pub(crate) fn of(experiment: &Experiment, program: &str, repetitions: u32) -> Option<Computed> {
        let sides = Sides::of(experiment, program);
        let measured: Vec<&Side> = sides.all.iter().filter(|side| !side.timed.is_empty()).collect();
        let attributors: Vec<Attributor> =
            measured.iter().map(|side| Attributor::of(experiment, program, side.stack)).collect();
        let costs = COSTS.map(|metric| -> Vec<Vec<Option<Cost>>> {
            let each = measured.iter().zip(&attributors);
            each.map(|(side, attributor)| {
                (0..repetitions)
                    .map(|repetition| {
                        let total = side.value_in(metric, repetition)?;
                        let attributed =
                            attributor.attributed(metric, total, row_of(side, metric, repetition)?);
                        Some(Cost { total, attributed })
                    })
                    .collect()
            })
            .collect()
        });
        let chosen = [0, 1].map(|cost| baseline(&costs[cost]));
        let logs = [0, 1].map(|cost| match chosen[cost] {
            Some(baseline) => log_bounds(&costs[cost], baseline),
            None => measured.iter().map(|_| Vec::new()).collect(),
        });
        // One family: every stack and cost, but a baseline of which nothing was attributed, which is 1 by definition.
        let family: Vec<Vec<Option<f64>>> = logs
            .iter()
            .flatten()
            .map(
                |series| {
                    if series.iter().flatten().all(|log| *log == 0.0) { Vec::new() } else { series.clone() }
                },
            )
            .collect();
        let intervals = experiment.paired(&family);
        let mut bounds = [0, 1].map(|cost| -> Option<Bounds> {
            let baseline = chosen[cost]?;
            let middle = |at: usize, figure: fn(Cost) -> Option<f64>| -> f64 {
                median(&costs[cost][at].iter().flatten().filter_map(|one| figure(*one)).collect::<Vec<_>>())
            };
            let row = |(at, side): (usize, &&Side)| BoundRow {
                stack: side.stack.into(),
                total_s: middle(at, |cost| Some(cost.total)),
                attributed_s: middle(at, |cost| Some(cost.attributed)),
                attributed: attributors[at].kinds(COSTS[cost]),
                bound: intervals.get(cost * measured.len() + at).copied().flatten(),
            };
            let mut rows: Vec<BoundRow> = measured.iter().enumerate().map(row).collect();
            let key = |row: &BoundRow| row.bound.map_or(0.0, |bound| bound.ratio);
            rows.sort_by(|a, b| key(a).total_cmp(&key(b)));
            Some(Bounds {
                baseline: measured[baseline].stack.into(),
                baseline_s: middle(baseline, Cost::distilled),
                rows,
            })
        });
        let (wall, cpu) = (bounds[0].take(), bounds[1].take());
        if wall.is_none() && cpu.is_none() {
            return None;
        }
        let notes = notes(&attributors);
        let [of_wall, of_cpu] = logs;
        let of_both = of_wall.into_iter().zip(of_cpu).map(|(wall, cpu)| [wall, cpu]);
        let named = measured.iter().map(|side| side.stack.to_owned()).zip(of_both).collect();
        Some(Computed { bounds: ProgramBounds { program: program.into(), wall, cpu, notes }, logs: named })
    }
}

/// How cost is attributed under one stack on one program.
struct Attributor {
    stack: String,
    /// Of the instructions outside of collections, the share in malloc and free; from a traced run.
    share: Option<f64>,
    /// Collections, reported by the stack itself.
    reports_collections: bool,
    /// Whether their processor time is reported, too.
    reports_cpu: bool,
    /// It serves: what happened before the load cannot be separated.
    server: bool,
}

impl Attributor {
    fn of(experiment: &Experiment, program: &str, stack: &str) -> Attributor {
        let rows = || experiment.rows(program, stack).filter(|row| row.outcome.is_ok());
        let timed = || rows().filter(|row| row.phase == Phase::Timed);
        let collected = |row: &&Observation| {
            row.collections.is_some_and(|collections| collections.count > 0 && collections.pause_total_ns > 0)
        };
        let server = experiment.program(program).is_some_and(|info| info.serve.is_some());
        let reports_collections = !server && timed().any(|row| collected(&row));
        let mut exact = rows().filter(|row| row.phase == Phase::Traced).filter_map(|row| row.exact.as_ref());
        let share = exact.rfind(|exact| exact.whole && !server).and_then(|exact| {
            let count = exact.instructions;
            // Collections that the stack reports itself are taken out by the clock, others with malloc and free.
            let (part, rest) = match reports_collections {
                true => (count.allocator, count.program),
                false => (count.allocator + count.collector, count.program),
            };
            (part + rest > 0).then(|| part as f64 / (part + rest) as f64)
        });
        Attributor {
            stack: stack.into(),
            share,
            reports_collections,
            reports_cpu: reports_collections
                && timed().filter(collected).all(|row| row.collector_cpu_ns.is_some()),
            server,
        }
    }

    fn kinds(&self, metric: Metric) -> Attributed {
        Attributed {
            collections: if metric == Metric::Cpu { self.reports_cpu } else { self.reports_collections },
            malloc_and_free: self.share.is_some()
                && (metric != Metric::Cpu || self.reports_collections == self.reports_cpu),
        }
    }

    /// The part of an invocation's total that is known to be memory management's.
    fn attributed(&self, metric: Metric, total: f64, row: &Observation) -> f64 {
        let kinds = self.kinds(metric);
        let collections = match (kinds.collections, metric) {
            (false, _) => 0.0,
            (true, Metric::Cpu) => row.collector_cpu_ns.unwrap_or(0) as f64 / 1e9,
            // Pauses of several processes may overlap, so their sum may exceed the elapsed time; the process that was
            // paused longest was paused for at least the mean.
            (true, _) => row.collections.map_or(0.0, |collections| {
                collections.pause_total_ns as f64 / 1e9 / f64::from(collections.processes.max(1))
            }),
        };
        let mutator = (total - collections).max(0.0);
        collections + if kinds.malloc_and_free { mutator * self.share.unwrap_or(0.0) } else { 0.0 }
    }
}

/// What is missing from the attribution, so that the bound is lower than it could be.
fn notes(attributors: &[Attributor]) -> Vec<String> {
    let mut notes = Vec::new();
    let mut add_note = |which: fn(&Attributor) -> bool, text: &str| {
        let names: Vec<&str> =
            attributors.iter().filter(|one| which(one)).map(|one| one.stack.as_str()).collect();
        match names.len() {
            0 => {}
            all if all == attributors.len() && all > 1 => notes.push(format!("every manager: {text}")),
            _ => notes.push(format!("{}: {text}", names.join(", "))),
        }
    };
    if attributors.iter().any(|one| one.server) {
        add_note(
            |one| one.server,
            "nothing is subtracted for a server: its pauses under load cannot be separated from earlier ones",
        );
        return notes;
    }
    add_note(
        |one| one.share.is_none() && !one.reports_collections,
        "nothing is subtracted, so the bounds are low: there are no exact counts of malloc and free \
         (`heaptoll report DB --instructions DB` adds them)",
    );
    add_note(
        |one| one.reports_collections && !one.reports_cpu,
        "nothing is subtracted for collections: their pauses are known, but not their CPU time",
    );
    notes
}

/// Geometric means over the programs on which a stack has enough bounds, with intervals over repetitions.
fn overall(experiment: &Experiment, each: &[Computed], repetitions: u32) -> Vec<OverallBound> {
    let logs: Vec<&LogRatios> = each.iter().map(|computed| &computed.logs).collect();
    let row = |Mean { stack, programs, ratios: [wall, cpu] }| OverallBound {
        stack: stack.to_owned(),
        programs,
        wall,
        cpu,
    };
    let mut rows: Vec<OverallBound> =
        means(experiment, &logs, repetitions, |_| true).into_iter().map(row).collect();
    rows.retain(|row| row.wall.is_some() || row.cpu.is_some());
    let key = |row: &OverallBound| row.wall.or(row.cpu).map_or(f64::INFINITY, |interval| interval.ratio);
    rows.sort_by(|a, b| key(a).total_cmp(&key(b)));
    rows
}

#[cfg(test)]
#[path = "lower_bound_tests.rs"]
mod tests;
