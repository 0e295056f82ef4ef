//! Paired runs of both builds, which go on until each limit on a measured metric is decided or the time is over.
//!
//! The experiment is analysed several times, and each analysis may end it: so each has a level of its own, and those of
//! all together are the family-wise level of one table ([`level`]).

use std::time::Instant;

use heaptoll_experiment::experiment::Experiment;
use heaptoll_experiment::precision::{FIRST_ANALYSIS, MOST};
use heaptoll_experiment::runner::{Ending, RunError};
use heaptoll_experiment::store::Store;
use heaptoll_statistics::{ALPHA, FEWEST_PAIRS};

use super::figures::Outputs;
use super::measured::{Measured, TABLE};
use super::prepare::BASE;
use heaptoll_command::context::Context;
use heaptoll_runs::measurement;

/// Seconds of timed runs that a gate takes where no budget is given: this multiple of a run, within these bounds.
const RUNS: f64 = 36.0;
const BUDGETS_S: (f64, f64) = (4.0, 60.0);

/// The runs of one program, and their time.
pub struct Timed {
    /// What was made of them.
    pub measured: Measured,
    store: Store,
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
            measured: Measured { experiment, spent_s: 0.0 },
            store,
            budget_s: budget_s.unwrap_or_else(|| usual_budget_s(run_s)),
            is_given: budget_s.is_some(),
            analyses: 0,
        }
    }

    /// The first repetition, which shows whether outputs are equal. Where each build has a single output and they differ,
    /// a second one shows whether each repeats its own.
    ///
    /// # Errors
    /// See [`RunError`].
    pub fn first(&mut self, context: &Context) -> Result<Ending, RunError> {
        let ended = self.make(1, context)?;
        if ended != Ending::Interrupted
            && self.measured.outputs() == Outputs::Differ
            && self.measured.rows(BASE).count() < 2
        {
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
        mut decided: impl FnMut(&Measured) -> bool,
    ) -> Result<Ending, RunError> {
        let mut next = self.first_analysis();
        loop {
            if self.make(next, context)? == Ending::Interrupted {
                return Ok(Ending::Interrupted);
            }
            self.analyses += 1;
            self.measured.experiment.settings.level = Some(TABLE * level(self.analyses));
            if decided(&self.measured) {
                break;
            }
            let more = (next + next.div_ceil(2)).min(self.affordable()).min(MOST);
            if more <= next {
                break;
            }
            next = more;
        }
        self.measured.experiment.complete = true;
        self.store.describe(&self.measured.experiment)?;
        Ok(Ending::Complete)
    }

    fn first_analysis(&self) -> u32 {
        let least = if self.is_given { 1 } else { FEWEST_PAIRS as u32 };
        FIRST_ANALYSIS.min(self.affordable()).max(least)
    }

    /// Repetitions in all that the budget allows.
    fn affordable(&self) -> u32 {
        let made = self.measured.experiment.settings.repetitions;
        let left = (self.budget_s - self.measured.spent_s).max(0.0) / self.measured.each_s().max(1e-3);
        made.saturating_add(left as u32)
    }

    fn make(&mut self, repetitions: u32, context: &Context) -> Result<Ending, RunError> {
        let begun = Instant::now();
        self.measured.experiment.settings.repetitions = repetitions;
        self.measured.experiment.complete = false;
        self.store.describe(&self.measured.experiment)?;
        let ended =
            measurement::measure_lacking(&mut self.measured.experiment, &mut self.store, context, &|_| None)
                .0;
        self.measured.spent_s += begun.elapsed().as_secs_f64();
        ended
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
