//! One program: the choice, a full search of the same candidates, and fresh runs of the choice against its best.

use std::path::Path;

use heaptoll_catalog::Size;
use heaptoll_command::context::Context;
use heaptoll_compare::choose::{self, ChooseRequest, Preference, difference, timed_runs};
use heaptoll_compare::run::{self, Run};
use heaptoll_experiment::compare::compare;
use heaptoll_experiment::comparison::{Comparison, Metric};
use heaptoll_experiment::experiment::{Experiment, Protocol};
use heaptoll_experiment::runner::Ending;
use heaptoll_runs::workload::Workload;
use heaptoll_statistics::{ALPHA, Interval};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::installation::scratch;

/// Times that fresh runs are judged, after one, two and four times as many.
const ANALYSES: u32 = 3;

/// How much is run.
#[derive(Debug, Clone)]
pub struct Effort {
    /// Input of the programs.
    pub size: Size,
    /// Repetitions of the fresh runs of a choice, and of the full search.
    pub repetitions: u32,
    /// Repetitions of the fresh runs of the choice against the best.
    pub fresh: u32,
    /// What is wanted.
    pub preference: Preference,
    /// The loss that is to be excluded, as a share.
    pub target: f64,
    /// Seed of the order.
    pub seed: u64,
    /// Managers to choose from; `choose`'s own without any.
    pub managers: Vec<String>,
}

/// What was found on a program.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Measured {
    /// The program.
    pub program: String,
    /// The choice.
    pub choice: String,
    /// The best of the full search.
    pub best: String,
    /// Candidates, the baseline not counted.
    pub candidates: usize,
    /// Runs of the search.
    pub search_runs: u64,
    /// Runs of the full search.
    pub full_runs: u64,
    /// The choice over the best by what is wanted, in fresh runs; none where they are the same.
    pub loss: Option<Interval>,
}

impl Measured {
    /// Share of the full search's runs that the search took.
    pub fn share(&self) -> f64 {
        self.search_runs as f64 / self.full_runs.max(1) as f64
    }

    /// The loss that the interval excludes to be exceeded, as a share; 0 for the best itself.
    pub fn loss_at_most(&self) -> f64 {
        match (&self.loss, self.choice == self.best) {
            (Some(loss), _) => (loss.high - 1.0).max(0.0),
            (None, true) => 0.0,
            (None, false) => f64::INFINITY,
        }
    }
}

/// Measures one program.
///
/// # Errors
/// An experiment fails, or Ctrl-C.
pub fn measure(program: &str, effort: &Effort, context: &Context) -> Result<Measured, Error> {
    let folder = scratch()?;
    let request = request(program, effort, folder.path());
    let found = choose::run(&request, context)?;
    if !found.complete {
        return Err(Error::Interrupted);
    }
    let candidates = choose::candidates(&request, context)?;
    let mut full = request.run.clone();
    full.manager = candidates.clone();
    full.db = Some(folder.path().join("full.db"));
    let full = complete(&full, context)?;
    let best = best(&full, effort.preference);
    let choice = found.figures.choice.clone();
    Ok(Measured {
        program: program.into(),
        candidates: candidates.len(),
        search_runs: found.figures.search_runs,
        full_runs: timed_runs(&full),
        loss: match choice == best {
            true => None,
            false => loss(&request.run, (&choice, &best), effort, context)?,
        },
        choice,
        best,
    })
}

/// The same with new fresh runs of its choice against its best.
///
/// # Errors
/// As [`measure`].
pub fn again(before: &Measured, effort: &Effort, context: &Context) -> Result<Measured, Error> {
    let folder = scratch()?;
    let request = request(&before.program, effort, folder.path());
    let loss = loss(&request.run, (&before.choice, &before.best), effort, context)?;
    Ok(Measured { loss, ..before.clone() })
}

fn request(program: &str, effort: &Effort, folder: &Path) -> ChooseRequest {
    let usual = run::RunRequest::of(Workload::of_catalog(&[program], effort.size), &[]);
    ChooseRequest {
        run: run::RunRequest {
            protocol: Protocol { repetitions: effort.repetitions, seed: effort.seed, ..usual.protocol },
            db: Some(folder.join("choose.db")),
            ..usual
        },
        manager: effort.managers.clone(),
        settings: true,
        preference: effort.preference,
        memory_limit_bytes: None,
        p99_limit_ms: None,
        floor: choose::FLOOR,
        soak_s: None,
    }
}

/// An experiment with all its runs.
fn complete(request: &run::RunRequest, context: &Context) -> Result<Experiment, Error> {
    let mut run = Run::begin(request, context)?;
    match run.measure(context)? {
        Ending::Complete => Ok(run.experiment),
        Ending::Interrupted => Err(Error::Interrupted),
    }
}

/// The stack with the best score of a full search; the baseline has 0.
fn best(experiment: &Experiment, preference: Preference) -> String {
    let comparison = compare(experiment);
    let scored = experiment
        .stacks
        .iter()
        .filter_map(|stack| Some((score(&stack.name, &comparison, preference)?, stack)));
    let best = scored.min_by(|a, b| a.0.total_cmp(&b.0));
    best.map_or_else(|| experiment.baseline.clone(), |(_, stack)| stack.name.clone())
}

/// The score of a stack all of whose runs ended well.
fn score(stack: &str, comparison: &Comparison, preference: Preference) -> Option<f64> {
    if stack == comparison.baseline {
        return Some(0.0);
    }
    let rows = comparison.tables.iter().flat_map(|table| &table.rows);
    let row = rows.filter(|row| row.marks.is_empty()).find(|row| row.stack == stack)?;
    let ratio = |metric| Some(row.figures.get(&metric)?.ratio?.ratio);
    Some(preference.score(ratio(Metric::Cpu)?, ratio(Metric::PeakRss)?, &choose::Served::default()))
}

/// Fresh runs of the choice and the best of the full search alone, twice as many where they do not decide, and twice as
/// many again. Each analysis has its share of the level.
fn loss(
    request: &run::RunRequest,
    (choice, best): (&str, &str),
    effort: &Effort,
    context: &Context,
) -> Result<Option<Interval>, Error> {
    let folder = scratch()?;
    let fresh = run::RunRequest {
        baseline: Some(best.into()),
        manager: vec![best.into(), choice.into()],
        protocol: Protocol { repetitions: effort.fresh, seed: effort.seed + 1, ..request.protocol.clone() },
        db: Some(folder.path().join("fresh.db")),
        ..request.clone()
    };
    let mut run = Run::begin(&fresh, context)?;
    run.experiment.settings.level = Some(ALPHA / f64::from(ANALYSES));
    let mut found = None;
    for _ in 0..ANALYSES {
        if run.measure(context)? != Ending::Complete {
            return Err(Error::Interrupted);
        }
        found = difference(&run.experiment, choice, best, effort.preference);
        let bound = 1.0 + effort.target;
        if found.is_some_and(|loss| loss.high <= bound || loss.low > bound) {
            break;
        }
        run.experiment.settings.repetitions *= 2;
        run.experiment.complete = false;
    }
    Ok(found)
}
