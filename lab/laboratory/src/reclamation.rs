//! What it costs to free objects earlier or later: one manager held fixed, objects freed at their last use, at the program's free,
//! some bytes later, at a collection, or not at all (Hertz and Berger 2005, natively).

mod comparison;
mod document;
mod facts;
mod figures;
mod oracles;
mod part;
mod request;

use heaptoll_experiment::manager::Manager;
use heaptoll_oracle::FreePoint;

use crate::layered::Stacks;
use heaptoll_command::context::Context;
use heaptoll_command::failure::Failure;
use heaptoll_runs::studied::{self, Findings};

pub use figures::{Alive, Curve, Mean, Medians, Reclamation, Row};
pub use part::{point_label, point_of, stack_word};
pub use request::ReclamationRequest;

schemars::labelled!(Reclamation, "heaptoll-reclamation/1");
/// Managers that are held fixed, by their names here.
const MANAGERS: [&str; 3] = ["glibc", "mimalloc3", "tithe-explicit"];

/// The figures, as in the JSON.
pub type ReclamationFigures = studied::Figures<Reclamation, ()>;

/// Records what is not recorded yet, and runs every program under every manager with every point.
///
/// # Errors
/// See [`studied::carry_out`]; no program can be recorded; a resumed file of another study.
pub fn run(request: &ReclamationRequest, context: &Context) -> Result<Findings<Reclamation, ()>, Failure> {
    let mut study = request.study.clone();
    let stacks = if study.resume.is_some() {
        vec![]
    } else {
        let recordings = oracles::record(request, &mut study.workload, context)?;
        stacks(request, &recordings.points(request, context), context)?
    };
    let subject = |stack: &str| part::part(stack).map(|part| part.0);
    let outcome = studied::carry_out(&study, context, &stacks, &subject, &|_| None)?;
    let sweep = comparison::swept(&outcome.experiment);
    let found = comparison::figures(&sweep, &outcome.experiment);
    let document = document::document(&found, &sweep, &outcome);
    Findings::of(outcome, ("reclamation", "an oracle"), &sweep.subjects, found, vec![], document)
}

/// Each manager without a layer, and with an oracle at every point.
fn stacks(
    request: &ReclamationRequest,
    points: &[FreePoint],
    context: &Context,
) -> Result<Vec<Manager>, Failure> {
    let managers = Stacks { command: "lab reclamation", requested: &request.manager, usual: &MANAGERS };
    let word = |point: &FreePoint, manager: &Manager| stack_word(*point, &request.oracles, &manager.name);
    managers.all(|manager| points.iter().map(|point| word(point, manager)).collect(), context)
}
