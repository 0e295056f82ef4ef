//! Runs a study: a [`plan`] as a value, what of it can be run here, the folder that keeps it, its steps one after the
//! other, and what follows from them. Each step is a command of heaptoll, started as a child.

use std::path::Path;
use std::time::Instant;

use heaptoll_catalog::{Catalog, Places as CatalogPlaces};
use heaptoll_command::context::Context;
use heaptoll_command::failure::Failure;
use heaptoll_experiment::machine;
use heaptoll_experiment::manager::{self, Manager};
use heaptoll_runs::workload::{catalog, catalog_places};

use self::folder::Folder;
use self::measure::Measure;
use self::plan::Plan;
use self::selection::{Available, TakenOut, left_out_sentences};
use self::started::Heaptoll;
use self::steps::Steps;
use crate::budget::Length;
use crate::definition::Study;
use crate::results::Results;
use heaptoll_command::version;

mod affordable;
mod child;
mod commands;
mod conclusion;
mod facts;
pub mod folder;
mod log;
mod measure;
mod parts;
pub mod plan;
mod progress;
pub mod selection;
mod started;
mod steps;

/// A study that can be run: what of its plan this machine can carry out, and the folder that keeps it.
pub struct Session {
    plan: Plan,
    folder: Folder,
    known: Vec<Manager>,
    catalog: Catalog,
    programs: CatalogPlaces,
    /// The studies, without what cannot be run here.
    fitted: Vec<Study>,
    taken_out: Vec<TakenOut>,
    begun: Instant,
    /// It goes on with another budget.
    more_time: bool,
}

/// What came of a study.
#[derive(Debug)]
pub struct Outcome {
    /// Figures, verdicts and exhibits.
    pub results: Results,
    /// Why no more steps could be run; what was measured until then is in.
    pub stopped: Option<Failure>,
    /// Ctrl-C; what was measured until then is in.
    pub interrupted: bool,
    /// A step failed or was cut.
    pub trouble: bool,
}

impl Session {
    /// A new study, in this folder, or in one by date and names where none is given.
    ///
    /// # Errors
    /// Nothing of it can be run here or in its time; the folder cannot be made, or is not empty.
    pub fn begin(context: &Context, plan: Plan, keep: Option<&Path>) -> Result<Session, Failure> {
        Session::new(context, plan, false, |plan| Folder::make(keep, plan))
    }

    /// A study that was stopped, to go on with; with another budget where one is given, which counts from its beginning
    /// as the first did. Steps that were finished are not run again.
    ///
    /// # Errors
    /// It is no folder of a study, another heaptoll uses it, or nothing of it can be run here.
    pub fn resume(context: &Context, path: &Path, budget_s: Option<f64>) -> Result<Session, Failure> {
        let (folder, mut plan) = Folder::open(path).map_err(folder::refused)?;
        if plan.quick && budget_s.is_some() {
            return Err(Failure::Usage(format!(
                "{} was begun with --quick, which has no budget: go on without --budget",
                path.display()
            )));
        }
        plan.budget_s = budget_s.or(plan.budget_s);
        if plan.heaptoll != version::OURS {
            context.messages.warning(&format!(
                "heaptoll {} began it: its figures may not compare with new ones",
                plan.heaptoll
            ));
        }
        let session = Session::new(context, plan, true, |_| Ok(folder))?;
        Ok(Session { more_time: budget_s.is_some(), ..session })
    }

    fn new(
        context: &Context,
        plan: Plan,
        resumed: bool,
        folder: impl FnOnce(&Plan) -> Result<Folder, Failure>,
    ) -> Result<Session, Failure> {
        let begun = Instant::now();
        let known = manager::known(context.places)?;
        let catalog = catalog(context.places, plan.catalog.as_deref())?;
        let programs = catalog_places(context.places);
        let available = Available { catalog: &catalog, folders: &programs, known: &known };
        let (fitted, taken_out) = available.fit(&plan.studies, &plan.only);
        for words in left_out_sentences(&taken_out) {
            context.messages.warning(&words);
        }
        if fitted.iter().all(|study| study.steps.is_empty())
            && plan.studies.iter().any(|one| !one.steps.is_empty())
        {
            return Err(Failure::NothingToCompare("no step can be run here: see the warnings above".into()));
        }
        if let (false, Length::Seconds(seconds)) = (resumed, plan.length()) {
            let has_size = |program: &str, size: &str| available.has_size(program, size);
            affordable::check(&fitted, seconds, &has_size, context.messages)?;
        }
        let folder = folder(&plan)?;
        context.messages.note(&format!("everything is kept in {}", folder.path().display()));
        Ok(Session { plan, folder, known, catalog, programs, fitted, taken_out, begun, more_time: false })
    }

    /// The folder that keeps it.
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Runs its steps with this executable of heaptoll, built of that commit; each one's figures are kept as soon as they
    /// are known.
    pub fn run(&self, context: &Context, heaptoll: &Path, commit: Option<&str>) -> Outcome {
        let load = machine::load()[0];
        let available = Available { catalog: &self.catalog, folders: &self.programs, known: &self.known };
        let steps = Steps {
            folder: &self.folder,
            studies: &self.fitted,
            length: self.plan.length(),
            begun: self.begun,
            more_time: self.more_time,
            measure: Measure {
                heaptoll: Heaptoll { program: heaptoll, interrupt: context.interrupt },
                commit,
                known: &self.known,
                seed: self.plan.seed,
                catalog: self.plan.catalog.as_deref(),
            },
            has_size: &|program, size| available.has_size(program, size),
            messages: context.messages,
        };
        let ran = steps.run();
        let kin = available.kin_sentence(&self.plan.studies, &self.plan.only);
        let mut facts = facts::facts(&available, &self.fitted);
        facts.extend(commit.map(|commit| ("commit of heaptoll".to_owned(), commit.to_owned())));
        let results =
            conclusion::results(&self.plan, &self.fitted, (&self.taken_out, kin), &ran, facts, load);
        Outcome { results, interrupted: ran.interrupted, trouble: ran.trouble(), stopped: ran.stopped }
    }
}
