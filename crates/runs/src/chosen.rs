//! Studies whose runs are chosen one by one, each by what those before it found: how small a heap may be, how much a
//! program allocates. Each run is a row on disk before the next begins, and a study that goes on makes no run twice: what
//! is chosen follows from the rows alone.

use std::path::{Path, PathBuf};

use heaptoll_experiment::experiment::{Experiment, ProgramInfo, Protocol, StackInfo};
use heaptoll_experiment::manager::Manager;
use heaptoll_experiment::observation::{Observation, Outcome, Phase};
use heaptoll_experiment::one_run::{attachment, execute_one};
use heaptoll_experiment::plan::Cell;
use heaptoll_experiment::runner::Around;
use heaptoll_experiment::store::Store;
use heaptoll_preflight::killed_by;
use heaptoll_report::format::shell_path;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::findings::Findings;
use crate::measurement;
use crate::preparation::beginning::{self, Beginning};
use crate::preparation::resume::{come_back, go_where_it_began, resume};
use crate::studied::{Request, Visited, visit};
use heaptoll_command::context::Context;
use heaptoll_command::failure::Failure;

/// The rows of an experiment, and the runs that it lacks.
pub struct Rows<'a> {
    /// Its description and rows.
    pub experiment: &'a mut Experiment,
    /// The file that keeps it.
    pub store: &'a mut Store,
    /// The installation, and Ctrl-C.
    pub context: &'a Context<'a>,
}

impl Rows<'_> {
    /// The stored row of a run. Where there is none, makes the run and returns its row.
    ///
    /// # Errors
    /// Ctrl-C, or heaptoll's own machinery failed; the program's failures are in the row.
    pub fn row(
        &mut self,
        stack: &StackInfo,
        phase: Phase,
        repetition: u32,
        around: &mut dyn Around,
    ) -> Result<Observation, Failure> {
        let is_it = |row: &&Observation| {
            (row.phase, row.repetition) == (phase, repetition) && row.outcome != Outcome::Interrupted
        };
        if let Some(row) = self.experiment.rows(&stack.program, &stack.name).find(is_it) {
            return Ok(row.clone());
        }
        if self.context.interrupt.is_set() {
            return Err(Failure::Interrupted);
        }
        // What is only tried is no stack of the experiment: its stacks are compared.
        self.experiment.stacks.push(stack.clone());
        let cell = Cell { stack: self.experiment.stacks.len() - 1, phase, repetition, env_padding: 0 };
        let runs = measurement::runs(self.context);
        let made = execute_one(self.experiment, &cell, self.store, &runs, around);
        self.experiment.stacks.pop();
        made?.ok_or(Failure::Interrupted)
    }

    /// What is kept with a row; `None` where nothing is.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn kept(&self, row: &Observation) -> Result<Option<Vec<u8>>, Failure> {
        Ok(self.store.attached_bytes(&attachment(row))?)
    }

    /// Whether a program has no rows yet.
    pub fn is_new(&self, program: &str) -> bool {
        self.experiment.observations.iter().all(|row| row.program != program)
    }

    /// What the preflight proved of a stack on a program, or why it was refused.
    pub fn proved(&self, program: &str, stack: &str) -> Result<StackInfo, String> {
        self.experiment.stack(program, stack).cloned().ok_or_else(|| {
            let refused = self.experiment.refused.iter();
            let mut of_it = refused.filter(|(of, name, _)| of == program && name == stack);
            of_it.next().map_or_else(|| "it was not proved".into(), |(.., why)| why.clone())
        })
    }

    /// Makes a stack one of the experiment, unless it is one.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add(&mut self, stack: &StackInfo) -> Result<(), Failure> {
        if self.experiment.stack(&stack.program, &stack.name).is_none() {
            self.experiment.stacks.push(stack.clone());
            self.store.describe(self.experiment)?;
        }
        Ok(())
    }
}

/// How a run ended that does not count, with the last line that it wrote to standard error.
pub fn ending(row: &Observation) -> String {
    let how = match &row.outcome {
        Outcome::Signal(number) => killed_by(*number),
        Outcome::ServeFailed(why) => return why.clone(),
        Outcome::Timeout(_) | Outcome::NotStarted(_) => return row.outcome.to_string(),
        other => other.to_string(),
    };
    match row.stderr_tail.lines().rev().find(|line| !line.trim().is_empty()) {
        Some(last_line) => format!("{how}: {}", last_line.trim()),
        None => how,
    }
}

/// What such a study found.
pub struct ChosenFindings<F> {
    /// The figures, their document, and how the runs ended.
    pub findings: Findings<F>,
    /// The file that keeps the rows.
    pub path: PathBuf,
}

/// A study under way; `R` is what was requested of it but for programs and protocol.
pub struct Study<R> {
    /// What was requested.
    pub requested: R,
    name: String,
    experiment: Experiment,
    store: Store,
    /// Where the command that goes on with it was given.
    here: Option<PathBuf>,
}

impl<R: Serialize + DeserializeOwned> Study<R> {
    /// Begins one: these managers are proved on each of these programs, the baseline first, and its file is made.
    ///
    /// # Errors
    /// The request cannot be carried out, or Ctrl-C.
    pub fn begin(
        name: &str,
        requested: R,
        (programs, managers): (Vec<ProgramInfo>, &[Manager]),
        request: &Request,
        context: &Context,
    ) -> Result<Study<R>, Failure> {
        let protocol = request.protocol.clone();
        let beginning = Beginning { programs, managers, protocol, ..Beginning::default() };
        let mut experiment = beginning::begun(&beginning)?;
        beginning::prove(&mut experiment, &beginning, context)?;
        let store = beginning::keep(&mut experiment, request.db.as_deref(), context)?;
        store.attach_value(name, &requested)?;
        context.messages.note(&format!("every row is kept in {}", store.path().display()));
        Ok(Study { requested, name: name.into(), experiment, store, here: None })
    }

    /// Goes on with one in the folder in which it began, in as many repetitions as are named, if they are more.
    ///
    /// # Errors
    /// The file cannot be used, or is of something else.
    pub fn resume(
        name: &str,
        path: &Path,
        repetitions: Option<u32>,
        context: &Context,
    ) -> Result<Study<R>, Failure> {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.into());
        if Store::read_attached(&path, name)?.is_none() {
            return Err(Failure::Usage(format!(
                "{} is not a {name} study. Show it with `heaptoll report`",
                path.display()
            )));
        }
        let (store, experiment) = resume(&path, Some(name), repetitions, context.messages)?;
        let requested = store.attached_value(name)?.ok_or_else(|| store.damaged(&format!("no `{name}`")))?;
        let here = std::env::current_dir().ok();
        go_where_it_began(&experiment)?;
        Ok(Study { requested, name: name.into(), experiment, store, here })
    }

    /// How its runs are made.
    pub fn protocol(&self) -> &Protocol {
        &self.experiment.settings
    }

    /// Its programs.
    pub fn programs(&self) -> usize {
        self.experiment.programs.len()
    }

    /// Its file.
    pub fn path(&self) -> PathBuf {
        self.store.path().into()
    }

    /// Measures one program after the other, as [`visit`] does, and comes back from the folder in which the study began. A
    /// program that glibc itself does not serve is reported, and has failed.
    ///
    /// # Errors
    /// Those of [`visit`]; the file cannot be written.
    pub fn measure<P>(
        &mut self,
        nothing: &str,
        context: &Context,
        mut measure: impl FnMut(&mut Rows, &ProgramInfo, &mut Vec<P>) -> Result<(), Failure>,
    ) -> Result<Visited<P>, Failure> {
        let Study { experiment, store, here, .. } = self;
        let mut failed = false;
        for (program, _, why) in experiment.refused.iter().filter(|one| one.1 == experiment.baseline) {
            context.messages.warning(&format!("{program} is left out: {why}"));
            failed = true;
        }
        let programs = experiment.programs.clone();
        let mut rows = Rows { experiment, store, context };
        let visited = visit(&programs, context.messages, nothing, |program, measured| {
            measure(&mut rows, program, measured)
        });
        let came_back = come_back(here.take());
        if let Err(Failure::Interrupted) = &visited {
            context.messages.note(&format!(
                "no figures yet, but every run is kept; go on with: heaptoll lab {} --resume {}",
                self.name,
                shell_path(self.store.path())
            ));
        }
        let mut visited = visited?;
        visited.failed |= failed;
        if visited.complete {
            self.experiment.complete = true;
            self.store.describe(&self.experiment)?;
        }
        came_back?;
        Ok(visited)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ending_has_its_last_line_where_the_program_wrote_one() {
        let row = |outcome: Outcome| Observation {
            outcome,
            stderr_tail: "first\n last \n\n".into(),
            ..Observation::default()
        };
        assert_eq!(ending(&row(Outcome::Exit(3))), "exit status 3: last");
        assert_eq!(ending(&row(Outcome::Timeout(60.0))), "over the time limit of 60 s");
        assert_eq!(ending(&row(Outcome::ServeFailed("it was loaded".into()))), "it was loaded");
        let silent = Observation { outcome: Outcome::Signal(9), ..Observation::default() };
        assert_eq!(ending(&silent), "killed by signal 9");
    }
}
