//! The stages of an experiment: the result of each decides on the next.

use std::time::Instant;

use heaptoll_experiment::experiment::Experiment;
use heaptoll_experiment::forecast::{FIRST, forecasts};
use heaptoll_experiment::observation::Phase;
use heaptoll_experiment::plan::Cell;
use heaptoll_experiment::runner::{self, Ending, RunContext};
use heaptoll_experiment::slow::leave_slow_apart;
use heaptoll_experiment::store::Store;

use super::progress::Bar;
use super::sight::sentence;
use super::watched::Watched;
use crate::cells;
use crate::context::Context;

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
    let is_warmup = |cell: &Cell| matches!(cell.phase, Phase::Profile | Phase::Warmup);
    let warm: Vec<Cell> = cells::lacking(experiment).into_iter().filter(is_warmup).collect();
    if runner::execute_part(experiment, &warm, store, runs, watched)? == Ending::Interrupted {
        return Ok(Ending::Interrupted);
    }
    if leave_slow_apart(experiment) {
        store.describe(experiment)?;
        watched.bar = Bar::new(&cells::lacking(experiment), experiment, context.messages);
    }
    let all = experiment.settings.repetitions;
    // Warm-ups of stacks that were dropped have no row.
    let timed = cells::lacking(experiment).into_iter().filter(|cell| !is_warmup(cell));
    let (first, rest): (Vec<Cell>, Vec<Cell>) = timed.partition(|cell| {
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
