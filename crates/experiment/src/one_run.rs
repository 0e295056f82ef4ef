//! One run that is in no plan: a command chose it by what the runs before it found.

use crate::experiment::Experiment;
use crate::observation::{Observation, Outcome};
use crate::plan::Cell;
use crate::runner::{Around, RunContext, RunError, observe};
use crate::store::Store;

/// The name under which a file has what is kept with a row.
pub fn attachment(row: &Observation) -> String {
    format!("{} {} of {} under {}", row.phase.name(), row.repetition, row.program, row.stack)
}

/// Makes one run, whatever came of those before it; its row, and what is kept with it, are on disk when this returns.
/// `None`: Ctrl-C ended the run, and nothing of it is kept.
///
/// # Errors
/// See [`RunError`].
pub fn execute_one(
    experiment: &mut Experiment,
    cell: &Cell,
    store: &mut Store,
    context: &RunContext,
    around: &mut dyn Around,
) -> Result<Option<Observation>, RunError> {
    let Some((mut row, track, kept)) = observe(experiment, cell, context, around)? else { return Ok(None) };
    if row.outcome == Outcome::Interrupted {
        return Ok(None);
    }
    row.order = experiment.observations.last().map_or(0, |last| last.order + 1);
    // First: a row that is there has what is kept with it.
    if let Some(bytes) = kept {
        store.attach_bytes(&attachment(&row), &bytes)?;
    }
    store.append(&row)?;
    if let Some(track) = track {
        store.append_track(&track)?;
        experiment.tracks.push(track);
    }
    experiment.observations.push(row.clone());
    Ok(Some(row))
}
