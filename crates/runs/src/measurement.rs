//! The invocations that an experiment lacks, made under a progress bar and stored one by one.

use heaptoll_experiment::disturbance::Since;
use heaptoll_experiment::experiment::Experiment;
use heaptoll_experiment::machine;
use heaptoll_experiment::plan::Cell;
use heaptoll_experiment::runner::{self, Ending, RunContext};
use heaptoll_experiment::store::Store;

use crate::cells;
use crate::preparation::pairing;
use heaptoll_command::context::{Context, Messages};

mod load;
mod progress;
mod sight;
mod stages;
mod watched;

pub use watched::StopReason;

use progress::Bar;
use watched::Watched;

/// Makes the invocations that an experiment still lacks, under a progress bar, and stores each row.
///
/// # Errors
/// See [`runner::RunError`].
pub fn measure(
    experiment: &mut Experiment,
    store: &mut Store,
    context: &Context,
) -> Result<Ending, runner::RunError> {
    measure_unless(experiment, store, context, &|_| None).0
}

/// [`measure`], which ends early when a row of the only program shows that all others would be useless. The second part
/// is then the reason.
pub fn measure_unless(
    experiment: &mut Experiment,
    store: &mut Store,
    context: &Context,
    stop_reason: StopReason,
) -> (Result<Ending, runner::RunError>, Option<String>) {
    warned_of_load(context.messages, || measure_lacking(experiment, store, context, stop_reason))
}

/// Measures, and warns of other work on the machine before and meanwhile.
pub fn warned_of_load<T>(messages: &dyn Messages, measure: impl FnOnce() -> T) -> T {
    if let Some(text) = load::at_the_beginning(&machine::read()) {
        messages.warning(&text);
    }
    let since = Since::now();
    let measured = measure();
    let found = since.and_then(|since| since.disturbance(None));
    // Not the cores of the machine's description, of which a limit of CPU time takes some off.
    let processors = pairing::Machine::now().processors;
    for text in found.map_or(vec![], |found| load::meanwhile(&found, processors)) {
        messages.warning(&text);
    }
    measured
}

/// [`measure`], program by program: each has all its runs, and shows its figures, before the next begins.
///
/// # Errors
/// See [`runner::RunError`].
pub fn measure_by_program(
    experiment: &mut Experiment,
    store: &mut Store,
    context: &Context,
) -> Result<Ending, runner::RunError> {
    let (bar, runs) = (Bar::new(&cells::lacking(experiment), experiment, context.messages), runs(context));
    let mut watched = Watched {
        bar,
        stop_reason: None,
        interrupt: context.interrupt,
        why: None,
        figures: Some(context.messages),
    };
    warned_of_load(context.messages, || {
        stages::execute_by_program(experiment, store, &runs, context, &mut watched)
    })
}

/// Makes these invocations, under a progress bar, and stores each row. What else there is to make is not decided here:
/// the experiment is not complete then.
///
/// # Errors
/// See [`runner::RunError`].
pub fn measure_cells(
    experiment: &mut Experiment,
    store: &mut Store,
    cells: &[Cell],
    context: &Context,
) -> Result<Ending, runner::RunError> {
    let mut bar = Bar::new(cells, experiment, context.messages);
    let runs = runs(context);
    warned_of_load(context.messages, || runner::execute_part(experiment, cells, store, &runs, &mut bar))
}

/// What the runner needs of these surroundings.
pub(crate) fn runs(context: &Context) -> RunContext {
    RunContext {
        launcher: context.places.launcher(),
        start_layer: context.places.start_layer(),
        interrupt: context.interrupt.clone(),
    }
}

/// Makes the invocations that an experiment lacks by now, without a warning about the machine.
///
/// # Errors
/// As [`measure`].
pub fn measure_lacking(
    experiment: &mut Experiment,
    store: &mut Store,
    context: &Context,
    stop_reason: StopReason,
) -> (Result<Ending, runner::RunError>, Option<String>) {
    let runs = runs(context);
    let bar = Bar::new(&cells::lacking(experiment), experiment, context.messages);
    let stop_reason = (experiment.programs.len() == 1).then_some(stop_reason);
    let mut watched = Watched { bar, stop_reason, interrupt: context.interrupt, why: None, figures: None };
    let ended = stages::execute(experiment, store, &runs, context, &mut watched);
    (ended, watched.why)
}
