//! The good rows of one stack on one program, and what a metric of them is once start-up is taken out.
//!
//! Start-up is subtracted within the repetition: the run's CPU less that of the start-up run of the same repetition. A
//! median over all repetitions would be one estimated constant a stack, whose error shifts all its ratios alike and
//! stands in no standard error: equal managers would then be claimed to differ in up to a fifth of tables of short
//! runs.

use std::collections::{BTreeMap, BTreeSet};

use crate::comparison::Metric;
use crate::experiment::Experiment;
use crate::observation::{Observation, Phase};
use heaptoll_statistics::median;

/// Whether start-up is taken out of a program's figures; the same for all its stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Startup {
    /// Each run less the start-up run of its repetition.
    Apart,
    /// No start-up runs were made (servers are counted from ready instead).
    NotMade,
    /// They were made and did not work under some stack; figures include start-up.
    Failed,
    /// Some run took no longer than its start-up; figures include start-up.
    Everything,
}

/// Rows of one stack by repetition.
pub type Rows<'a> = BTreeMap<u32, &'a Observation>;

/// Good rows of one stack on one program, by repetition.
pub struct Side<'a> {
    /// Stack name.
    pub stack: &'a str,
    /// Good timed rows: in lockstep where the stack ran so, else by themselves.
    pub timed: Rows<'a>,
    /// Good rows of runs alone in addition to a lockstep; empty where there is none.
    alone: Rows<'a>,
    /// Whether the timed rows ran in lockstep with others.
    together: bool,
    starts: Rows<'a>,
    apart: bool,
    /// Stacks of one block ran at once.
    block: u32,
    /// Repetitions of a round, in each of which the baseline ran, and every other stack in one.
    turns: u32,
}

/// One program's sides, in the order of its stacks.
pub struct Sides<'a> {
    /// One a stack.
    pub all: Vec<Side<'a>>,
    /// How start-up was treated.
    pub startup: Startup,
}

fn good<'a>(experiment: &'a Experiment, program: &str, stack: &str, phase: Phase) -> Rows<'a> {
    let good = experiment.rows(program, stack).filter(|row| row.phase == phase && row.outcome.is_ok());
    good.map(|row| (row.repetition, row)).collect()
}

impl<'a> Sides<'a> {
    /// Gathers a program's rows and decides whether start-up can be taken out.
    pub fn of(experiment: &'a Experiment, program: &str) -> Sides<'a> {
        let mut all: Vec<Side> = experiment
            .stacks_of(program)
            .map(|stack| Side {
                stack: &stack.name,
                timed: good(
                    experiment,
                    program,
                    &stack.name,
                    match stack.apart {
                        Some(_) if experiment.is_in_lockstep(program) => Phase::Alone,
                        _ => Phase::Timed,
                    },
                ),
                alone: good(experiment, program, &stack.name, Phase::Alone),
                together: experiment.runs_in_lockstep(stack),
                starts: good(experiment, program, &stack.name, Phase::Startup),
                apart: false,
                block: stack.block,
                turns: experiment.turns(program),
            })
            .collect();
        let made =
            experiment.observations.iter().any(|row| row.program == program && row.phase == Phase::Startup);
        let measured = || all.iter().filter(|side| !side.timed.is_empty());
        let startup = if !made {
            Startup::NotMade
        } else if measured().any(|side| side.starts.is_empty()) {
            Startup::Failed
        } else if measured().any(Side::is_all_startup) {
            Startup::Everything
        } else {
            Startup::Apart
        };
        for side in &mut all {
            side.apart = startup == Startup::Apart;
        }
        Sides { all, startup }
    }

    /// Has these stacks judged by their runs alone.
    pub fn leave_lockstep(&mut self, stacks: &[String]) {
        for side in self.all.iter_mut().filter(|side| stacks.iter().any(|stack| stack == side.stack)) {
            side.together = false;
        }
    }

    /// The side of a stack.
    pub fn find(&self, stack: &str) -> Option<&Side<'a>> {
        self.all.iter().find(|side| side.stack == stack)
    }
}

impl<'a> Side<'a> {
    /// Good rows of runs by themselves, on all processors: what holds for memory, pauses and elapsed times.
    pub fn by_itself(&self) -> &Rows<'a> {
        if self.alone.is_empty() { &self.timed } else { &self.alone }
    }

    /// Whether its CPU time is that of runs in lockstep with others, which have runs by themselves as well.
    pub fn is_together(&self) -> bool {
        self.together && !self.alone.is_empty()
    }

    /// Whether it ran in lockstep with `base`.
    pub fn runs_in_lockstep_with(&self, base: &Side) -> bool {
        self.is_together() && base.is_together() && self.block == base.block
    }

    /// CPU seconds of the runs alone of a round: one, and of a baseline with which others take
    /// turns as many as these.
    pub fn cpu_alone_in(&self, round: u32) -> Vec<f64> {
        self.repetitions_of(round).filter_map(|r| self.value_of(Metric::Cpu, r, false)).collect()
    }

    /// Minor page faults of its runs at once and alone; `None` where either is missing.
    pub fn faults_both_ways(&self) -> Option<(Vec<f64>, Vec<f64>)> {
        let faults = |rows: &Rows| rows.values().map(|row| row.minor_faults as f64).collect::<Vec<_>>();
        let (together, alone) = (faults(&self.timed), faults(&self.alone));
        (!together.is_empty() && !alone.is_empty()).then_some((together, alone))
    }

    /// The metric of its runs by themselves, where there are such: what may be compared with another experiment's, in
    /// which it had other company or none.
    pub fn values_by_itself(&self, metric: Metric) -> Vec<f64> {
        self.by_itself().keys().filter_map(|repetition| self.value_of(metric, *repetition, false)).collect()
    }

    /// Log ratios of CPU time to `base` by round, of runs by themselves.
    pub fn log_ratios_by_itself(&self, base: &Side, rounds: u32) -> Vec<Option<f64>> {
        (0..rounds).map(|round| self.log_ratio(base, Metric::Cpu, round, false)).collect()
    }

    /// The repetitions of a round.
    pub fn repetitions_of(&self, round: u32) -> std::ops::Range<u32> {
        round * self.turns..(round + 1) * self.turns
    }

    /// The metric of one round: of the first of its repetitions that has it.
    pub fn value_in(&self, metric: Metric, round: u32) -> Option<f64> {
        self.repetitions_of(round).find_map(|repetition| self.value(metric, repetition))
    }

    /// The row of a round among these rows of this side.
    pub fn row_in(&self, rows: &Rows<'a>, round: u32) -> Option<&'a Observation> {
        self.repetitions_of(round).find_map(|repetition| rows.get(&repetition).copied())
    }

    /// The log ratio to `base` of one round, of two runs of one repetition.
    fn log_ratio(&self, base: &Side, metric: Metric, round: u32, together: bool) -> Option<f64> {
        let value = |side: &Side, repetition| side.value_of(metric, repetition, together);
        self.repetitions_of(round).find_map(|r| Some((value(self, r)? / value(base, r)?).ln()))
    }

    /// Names of the figures that a load or the program itself reported.
    pub fn own_names(&self) -> BTreeSet<&'a str> {
        self.by_itself().values().flat_map(|row| row.own_figures()).map(|(name, _)| name).collect()
    }

    /// Such a figure of one round.
    pub fn own_in(&self, name: &str, round: u32) -> Option<f64> {
        self.row_in(self.by_itself(), round)?.own_figure(name)
    }

    /// Log ratios of such a figure to `base` by round.
    pub fn own_log_ratios(&self, base: &Side, name: &str, rounds: u32) -> Vec<Option<f64>> {
        let own = |side: &Side, repetition| side.by_itself().get(&repetition)?.own_figure(name);
        let ratio = |repetition| Some(own(self, repetition)? / own(base, repetition)?);
        let usable = |ratio: &f64| ratio.is_finite() && *ratio > 0.0;
        let of = |round| self.repetitions_of(round).find_map(|at| ratio(at).filter(usable)).map(f64::ln);
        (0..rounds).map(of).collect()
    }

    fn is_all_startup(&self) -> bool {
        self.timed.iter().any(|(repetition, row)| {
            self.starts.get(repetition).is_some_and(|start| {
                row.cpu_s() <= start.cpu_s() || self.walls() && row.wall_s <= start.wall_s
            })
        })
    }

    /// Whether start-up runs have elapsed times that mean something: not those that shared a processor.
    fn walls(&self) -> bool {
        self.alone.is_empty() && !self.together
    }

    /// Median CPU seconds of the start-up runs; `None` where there is none.
    pub fn startup_cpu_s(&self) -> Option<f64> {
        let values: Vec<f64> = self.starts.values().map(|row| row.cpu_s()).collect();
        (!values.is_empty()).then(|| median(&values))
    }

    /// The metric of one repetition; `None` where a row is missing, the machine does not give it, or it is zero.
    pub fn value(&self, metric: Metric, repetition: u32) -> Option<f64> {
        self.value_of(metric, repetition, self.together)
    }

    /// The same of the run in lockstep, or of the run alone. Memory and elapsed time are always those of runs alone, where
    /// there are such.
    fn value_of(&self, metric: Metric, repetition: u32, together: bool) -> Option<f64> {
        let needs_alone = matches!(metric, Metric::PeakRss | Metric::Wall) || !together;
        let rows = if needs_alone && !self.alone.is_empty() { &self.alone } else { &self.timed };
        let row = rows.get(&repetition)?;
        let raw = |row: &Observation| match metric {
            Metric::Cpu => Some(row.cpu_s()),
            Metric::Wall => Some(row.wall_s),
            Metric::PeakRss => Some(row.peak_rss_kib as f64),
            Metric::Instructions => row.counters.instructions.map(|count| count as f64),
        };
        let value = match (metric, &row.serve) {
            (Metric::Cpu, Some(serve)) => serve.loaded_cpu_s,
            (Metric::Wall, Some(serve)) => serve.load_s,
            (Metric::Cpu | Metric::Instructions, None) if self.apart => {
                raw(row)? - raw(self.starts.get(&repetition)?)?
            }
            (Metric::Wall, None) if self.apart && self.walls() => {
                raw(row)? - raw(self.starts.get(&repetition)?)?
            }
            _ => raw(row)?,
        };
        (value > 0.0).then_some(value)
    }

    /// The metric over all repetitions that have it.
    pub fn values(&self, metric: Metric) -> Vec<f64> {
        self.timed.keys().filter_map(|repetition| self.value(metric, *repetition)).collect()
    }

    /// Log ratios to `base` by round, which is a repetition where no turns are taken; `None` where either lacks it.
    pub fn log_ratios(&self, base: &Side, metric: Metric, rounds: u32) -> Vec<Option<f64>> {
        // Where one of the two ran apart, the other's runs alone are compared with it.
        let together = self.together && base.together && self.block == base.block;
        (0..rounds).map(|round| self.log_ratio(base, metric, round, together)).collect()
    }
}
