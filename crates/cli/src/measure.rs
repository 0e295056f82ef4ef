//! The invocations that an experiment lacks, made under a progress bar and stored one by one.

use heaptoll_experiment::disturbance::Since;
use heaptoll_experiment::experiment::Experiment;
use heaptoll_experiment::interrupt::Interrupt;
use heaptoll_experiment::machine;
use heaptoll_experiment::places::Places;
use heaptoll_experiment::runner::{self, Ending, RunContext};
use heaptoll_experiment::store::Store;

use crate::progress::Bar;
use crate::{load, pairing, terminal};

pub mod cells;
mod sight;
mod stages;
mod watched;

pub use watched::StopReason;

use watched::Watched;

/// Makes the invocations that an experiment still lacks, under a progress bar, and stores each row.
///
/// # Errors
/// See [`runner::RunError`].
pub fn measure(
    experiment: &mut Experiment,
    store: &mut Store,
    places: &Places,
    interrupt: &Interrupt,
) -> Result<Ending, runner::RunError> {
    measure_unless(experiment, store, places, interrupt, &|_| None).0
}

/// [`measure`], which ends early when a row of the only program shows that all others would be useless. The second part
/// is then the reason.
pub fn measure_unless(
    experiment: &mut Experiment,
    store: &mut Store,
    places: &Places,
    interrupt: &Interrupt,
    stop_reason: StopReason,
) -> (Result<Ending, runner::RunError>, Option<String>) {
    if let Some(text) = load::at_the_beginning(&machine::read()) {
        terminal::warning(&text);
    }
    let since = Since::now();
    let measured = measure_lacking(experiment, store, places, interrupt, stop_reason);
    let found = since.and_then(|since| since.disturbance(None));
    // Not the cores of the machine's description, of which a limit of CPU time takes some off.
    let processors = pairing::Machine::now().processors;
    for text in found.map_or(vec![], |found| load::meanwhile(&found, processors)) {
        terminal::warning(&text);
    }
    measured
}

/// Makes the invocations that an experiment lacks by now, without a warning about the machine.
///
/// # Errors
/// As [`measure`].
pub fn measure_lacking(
    experiment: &mut Experiment,
    store: &mut Store,
    places: &Places,
    interrupt: &Interrupt,
    stop_reason: StopReason,
) -> (Result<Ending, runner::RunError>, Option<String>) {
    let context = RunContext {
        launcher: places.launcher(),
        start_layer: places.start_layer(),
        interrupt: interrupt.clone(),
    };
    let bar = Bar::new(&cells::lacking(experiment), experiment);
    let stop_reason = (experiment.programs.len() == 1).then_some(stop_reason);
    let mut watched = Watched { bar, stop_reason, interrupt, why: None };
    let ended = stages::execute(experiment, store, &context, &mut watched);
    watched.bar.clear();
    (ended, watched.why)
}
