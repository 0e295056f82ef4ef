//! What it costs when freed memory waits: time and memory over the size of a quarantine (Sareen and Blackburn 2022, §7).

mod comparison;
mod document;
mod figures;
mod part;
mod published;
mod published_overhead;
mod sections;

use heaptoll_experiment::manager::{self, Manager};
use heaptoll_report::document::Document;

use self::part::part;
use heaptoll_command::context::Context;
use heaptoll_command::failure::Failure;
use heaptoll_runs::preparation::stand_ins;
use heaptoll_runs::studied::{self, StudyOutcome, size_label};

pub use comparison::{NO_DELAY, study};
pub use figures::{Curve, Delay, Mean, Medians, Point, Ratios};
pub use published::PublishedPair;
pub use published_overhead::{Overhead, Quantity};

/// The schema of the figures' JSON.
pub const SCHEMA: &str = "heaptoll-delay/1";
/// The managers of the paper, by their names here.
const PAPERS: [&str; 3] = ["tcmalloc", "mimalloc3", "snmalloc"];

/// What to run.
#[derive(Debug, Clone)]
pub struct Request {
    /// Managers to put a quarantine in front of, by name or path, or groups of them; those of the paper without any.
    pub manager: Vec<String>,
    /// Sizes of the quarantine, bytes; [`NO_DELAY`], which all are compared with, is always among them.
    pub sizes_bytes: Vec<u64>,
    /// The programs, and how often they run.
    pub study: studied::Request,
}

/// What was found.
pub struct Findings {
    /// The experiment.
    pub outcome: StudyOutcome,
    /// Ratios over the size of the quarantine.
    pub found: Delay,
}

/// The figures, as in the JSON.
pub type Figures = studied::Figures<Delay, PublishedPair>;

/// Runs every program under every manager and every size of the quarantine.
///
/// # Errors
/// See [`studied::carry_out`]; a resumed file of another study.
pub fn run(request: &Request, context: &Context) -> Result<Findings, Failure> {
    let stacks = if request.study.resume.is_some() { vec![] } else { stacks(request, context)? };
    let outcome = studied::carry_out(&request.study, context, &stacks, &subject, &|_| None)?;
    let found = study(&outcome.experiment);
    if found.managers.is_empty() {
        return Err(Failure::Usage(format!(
            "{} is not a delay study: it has no stack with a quarantine. Show it with `heaptoll report`",
            outcome.path.display()
        )));
    }
    Ok(Findings { outcome, found })
}

impl Findings {
    /// The document that shows it.
    pub fn document(&self) -> Document {
        document::document(&self.found, &self.outcome)
    }

    /// The figures, with the paper's.
    pub fn figures(&self) -> Figures {
        self.outcome.figures(self.found.clone(), published::published_pairs(&self.found))
    }
}

/// The manager of a stack, with or without a quarantine. A stack with further settings is another subject, but runs at
/// the same time.
fn subject(stack: &str) -> Option<String> {
    part(stack).map(|(subject, _)| subject)
}

/// Each manager without a layer, and with a quarantine of every size.
fn stacks(request: &Request, context: &Context) -> Result<Vec<Manager>, Failure> {
    let known = manager::known(context.places)?;
    stand_ins::note(&known, &request.manager, context.messages);
    let chosen = if request.manager.is_empty() {
        PAPERS.iter().filter_map(|name| manager::find(&known, name).ok()).collect()
    } else {
        studied::without_repeats(manager::choose(&known, request.manager.iter().map(String::as_str))?)
    };
    let mut sizes = request.sizes_bytes.clone();
    sizes.push(NO_DELAY);
    sizes.sort_unstable();
    sizes.dedup();
    let mut stacks = Vec::new();
    for manager in chosen {
        if !manager.layers.is_empty() {
            return Err(Failure::Usage(format!(
                "-m {}: name the manager alone; `heaptoll lab delay` puts a quarantine in front of it",
                manager.name
            )));
        }
        let delayed: Result<Vec<Manager>, _> = sizes
            .iter()
            .map(|bytes| {
                manager::find(&known, &format!("quarantine={}/{}", size_label(*bytes), manager.name))
            })
            .collect();
        stacks.push(manager);
        stacks.extend(delayed?);
    }
    Ok(stacks)
}
