//! The stages of an experiment: the result of each decides on the next.

use std::time::Instant;

use heaptoll_experiment::experiment::{Experiment, StackInfo};
use heaptoll_experiment::forecast::{FIRST, forecasts};
use heaptoll_experiment::observation::Phase;
use heaptoll_experiment::plan::{Cell, is_at_once};
use heaptoll_experiment::runner::{self, Ending, RunContext};
use heaptoll_experiment::slow::leave_slow_apart;
use heaptoll_experiment::store::Store;

use super::progress::Bar;
use super::sight::sentence;
use super::watched::Watched;
use crate::cells;
use heaptoll_command::context::Context;

/// Makes what is lacking: warm-ups, which show what is too slow to run with the others; the first repetitions, which
/// show what the rest will; the rest.
///
/// # Errors
/// See [`runner::RunError`].
pub fn execute(
    experiment: &mut Experiment,
    store: &mut Store,
    runs: &RunContext,
    context: &Context,
    watched: &mut Watched,
) -> Result<Ending, runner::RunError> {
    if warm_up(experiment, |_| true, store, runs, context, watched)? == Ending::Interrupted {
        return Ok(Ending::Interrupted);
    }
    let all = experiment.settings.repetitions;
    let timed = timed(experiment, |_| true);
    let (first, rest): (Vec<Cell>, Vec<Cell>) = timed.into_iter().partition(|cell| {
        let program = &experiment.stacks[cell.stack].program;
        cell.repetition / experiment.turns(program) < FIRST
    });
    // Rows from before a resume, on the machine as it was then, do not show how it is now.
    let begun = experiment.observations.iter().any(|row| row.phase == Phase::Timed);
    if begun || rest.is_empty() {
        return runner::execute(experiment, &[first, rest].concat(), store, runs, watched);
    }
    let since = Instant::now();
    if runner::execute_part(experiment, &first, store, runs, watched)? == Ending::Interrupted {
        return Ok(Ending::Interrupted);
    }
    let spent_s = since.elapsed().as_secs_f64();
    let text = sentence(&forecasts(experiment, all), all, spent_s, experiment.settings.precision);
    if let Some(text) = text {
        context.messages.note(&text);
    }
    runner::execute(experiment, &rest, store, runs, watched)
}

/// The same program by program. The figures of each are shown when it has all its runs.
///
/// # Errors
/// See [`runner::RunError`].
pub fn execute_by_program(
    experiment: &mut Experiment,
    store: &mut Store,
    runs: &RunContext,
    context: &Context,
    watched: &mut Watched,
) -> Result<Ending, runner::RunError> {
    let programs: Vec<String> = experiment.programs.iter().map(|program| program.name.clone()).collect();
    for program in programs {
        let is_its = |stack: &StackInfo| stack.program == program;
        if warm_up(experiment, is_its, store, runs, context, watched)? == Ending::Interrupted {
            return Ok(Ending::Interrupted);
        }
        let timed = timed(experiment, is_its);
        if runner::execute_part(experiment, &timed, store, runs, watched)? == Ending::Interrupted {
            return Ok(Ending::Interrupted);
        }
        context.messages.figures(experiment, &program, false);
    }
    runner::execute(experiment, &[], store, runs, watched)
}

/// Makes the warm-ups of these stacks: one by one, which shows what is slow and runs apart then; and at once.
fn warm_up(
    experiment: &mut Experiment,
    is_meant: impl Fn(&StackInfo) -> bool,
    store: &mut Store,
    runs: &RunContext,
    context: &Context,
    watched: &mut Watched,
) -> Result<Ending, runner::RunError> {
    for at_once in [false, true] {
        let mut warm = cells::lacking(experiment);
        warm.retain(|cell| {
            cell.phase.is_warm_up()
                && is_at_once(experiment, cell) == at_once
                && is_meant(&experiment.stacks[cell.stack])
        });
        if runner::execute_part(experiment, &warm, store, runs, watched)? == Ending::Interrupted {
            return Ok(Ending::Interrupted);
        }
        if !at_once && leave_slow_apart(experiment) {
            store.describe(experiment)?;
            watched.bar = Bar::new(&cells::lacking(experiment), experiment, context.messages);
        }
    }
    Ok(Ending::Complete)
}

/// What these stacks lack but warm-ups: those of stacks that were dropped have no row.
fn timed(experiment: &Experiment, is_meant: impl Fn(&StackInfo) -> bool) -> Vec<Cell> {
    let mut timed = cells::lacking(experiment);
    timed.retain(|cell| !cell.phase.is_warm_up() && is_meant(&experiment.stacks[cell.stack]));
    timed
}
