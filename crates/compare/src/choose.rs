//! `heaptoll choose`: which manager, with which settings, fits a program best, by successive halving.
//!
//! A search runs all candidates and keeps the better third, runs those again, and so on, in an eighth of the runs that a
//! full search takes. What it measured decides nothing but the order: the answer is of fresh runs of the finalists and
//! the default, so that a candidate that was lucky in the search has no part of that luck in its price.

mod alone;
mod answer;
mod candidates;
mod difference;
mod document;
mod figures;
mod frontier;
mod request;
mod requirements;
mod schedule;
mod score;
mod search;
mod servers;
mod soak;
mod undecided;

use heaptoll_experiment::compare::compare;
use heaptoll_experiment::comparison::Comparison;
use heaptoll_experiment::experiment::Experiment;
use heaptoll_experiment::manager;
use heaptoll_experiment::runner::Ending;
use heaptoll_report::document::Document;
use heaptoll_statistics::Interval;

use crate::run::Run;
use heaptoll_command::context::Context;
use heaptoll_command::failure::Failure;
use heaptoll_runs::preparation::experiment_file;

pub use difference::difference;
pub use figures::{Candidate, ChooseFigures, Finalist};
pub use request::{ChooseRequest, FLOOR, REPETITIONS};
pub use score::{Limits, Preference};
pub use search::timed_runs;
pub use servers::{IdleMemory, Served};
pub use soak::{Growth, Soak};

schemars::labelled!(ChooseFigures, "heaptoll-choose/1");
/// What was found.
pub struct Findings {
    /// The figures.
    pub figures: ChooseFigures,
    /// The fresh runs.
    pub run: Run,
    /// Whether all runs were made.
    pub complete: bool,
}

/// The candidates of a request, without the baseline.
///
/// # Errors
/// A word names no manager, or there is nothing to choose from.
pub fn candidates(request: &ChooseRequest, context: &Context) -> Result<Vec<String>, Failure> {
    let known = manager::known(context.places)?;
    candidates::names(&known, &request.manager, request.settings, request.run.baseline())
}

/// Searches, and measures the finalists.
///
/// # Errors
/// The request cannot be carried out, no candidate works, or Ctrl-C.
pub fn run(request: &ChooseRequest, context: &Context) -> Result<Findings, Failure> {
    request.run.workload.require("--set or --all")?;
    experiment_file::check(request.run.db.as_deref())?;
    requirements::check(request, context)?;
    let searched = search::search(request, candidates(request, context)?, context)?;
    let fresh = request.runs_of(&searched.finalists);
    context.messages.note(&format!(
        "the search made {} runs besides warm-ups; now fresh runs of {}",
        searched.runs,
        heaptoll_report::format::and_list(&fresh.manager)
    ));
    let mut run = Run::begin(&fresh, context)?;
    let complete = matches!(run.measure(context)?, Ending::Complete);
    let comparison = compare(&run.experiment);
    let mut figures = figures(request, searched, &run.experiment, &comparison);
    if complete {
        figures.soak = soak::run(request, &run, context)?;
    }
    Ok(Findings { figures, run, complete })
}

fn figures(
    request: &ChooseRequest,
    searched: search::Searched,
    experiment: &Experiment,
    comparison: &Comparison,
) -> ChooseFigures {
    let mut finalists = figures::finalists(experiment, comparison, request.preference);
    for finalist in finalists.iter_mut().filter(|finalist| finalist.stack != experiment.baseline) {
        finalist.weighted = difference(experiment, &finalist.stack, &experiment.baseline, request.preference);
    }
    ChooseFigures {
        programs: experiment.programs.iter().map(|program| program.name.clone()).collect(),
        baseline: experiment.baseline.clone(),
        preference: request.preference,
        memory_limit_bytes: request.memory_limit_bytes,
        p99_limit_ms: request.p99_limit_ms,
        floor: request.floor,
        choice: figures::best(
            &finalists,
            &experiment.baseline,
            request.preference,
            request.limits(),
            request.floor,
        ),
        finalists,
        between_finalists: between_finalists(request, experiment),
        full_search_runs: searched.full_runs,
        candidates: searched.candidates,
        search_runs: searched.runs,
        soak: Vec::new(),
        fresh_repetitions: experiment.repetitions(),
    }
}

/// The first of two finalists over the second by what is wanted.
fn between_finalists(request: &ChooseRequest, experiment: &Experiment) -> Option<Interval> {
    let mut others = experiment.stacks.iter().filter(|stack| stack.name != experiment.baseline);
    let first = others.next()?;
    let second = others.find(|stack| stack.name != first.name)?;
    difference(experiment, &first.name, &second.name, request.preference)
}

impl Findings {
    /// The document that shows it.
    pub fn document(&self, context: &Context) -> Document {
        document::document(&self.figures, &self.run.experiment, context.places)
    }
}
