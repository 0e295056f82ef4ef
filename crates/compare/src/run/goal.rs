//! Runs that go on until intervals are narrow enough, or the time is over.

use std::time::Instant;

use heaptoll_experiment::compare::{compare, judge_outputs};
use heaptoll_experiment::experiment::Experiment;
use heaptoll_experiment::precision::{Interim, MOST, analyse};
use heaptoll_experiment::runner::{Ending, RunError};
use heaptoll_experiment::store::Store;
use heaptoll_units::percent;

use heaptoll_command::context::Context;
use heaptoll_runs::measurement;

/// Makes the invocations that an experiment lacks, program by program where that is requested; where it decides itself how many those are, check by check.
///
/// # Errors
/// See [`RunError`].
pub fn measure(
    experiment: &mut Experiment,
    store: &mut Store,
    by_program: bool,
    context: &Context,
) -> Result<Ending, RunError> {
    if by_program {
        return measurement::measure_by_program(experiment, store, context);
    }
    let begun = Instant::now();
    let mut ended = measurement::measure(experiment, store, context);
    while experiment.settings.precision.is_some() && matches!(ended, Ok(Ending::Complete)) {
        // Rows are judged on a copy: what an output is judged by may still change.
        let mut judged = experiment.clone();
        judge_outputs(&mut judged);
        let found = analyse(experiment, &compare(&judged), begun.elapsed().as_secs_f64());
        if let Some(text) = sentence(experiment, &found) {
            context.messages.note(&text);
        }
        let Some(next) = found.next else { break };
        let made = experiment.settings.repetitions;
        for program in found.enough {
            experiment.settings.enough.entry(program).or_insert(made);
        }
        experiment.settings.repetitions = next;
        experiment.complete = false;
        store.describe(experiment)?;
        ended = measurement::measure_lacking(experiment, store, context, &|_| None).0;
    }
    ended
}

/// The result of a check as a sentence; nothing where only the time decides and it goes on.
fn sentence(experiment: &Experiment, found: &Interim) -> Option<String> {
    let wanted = experiment.settings.precision.filter(|&wanted| wanted > 0.0)?;
    let (made, all) = (experiment.settings.repetitions, found.all);
    let Some(widest) = found.wide.first() else {
        return Some(format!(
            "after {made} repetitions all {all} CPU intervals are within {}",
            percent(wanted)
        ));
    };
    let needed = if widest.needed > f64::from(MOST) {
        format!("more than {MOST} repetitions, the limit")
    } else {
        format!("about {:.0} repetitions", widest.needed.ceil())
    };
    let over = if found.next.is_none() { "; the time is over" } else { "" };
    Some(format!(
        "after {made} repetitions {} of {all} CPU intervals are wider than {}. The widest is {} on {}, {} either \
         way. It needs {needed}{over}",
        found.wide.len(),
        percent(wanted),
        widest.stack,
        widest.program,
        percent(widest.half),
    ))
}
