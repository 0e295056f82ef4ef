//! What the moment of reclamation costs: one manager held fixed, objects freed at their last use, at the program's free,
//! some bytes later, at a collection, or not at all (Hertz and Berger 2005, natively).

mod comparison;
mod document;
mod figures;
mod oracles;
mod part;
mod sections;

use std::path::PathBuf;

use heaptoll_experiment::manager::{self, Manager};
use heaptoll_oracle::Moment;
use heaptoll_report::document::Document;

use crate::context::Context;
use crate::failure::Failure;
use crate::preparation::stand_ins;
use crate::studied::{self, StudyOutcome};

pub use comparison::study;
pub use figures::{Alive, Curve, Mean, Medians, Point, Ratios, Reclamation};
pub use part::{moment_label, moment_of, stack_word};

/// The schema of the figures' JSON.
pub const SCHEMA: &str = "heaptoll-reclamation/1";
/// Managers that are held fixed, by their names here.
const MANAGERS: [&str; 3] = ["glibc", "mimalloc3", "tithe-explicit"];

/// What to run.
#[derive(Debug, Clone)]
pub struct Request {
    /// Managers that are held fixed, by name or path, or groups of them.
    pub manager: Vec<String>,
    /// When objects are freed; the program's own free, which all are compared with, is always among them.
    pub moments: Vec<Moment>,
    /// Folder of the recordings; what is missing there is recorded first.
    pub oracles: PathBuf,
    /// The programs, and how often they run.
    pub study: studied::Request,
}

/// What was found.
pub struct Findings {
    /// The experiment.
    pub outcome: StudyOutcome,
    /// Ratios by moment.
    pub found: Reclamation,
}

/// The figures, as in the JSON.
pub type Figures = studied::Figures<Reclamation, ()>;

/// Records what is not recorded yet, and runs every program under every manager with every moment.
///
/// # Errors
/// See [`studied::carry_out`]; no program can be recorded; a resumed file of another study.
pub fn run(request: &Request, context: &Context) -> Result<Findings, Failure> {
    let mut study = request.study.clone();
    let stacks = if study.resume.is_some() {
        vec![]
    } else {
        oracles::record(request, &mut study.workload, context)?;
        stacks(request, context)?
    };
    let outcome = studied::carry_out(&study, context, &stacks, &subject, &|_| None)?;
    let found = comparison::study(&outcome.experiment);
    if found.managers.is_empty() {
        return Err(Failure::Usage(format!(
            "{} has no stack with an oracle: it is not of this study; `heaptoll report` shows it",
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

    /// The figures.
    pub fn figures(&self) -> Figures {
        self.outcome.figures(self.found.clone(), vec![])
    }
}

/// The manager of a stack, with or without an oracle.
fn subject(stack: &str) -> Option<String> {
    part::part(stack).map(|(manager, _)| manager)
}

/// Each manager without a layer, and with an oracle at every moment.
fn stacks(request: &Request, context: &Context) -> Result<Vec<Manager>, Failure> {
    let known = manager::known(context.places)?;
    stand_ins::note(&known, &request.manager, context.messages);
    let chosen = if request.manager.is_empty() {
        MANAGERS.iter().filter_map(|name| manager::find(&known, name).ok()).collect()
    } else {
        studied::without_repeats(manager::choose(&known, request.manager.iter().map(String::as_str))?)
    };
    let mut stacks = Vec::new();
    for manager in chosen {
        if !manager.layers.is_empty() {
            return Err(Failure::Usage(format!(
                "-m {}: name the manager alone; `heaptoll reclamation` puts the oracle in front of it",
                manager.name
            )));
        }
        let moments: Result<Vec<Manager>, _> = request
            .all_moments()
            .into_iter()
            .map(|moment| manager::find(&known, &stack_word(moment, &request.oracles, &manager.name)))
            .collect();
        stacks.push(manager);
        stacks.extend(moments?);
    }
    Ok(stacks)
}

impl Request {
    /// The moments, each once, in the order from early to late.
    fn all_moments(&self) -> Vec<Moment> {
        let mut moments = self.moments.clone();
        moments.push(Moment::Free);
        moments.sort_unstable();
        moments.dedup();
        moments
    }
}
