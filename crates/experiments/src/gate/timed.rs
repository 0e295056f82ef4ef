//! Paired runs of both builds, which go on until each limit on a measured metric is decided or the time is over.
//!
//! The experiment is analysed several times, and each analysis may end it: so each has a level of its own, and those of
//! all together are the family-wise level of one table ([`level`]).

use std::time::Instant;

use heaptoll_experiment::compare::{compare, judge_outputs};
use heaptoll_experiment::comparison::{Metric as Measured, ProgramTable};
use heaptoll_experiment::experiment::Experiment;
use heaptoll_experiment::observation::{Observation, Outcome, Phase};
use heaptoll_experiment::precision::{FIRST_ANALYSIS, MOST};
use heaptoll_experiment::runner::{Ending, RunError};
use heaptoll_experiment::store::Store;
use heaptoll_statistics::{ALPHA, FEWEST_PAIRS, Interval, median, paired};

use super::figures::Outputs;
use super::metric::Metric;
use super::prepare::{BASE, NEW};
use crate::context::Context;
use crate::measurement;

/// Seconds of timed runs that a gate takes where no budget is given: so many times a run, within these bounds.
const RUNS: f64 = 36.0;
const BUDGETS_S: (f64, f64) = (4.0, 60.0);

/// Parts of an analysis's level: of the table of CPU time, elapsed time and memory, and of each of the two metrics that
/// are in no table.
const TABLE: f64 = 0.8;
const ALONE: f64 = 0.1;

/// A measured metric of both builds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair {
    /// Median of the base, in the unit of the metric.
    pub base: f64,
    /// Median of the new build.
    pub new: f64,
    /// New over base.
    pub ratio: Option<Interval>,
}

/// The runs of one program, and their time.
pub struct Timed {
    /// Rows and description.
    pub experiment: Experiment,
    store: Store,
    spent_s: f64,
    budget_s: f64,
    /// Whether the budget is the user's, who gets no more than it.
    is_given: bool,
    analyses: u32,
}

/// The level of the `number`th analysis, from 1: those of any number of analyses add up to no more than [`ALPHA`].
pub fn level(number: u32) -> f64 {
    ALPHA / (f64::from(number) * f64::from(number + 1))
}

/// The budget of a program whose run takes so long, s.
pub fn usual_budget_s(run_s: f64) -> f64 {
    (RUNS * run_s).clamp(BUDGETS_S.0, BUDGETS_S.1)
}

impl Timed {
    /// An experiment that may take so long; `run_s` is the time of a run.
    pub fn new(experiment: Experiment, store: Store, budget_s: Option<f64>, run_s: f64) -> Timed {
        Timed {
            experiment,
            store,
            spent_s: 0.0,
            budget_s: budget_s.unwrap_or_else(|| usual_budget_s(run_s)),
            is_given: budget_s.is_some(),
            analyses: 0,
        }
    }

    /// Seconds of one repetition, so far.
    pub fn each_s(&self) -> f64 {
        self.spent_s / f64::from(self.experiment.settings.repetitions.max(1))
    }

    /// The first repetition, which shows whether outputs are equal. Where each build has a single output and they differ,
    /// a second one shows whether each repeats its own.
    ///
    /// # Errors
    /// See [`RunError`].
    pub fn first(&mut self, context: &Context) -> Result<Ending, RunError> {
        let ended = self.make(1, context)?;
        if ended != Ending::Interrupted && self.outputs() == Outputs::Differ && self.rows(BASE).count() < 2 {
            return self.make(2, context);
        }
        Ok(ended)
    }

    /// Further repetitions, until `decided` has nothing more to wait for or the time is over.
    ///
    /// # Errors
    /// See [`RunError`].
    pub fn rest(
        &mut self,
        context: &Context,
        mut decided: impl FnMut(&Timed) -> bool,
    ) -> Result<Ending, RunError> {
        let mut next = self.first_analysis();
        loop {
            if self.make(next, context)? == Ending::Interrupted {
                return Ok(Ending::Interrupted);
            }
            self.analyses += 1;
            self.experiment.settings.level = Some(TABLE * level(self.analyses));
            if decided(self) {
                break;
            }
            let more = (next + next.div_ceil(2)).min(self.affordable()).min(MOST);
            if more <= next {
                break;
            }
            next = more;
        }
        self.experiment.complete = true;
        self.store.describe(&self.experiment)?;
        Ok(Ending::Complete)
    }

    fn first_analysis(&self) -> u32 {
        let least = if self.is_given { 1 } else { FEWEST_PAIRS as u32 };
        FIRST_ANALYSIS.min(self.affordable()).max(least)
    }

    /// Repetitions in all that the budget allows.
    fn affordable(&self) -> u32 {
        let made = self.experiment.settings.repetitions;
        let left = (self.budget_s - self.spent_s).max(0.0) / self.each_s().max(1e-3);
        made.saturating_add(left as u32)
    }

    fn make(&mut self, repetitions: u32, context: &Context) -> Result<Ending, RunError> {
        let begun = Instant::now();
        self.experiment.settings.repetitions = repetitions;
        self.experiment.complete = false;
        self.store.describe(&self.experiment)?;
        let ended = measurement::measure_lacking(&mut self.experiment, &mut self.store, context, &|_| None).0;
        self.spent_s += begun.elapsed().as_secs_f64();
        ended
    }

    /// The table of the rows so far. Where outputs may differ, rows with other output count as good ones.
    pub fn table(&self, outputs_differ: bool) -> Option<ProgramTable> {
        let mut judged = self.experiment.clone();
        if !outputs_differ {
            judge_outputs(&mut judged);
        }
        compare(&judged).tables.into_iter().next()
    }

    fn rows(&self, stack: &'static str) -> impl Iterator<Item = &Observation> {
        let rows = self.experiment.observations.iter();
        rows.filter(move |row| row.stack == stack && row.phase.is_measured())
    }

    /// Whether both builds wrote the same.
    pub fn outputs(&self) -> Outputs {
        let digests = |stack| {
            let good = self.rows(stack).filter(|row| row.outcome == Outcome::Ok);
            let mut found: Vec<&str> = good.map(|row| row.output_digest.as_str()).collect();
            found.sort_unstable();
            found.dedup();
            found
        };
        match (digests(BASE).as_slice(), digests(NEW).as_slice()) {
            ([], _) | (_, []) => Outputs::Unknown,
            ([one], [other]) if one == other => Outputs::Equal,
            ([_], _) => Outputs::Differ,
            _ => Outputs::Vary,
        }
    }

    /// How often, and how, runs of a build failed: failed runs, all runs, the first failure.
    pub fn failures(&self, stack: &'static str) -> Option<(usize, usize, &Outcome)> {
        let bad =
            || self.rows(stack).filter(|row| !row.outcome.is_ok() && row.outcome != Outcome::Interrupted);
        let first = bad().next()?;
        Some((bad().count(), self.rows(stack).count(), &first.outcome))
    }

    /// A measured metric. CPU time, elapsed time and memory are those of `table`; the others have intervals of their own.
    pub fn pair(&self, metric: Metric, table: &ProgramTable) -> Option<Pair> {
        let (measured, unit) = match metric {
            Metric::Cpu => (Measured::Cpu, 1.0),
            Metric::Wall => (Measured::Wall, 1.0),
            Metric::Resident => (Measured::PeakRss, 1024.0),
            Metric::Faults => return self.pair_of_rows(Phase::Alone, |row| row.minor_faults as f64),
            Metric::Startup => return self.pair_of_rows(Phase::Startup, Observation::cpu_s),
            _ => return None,
        };
        let figure = |stack: &str| table.rows.iter().find(|row| row.stack == stack)?.figures.get(&measured);
        let (base, new) = (figure(BASE)?, figure(NEW)?);
        Some(Pair { base: unit * base.median, new: unit * new.median, ratio: new.ratio })
    }

    /// A figure of rows of one phase; of timed ones where none ran alone.
    fn pair_of_rows(&self, phase: Phase, figure: fn(&Observation) -> f64) -> Option<Pair> {
        let has_any = self.experiment.observations.iter().any(|row| row.phase == phase);
        let phase = if has_any || phase == Phase::Startup { phase } else { Phase::Timed };
        let of = |stack: &str, repetition: u32| {
            let mut rows = self.experiment.observations.iter();
            let row =
                rows.find(|row| row.phase == phase && row.stack == stack && row.repetition == repetition)?;
            row.outcome.is_ok().then(|| figure(row))
        };
        let all = 0..self.experiment.settings.repetitions;
        let both: Vec<(f64, f64)> = all.filter_map(|at| Some((of(BASE, at)?, of(NEW, at)?))).collect();
        if both.is_empty() {
            return None;
        }
        let logs = both.iter().map(|(base, new)| (*base > 0.0 && *new > 0.0).then(|| (new / base).ln()));
        let alpha = ALONE / TABLE * self.experiment.alpha();
        let ratio = paired(&[logs.collect()], alpha, self.experiment.settings.seed)[0];
        let (base, new): (Vec<f64>, Vec<f64>) = both.into_iter().unzip();
        Some(Pair { base: median(&base), new: median(&new), ratio })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_of_all_analyses_together_are_that_of_one_table() {
        let sum: f64 = (1..1000).map(level).sum();
        assert!(sum < ALPHA && sum > 0.99 * ALPHA, "{sum}");
        assert_eq!(level(1), ALPHA / 2.0);
    }

    #[test]
    fn a_long_program_gets_a_minute_and_a_short_one_some_seconds() {
        assert_eq!([0.01, 0.5, 1.0, 100.0].map(usual_budget_s), [4.0, 18.0, 36.0, 60.0]);
    }
}
