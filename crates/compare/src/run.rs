//! A program under several managers, compared: what each costs in time and memory.

mod begin;
#[cfg_attr(not(feature = "full"), path = "run/no_exact.rs")]
mod exact;
mod goal;
mod heaps;
mod request;
mod vary;

use std::path::Path;

use heaptoll_experiment::compare::judge_outputs;
use heaptoll_experiment::experiment::Experiment;
use heaptoll_experiment::runner::Ending;
use heaptoll_experiment::store::Store;

use heaptoll_command::context::Context;
use heaptoll_command::failure::Failure;
use heaptoll_runs::preparation::resume::{come_back, go_where_it_began, resume};

pub use begin::describe;
pub use heaps::FACTORS;
pub use request::RunRequest;
pub use vary::{Vary, VaryError};

/// An experiment that was begun and is not measured yet, or not wholly.
pub struct Run {
    /// Its description and rows.
    pub experiment: Experiment,
    /// The file that keeps it.
    pub store: Store,
    tracer: Option<exact::Tracer>,
    by_program: bool,
}

impl Run {
    /// Begins an experiment: its programs and managers are found and proved, its file is made.
    ///
    /// # Errors
    /// The request cannot be carried out, or Ctrl-C.
    pub fn begin(request: &RunRequest, context: &Context) -> Result<Run, Failure> {
        // What cannot be counted is refused before anything is measured.
        let tracer = request.protocol.exact.then(|| exact::tracer(context.places)).transpose()?;
        let (store, experiment) = begin::begin(request, context)?;
        Run { experiment, store, tracer, by_program: request.by_program }.with_exact_counts(context)
    }

    /// Opens an experiment to go on with, in the folder in which it was begun; with exact counts where they are
    /// requested now or were then.
    ///
    /// # Errors
    /// The file cannot be used, or what it needs is gone.
    pub fn resume(
        path: &Path,
        repetitions: Option<u32>,
        exact: bool,
        context: &Context,
    ) -> Result<Run, Failure> {
        let tracer = exact.then(|| exact::tracer(context.places)).transpose()?;
        let (store, experiment) = resume(path, None, repetitions, context.messages)?;
        let here = std::env::current_dir().ok();
        go_where_it_began(&experiment)?;
        let found = heaps::search(store, experiment, context);
        // The laboratory may take the command over, whose files were named from there.
        if let Err(Failure::Laboratory(_)) = &found {
            come_back(here)?;
        }
        let (store, experiment) = found?;
        Run { experiment, store, tracer, by_program: false }.with_exact_counts(context)
    }

    fn with_exact_counts(mut self, context: &Context) -> Result<Run, Failure> {
        if self.tracer.is_none() && self.experiment.settings.exact {
            self.tracer = Some(exact::tracer(context.places)?);
        }
        if self.tracer.is_some() {
            exact::add(&mut self.experiment, &self.store)?;
        }
        Ok(self)
    }

    /// Makes the runs that are lacking, and judges the outputs of all. What was measured is in the experiment and its
    /// file, however it ends.
    ///
    /// # Errors
    /// Heaptoll's own machinery failed, or a row cannot be stored.
    pub fn measure(&mut self, context: &Context) -> Result<Ending, Failure> {
        let Run { experiment, store, tracer, by_program } = self;
        let mut ended = goal::measure(experiment, store, *by_program, context).map_err(Failure::from);
        if let (Ok(Ending::Complete), Some(tracer)) = (&ended, tracer) {
            ended = exact::count(experiment, store, tracer, context);
        }
        judge_outputs(experiment);
        ended
    }
}
