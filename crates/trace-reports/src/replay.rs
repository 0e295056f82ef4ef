//! `heaptoll trace replay`: what other managers do with exactly the calls of a trace.

use std::path::PathBuf;
use std::time::Duration;

use heaptoll_experiment::extension::require_for;
use heaptoll_experiment::manager::{self, Manager};
use heaptoll_experiment::places::Places;
use heaptoll_replay::error::ReplayError;
pub use heaptoll_replay::findings::Findings as Figures;
use heaptoll_replay::findings::findings;
pub use heaptoll_replay::job::Touch;
pub use heaptoll_replay::program::Order;
use heaptoll_replay::start::Stack;
use heaptoll_replay::study::{self, study};
use heaptoll_report::document::Document;
use heaptoll_report::format::printable;
use thiserror::Error;

use heaptoll_command::clock;
use heaptoll_command::context::Context;
use heaptoll_command::failure::Failure;
use heaptoll_command::trace_source;
use heaptoll_runs::preparation::{preflights, stand_ins};
use progress::ReplayProgress;

mod document;
pub mod progress;
mod sections;
pub mod trace_file;
mod verdict;

/// What the name of a collector of MMTk begins with, which replays traces with pointers.
pub const MMTK: &str = "mmtk:";
/// What that of one of our own begins with.
pub const OURS: &str = "own:";

/// Whether a word of `-m` names a collector on traces with pointers, known or not.
pub fn is_plan(word: &str) -> bool {
    word.starts_with(MMTK) || word.starts_with(OURS)
}

/// A collector on traces with pointers, with a trace without.
#[derive(Debug, Error)]
#[error(
    "-m {word}: a collector that moves objects needs to know which words are pointers. Record such a \
     trace with `heaptoll record --graph`, and replay it with `heaptoll lab replay-graph TRACE -m {word}`"
)]
struct NeedsPointers {
    word: String,
}

/// What to replay under which managers, and how.
#[derive(Debug, Clone)]
pub struct TraceReplayRequest {
    /// The trace, a file.
    pub trace: PathBuf,
    /// Managers, groups and stacks, by name or path; the modern ones without any.
    pub manager: Vec<String>,
    /// The manager that ratios are taken to.
    pub baseline: String,
    /// Order of threads in every pass; without one each thread as fast as it can where time is measured, exact where
    /// memory is.
    pub order: Option<Order>,
    /// What is done with blocks in every pass; without it nothing where time is measured, written where memory is.
    pub touch: Option<Touch>,
    /// Times the trace is replayed in one run.
    pub repetitions: u32,
    /// Copies of the trace, interleaved.
    pub copies: u32,
    /// Runs of each pass under each manager.
    pub runs: u32,
    /// Seed of the order of runs; from the clock without one.
    pub seed: Option<u64>,
    /// Longest that a run may take.
    pub timeout: Duration,
    /// Memory that may be taken to make the trace ready, bytes.
    pub memory_limit_bytes: u64,
}

/// What was found.
pub struct Replayed {
    /// The figures, as in the JSON.
    pub figures: Figures,
    managers: Vec<Manager>,
    /// Managers that the user named themselves, and not by a group.
    named: Vec<String>,
}

/// Replays a trace under every manager, interleaved in random order.
///
/// # Errors
/// It is no file, no trace, or cannot be replayed; a manager is unknown; Ctrl-C before anything was measured.
pub fn run(request: &TraceReplayRequest, context: &Context) -> Result<Replayed, Failure> {
    trace_file::several_times(&request.trace)?;
    let plan = request.manager.iter().chain([&request.baseline]).find(|word| is_plan(word));
    if let Some(word) = plan {
        return Err(Failure::Refused(Box::new(NeedsPointers { word: printable(word) })));
    }
    let known = manager::known(context.places)?;
    let words = || request.manager.iter().chain([&request.baseline]);
    // The baseline comes first.
    let managers = manager::choose_with_baseline(&known, &request.manager, &request.baseline)?;
    managers.iter().try_for_each(require_for)?;
    stand_ins::note(&known, words(), context.messages);
    let all_runs = runs(request, &managers, context.places);
    let mut progress = ReplayProgress::new(context.messages);
    let studied = study(&all_runs, &context.interrupt.flag(), &mut progress);
    drop(progress);
    let figures = findings(&all_runs, &studied.map_err(failure)?);
    if !figures.complete && figures.rows.iter().all(|row| row.time.is_none() && row.memory.is_none()) {
        return Err(Failure::Interrupted);
    }
    Ok(Replayed { figures, managers, named: manager::names_of(&known, words()) })
}

fn runs(request: &TraceReplayRequest, managers: &[Manager], places: &Places) -> study::Request {
    let stack = |(manager, name): (&Manager, String)| Stack {
        name,
        preload: manager.preload(places),
        environment: manager.environment.clone(),
    };
    study::Request {
        trace: request.trace.clone(),
        memory_limit_bytes: request.memory_limit_bytes,
        stacks: managers.iter().zip(preflights::row_names(managers)).map(stack).collect(),
        order: request.order,
        touch: request.touch,
        runs: request.runs,
        repetitions: request.repetitions,
        copies: request.copies,
        seed: request.seed.unwrap_or_else(clock::seed),
        timeout: request.timeout,
        driver: places.replay_driver(),
        null: places.null_manager(),
    }
}

fn failure(error: ReplayError) -> Failure {
    match error {
        ReplayError::OwnCost(_) | ReplayError::System { .. } => Failure::Trouble(Box::new(error)),
        ReplayError::Trace(error) => trace_source::refused(error),
        error => Failure::Refused(Box::new(error)),
    }
}

impl Replayed {
    /// The document that shows it. `command` repeats the replay.
    pub fn document(&self, command: &str) -> Document {
        document::document(&self.figures, &self.managers, command)
    }

    /// Whether a manager failed: one that the user named counts when it fails or is refused, a member of a group only
    /// when it fails.
    pub fn has_trouble(&self) -> bool {
        let named = |name: &String| self.named.contains(name);
        self.figures.rows.iter().any(|row| {
            row.refused.is_some() && named(&row.name)
                || !row.failures.is_empty() && (row.collector.is_none() || named(&row.name))
        })
    }
}
