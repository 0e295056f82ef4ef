//! `heaptoll choose`: which manager, with which settings, fits a program best, by successive halving.
//!
//! A search runs all candidates twice and keeps the better third, runs those three times, and so on. What it
//! measured decides nothing but the order: the answer is of fresh runs of the finalists and the default, so that a
//! candidate that was lucky in the search has no part of that luck in its price.

mod candidates;
mod document;
mod figures;
mod score;

use heaptoll_experiment::compare::compare;
use heaptoll_experiment::comparison::Comparison;
use heaptoll_experiment::experiment::Experiment;
use heaptoll_experiment::manager;
use heaptoll_experiment::runner::Ending;
use heaptoll_report::document::Document;
use heaptoll_scratch::Scratch;

use crate::context::Context;
use crate::failure::Failure;
use crate::preparation::experiment_file;
use crate::run::{self, Run};

pub use figures::{Candidate, Figures, Finalist};
pub use score::Preference;
use score::{Measured, measured};

/// Name and version of the figures as JSON.
pub const SCHEMA: &str = "heaptoll-choose/1";
/// Candidates, besides the baseline, that are measured afresh.
const FINALISTS: usize = 2;
/// Repetitions of the fresh runs by default.
pub const REPETITIONS: u32 = 20;
/// Repetitions of the search's first round: fewer give no ratios. Each further round has one more.
const FIRST_REPETITIONS: u32 = 2;
/// Of so many candidates of a round, one goes on.
const DROPPED: usize = 3;

/// What to choose, and how.
#[derive(Debug, Clone)]
pub struct Request {
    /// What every run has in common: programs, seed, limits. Managers and repetitions are of each round.
    pub run: run::Request,
    /// Managers and stacks to choose from; the modern ones, with their settings, without any.
    pub manager: Vec<String>,
    /// Whether managers that were named are tried with settings, too.
    pub settings: bool,
    /// What is wanted.
    pub preference: Preference,
    /// Peak resident memory that a run may take, bytes.
    pub memory_limit_bytes: Option<u64>,
}

/// What was found.
pub struct Findings {
    /// The figures.
    pub figures: Figures,
    /// The fresh runs.
    pub run: Run,
    /// Whether all runs were made.
    pub complete: bool,
}

/// Searches, and measures the finalists.
///
/// # Errors
/// The request cannot be carried out, no candidate works, or Ctrl-C.
pub fn run(request: &Request, context: &Context) -> Result<Findings, Failure> {
    request.run.workload.require(false)?;
    experiment_file::check(request.run.db.as_deref())?;
    let known = manager::known(context.places)?;
    let names = candidates::names(&known, &request.manager, request.settings, &request.run.baseline)?;
    let mut search = Search { request, context, scratch: scratch()?, rows: Vec::new(), runs: 0 };
    let finalists = search.halve(names)?;
    let mut fresh = request.run.clone();
    fresh.manager = finalists;
    fresh.repetitions.get_or_insert(REPETITIONS);
    context.messages.note(&format!(
        "the search made {} runs; now fresh runs of {}",
        search.runs,
        heaptoll_report::format::and_list(&fresh.manager)
    ));
    let mut run = Run::begin(&fresh, context)?;
    let complete = matches!(run.measure(context)?, Ending::Complete);
    let comparison = compare(&run.experiment);
    let figures = search.figures(&run.experiment, &comparison);
    Ok(Findings { figures, run, complete })
}

impl Findings {
    /// The document that shows it. `command` repeats it.
    pub fn document(&self, context: &Context, command: &str) -> Document {
        document::document(&self.figures, &self.run.experiment, context.places, command)
    }
}

fn scratch() -> Result<Scratch, Failure> {
    Scratch::make().map_err(|error| Failure::Usage(format!("no temporary folder for the search: {error}")))
}

/// The rounds so far.
struct Search<'a> {
    request: &'a Request,
    context: &'a Context<'a>,
    scratch: Scratch,
    /// What each candidate had in its last round.
    rows: Vec<Candidate>,
    /// Timed runs of the search.
    runs: u64,
}

impl Search<'_> {
    /// The finalists: the best candidates and the baseline.
    fn halve(&mut self, mut names: Vec<String>) -> Result<Vec<String>, Failure> {
        let baseline = self.request.run.baseline.clone();
        let mut repetitions = FIRST_REPETITIONS;
        let mut round = 1;
        while names.len() > FINALISTS {
            let left = self.round(round, &names, repetitions)?;
            let kept = left.len().div_ceil(DROPPED).max(FINALISTS).min(left.len());
            names = left.into_iter().take(kept).collect();
            if names.is_empty() {
                return Err(Failure::Usage(format!(
                    "no candidate but {baseline} runs this program as it should{}",
                    if self.request.memory_limit_bytes.is_some() { " within the memory limit" } else { "" }
                )));
            }
            if kept == FINALISTS {
                break;
            }
            (round, repetitions) = (round + 1, repetitions + 1);
        }
        Ok(std::iter::once(baseline).chain(names).collect())
    }

    /// Runs candidates and the baseline so often; those that work, best first.
    fn round(&mut self, round: u32, names: &[String], repetitions: u32) -> Result<Vec<String>, Failure> {
        let mut request = self.request.run.clone();
        request.manager = std::iter::once(request.baseline.clone()).chain(names.iter().cloned()).collect();
        request.repetitions = Some(repetitions);
        (request.precision, request.budget_s, request.warmup) = (None, None, 0);
        request.db = Some(self.scratch.path().join(format!("round-{round}.db")));
        self.context
            .messages
            .note(&format!("round {round}: {} candidates, {repetitions} repetitions each", names.len(),));
        let mut run = Run::begin(&request, self.context)?;
        if !matches!(run.measure(self.context)?, Ending::Complete) {
            return Err(Failure::Interrupted);
        }
        self.runs += (names.len() as u64 + 1) * u64::from(repetitions) * run.experiment.programs.len() as u64;
        let comparison = compare(&run.experiment);
        let mut scored: Vec<(f64, String)> = Vec::new();
        for name in names {
            let found = self.judge(name, &comparison);
            let score = found.why_out.is_none().then_some(found.score).flatten();
            scored.extend(score.map(|score| (score, name.clone())));
            self.rows.retain(|row| row.stack != *name);
            self.rows.push(Candidate { round, ..found });
        }
        scored.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
        Ok(scored.into_iter().map(|(_, name)| name).collect())
    }

    fn judge(&self, name: &str, comparison: &Comparison) -> Candidate {
        let mut row = Candidate { stack: name.to_owned(), ..Candidate::default() };
        match measured(name, comparison) {
            Ok(Measured { cpu, memory, peak_bytes }) => {
                (row.cpu_ratio, row.memory_ratio, row.peak_bytes) =
                    (Some(cpu), Some(memory), Some(peak_bytes));
                row.score = Some(self.request.preference.score(cpu, memory));
                let limit = self.request.memory_limit_bytes.filter(|limit| peak_bytes > *limit as f64);
                row.why_out = limit.map(|_| "takes more than the memory limit".into());
            }
            Err(why) => row.why_out = Some(why),
        }
        row
    }

    fn figures(mut self, experiment: &Experiment, comparison: &Comparison) -> Figures {
        let finalists: Vec<Finalist> = experiment
            .stacks
            .iter()
            .map(|stack| figures::finalist(&stack.name, comparison, self.request.preference))
            .collect();
        self.rows.sort_by(|a, b| {
            let score = |row: &Candidate| row.score.unwrap_or(f64::INFINITY);
            b.round.cmp(&a.round).then_with(|| score(a).total_cmp(&score(b)))
        });
        let best = figures::best(&finalists, &self.request.run.baseline, self.request.memory_limit_bytes);
        Figures {
            programs: experiment.programs.iter().map(|program| program.name.clone()).collect(),
            baseline: self.request.run.baseline.clone(),
            preference: self.request.preference,
            memory_limit_bytes: self.request.memory_limit_bytes,
            choice: best,
            finalists,
            candidates: self.rows,
            search_runs: self.runs,
            fresh_repetitions: experiment.repetitions(),
        }
    }
}
