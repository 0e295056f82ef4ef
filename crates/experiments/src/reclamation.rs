//! What it costs to free objects earlier or later: one manager held fixed, objects freed at their last use, at the program's free,
//! some bytes later, at a collection, or not at all (Hertz and Berger 2005, natively).

mod comparison;
mod document;
mod figures;
mod oracles;
mod part;
mod request;
mod sections;

use heaptoll_experiment::manager::{self, Manager};
use heaptoll_oracle::FreePoint;
use heaptoll_report::document::Document;

use heaptoll_command::context::Context;
use heaptoll_command::failure::Failure;
use heaptoll_runs::preparation::stand_ins;
use heaptoll_runs::studied::{self, StudyOutcome};

pub use comparison::study;
pub use figures::{Alive, Curve, Mean, Medians, Ratios, Reclamation, Row};
pub use part::{point_label, point_of, stack_word};
pub use request::Request;

/// The schema of the figures' JSON.
pub const SCHEMA: &str = "heaptoll-reclamation/1";
/// Managers that are held fixed, by their names here.
const MANAGERS: [&str; 3] = ["glibc", "mimalloc3", "tithe-explicit"];

/// What was found.
pub struct Findings {
    /// The experiment.
    pub outcome: StudyOutcome,
    /// Ratios by point.
    pub found: Reclamation,
}

/// The figures, as in the JSON.
pub type Figures = studied::Figures<Reclamation, ()>;

/// Records what is not recorded yet, and runs every program under every manager with every point.
///
/// # Errors
/// See [`studied::carry_out`]; no program can be recorded; a resumed file of another study.
pub fn run(request: &Request, context: &Context) -> Result<Findings, Failure> {
    let mut study = request.study.clone();
    let stacks = if study.resume.is_some() {
        vec![]
    } else {
        let recordings = oracles::record(request, &mut study.workload, context)?;
        stacks(request, &recordings.points(request, context), context)?
    };
    let outcome = studied::carry_out(&study, context, &stacks, &subject, &|_| None)?;
    let found = comparison::study(&outcome.experiment);
    if found.managers.is_empty() {
        return Err(Failure::Usage(format!(
            "{} is not a reclamation study: it has no stack with an oracle. Show it with `heaptoll report`",
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

/// Each manager without a layer, and with an oracle at every point.
fn stacks(request: &Request, points: &[FreePoint], context: &Context) -> Result<Vec<Manager>, Failure> {
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
                "-m {}: name the manager alone; `heaptoll lab reclamation` puts the oracle in front of it",
                manager.name
            )));
        }
        let points: Result<Vec<Manager>, _> = points
            .iter()
            .map(|point| manager::find(&known, &stack_word(*point, &request.oracles, &manager.name)))
            .collect();
        stacks.push(manager);
        stacks.extend(points?);
    }
    Ok(stacks)
}
