//! What it costs when freed memory waits: time and memory over the size of a quarantine (Sareen and Blackburn 2022, §7).

mod comparison;
mod document;
mod facts;
mod figures;
mod published;
mod published_overhead;

use heaptoll_experiment::manager::Manager;
use heaptoll_units::size_label;

use crate::layered::Stacks;
use heaptoll_command::context::Context;
use heaptoll_command::failure::Failure;
use heaptoll_runs::studied::{self, Findings};

pub use comparison::NO_DELAY;
pub use figures::{Curve, Delay, Mean, Medians, Point};
pub use published::PublishedPair;
pub use published_overhead::{Overhead, Quantity};

schemars::labelled!(Delay, "heaptoll-delay/1");
/// The managers of the paper, by their names here.
const PAPERS: [&str; 3] = ["tcmalloc", "mimalloc3", "snmalloc"];

/// What to run.
#[derive(Debug, Clone)]
pub struct DelayRequest {
    /// Managers to put a quarantine in front of, by name or path, or groups of them; those of the paper without any.
    pub manager: Vec<String>,
    /// Sizes of the quarantine, bytes; [`NO_DELAY`], which all are compared with, is always among them.
    pub sizes_bytes: Vec<u64>,
    /// The programs, and how often they run.
    pub study: studied::Request,
}

/// The figures, as in the JSON.
pub type DelayFigures = studied::Figures<Delay, PublishedPair>;

/// Runs every program under every manager and every size of the quarantine.
///
/// # Errors
/// See [`studied::carry_out`]; a resumed file of another study.
pub fn run(request: &DelayRequest, context: &Context) -> Result<Findings<Delay, PublishedPair>, Failure> {
    let stacks = if request.study.resume.is_some() { vec![] } else { stacks(request, context)? };
    // A stack with further settings is another subject, but runs at the same time.
    let subject = |stack: &str| comparison::part(stack).map(|part| part.0);
    let outcome = studied::carry_out(&request.study, context, &stacks, &subject, &|_| None)?;
    let sweep = comparison::swept(&outcome.experiment);
    let found = comparison::figures(&sweep);
    let published = published::published_pairs(&found);
    let document = document::document(&found, &sweep, &outcome);
    Findings::of(outcome, ("delay", "a quarantine"), &sweep.subjects, found, published, document)
}

/// Each manager without a layer, and with a quarantine of every size.
fn stacks(request: &DelayRequest, context: &Context) -> Result<Vec<Manager>, Failure> {
    let mut sizes = request.sizes_bytes.clone();
    sizes.push(NO_DELAY);
    sizes.sort_unstable();
    sizes.dedup();
    let managers = Stacks { command: "lab delay", requested: &request.manager, usual: &PAPERS };
    let word = |bytes: &u64, manager: &Manager| format!("quarantine={}/{}", size_label(*bytes), manager.name);
    managers.all(|manager| sizes.iter().map(|bytes| word(bytes, manager)).collect(), context)
}
