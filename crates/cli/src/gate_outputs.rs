//! The files that a gate writes for other tools: JUnit, Bencher, github-action-benchmark, the summary of a step on GitHub,
//! and the history by commit. Checked before anything is measured; one that fails does not keep the others from being
//! written.

use std::path::{Path, PathBuf};

use clap::Args;
use heaptoll_command::failure::Failure;
use heaptoll_gate::figures::{Figures, Side};
use heaptoll_gate::history::{self, Commit};
#[cfg(feature = "full")]
use heaptoll_gate::junit;
use heaptoll_gate::{action_benchmark, bencher, step_summary};
use heaptoll_report::document::Document;

use crate::outputs::{all_writable, text_written};
use crate::{full, terminal};

/// Files for other tools.
#[derive(Debug, Args, Default)]
pub struct GateOutputs {
    /// Write the verdicts as JUnit XML, one test case per metric and program
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Write the new build's figures in Bencher's metric format (`bencher run --adapter json --file FILE`)
    #[arg(long, value_name = "FILE")]
    pub bencher: Option<PathBuf>,
    /// Write the new build's figures for github-action-benchmark (`tool: customSmallerIsBetter`)
    #[arg(long, value_name = "FILE")]
    pub github_benchmark: Option<PathBuf>,
    /// Add a row per program, side and metric to this SQLite file, with the commit; `heaptoll report --history DB`
    /// draws them
    #[arg(long, value_name = "DB")]
    pub history: Option<PathBuf>,
    /// For --history: the commit of the base; not needed with --base-ref
    #[arg(long, value_name = "REV", requires = "history")]
    pub base_commit: Option<String>,
    /// For --history: the commit of the new build [default: the one checked out here]
    #[arg(long, value_name = "REV", requires = "history")]
    pub new_commit: Option<String>,
}

impl GateOutputs {
    /// Refuses files that could not be written at the end, before time is spent.
    ///
    /// # Errors
    /// A folder that does not exist or does not let us write; a history of another kind or of a later heaptoll.
    pub fn check(&self) -> Result<(), Failure> {
        full::required("--junit", self.junit.is_some())?;
        let paths = [&self.junit, &self.bencher, &self.github_benchmark, &self.history];
        all_writable(paths.into_iter().flatten().map(PathBuf::as_path))?;
        match &self.history {
            Some(path) => history::check(path).map_err(|error| Failure::Refused(Box::new(error))),
            None => Ok(()),
        }
    }

    /// Writes every requested file, and the summary of the step where GitHub's runner names its file; returns whether
    /// all requested ones were written. `is_strict`: what could not be decided is an error.
    #[cfg_attr(not(feature = "full"), expect(unused_variables, reason = "JUnit alone takes all"))]
    pub fn write(&self, figures: &Figures, document: &Document, is_strict: bool) -> bool {
        #[cfg(feature = "full")]
        let junit = text_written(&self.junit, || junit::xml(figures, is_strict));
        #[cfg(not(feature = "full"))]
        let junit = self.junit.is_none();
        let bencher = text_written(&self.bencher, || bencher::json(figures));
        let benchmark = text_written(&self.github_benchmark, || action_benchmark::json(figures));
        summarise(document);
        self.add_to_history(figures) && junit && bencher && benchmark
    }

    fn add_to_history(&self, figures: &Figures) -> bool {
        let Some(path) = &self.history else { return true };
        let folder = Path::new(".");
        let revision = |name: &Option<String>| {
            let name = name.as_ref()?;
            let commit = Commit::of_revision(folder, name);
            if commit.is_none() {
                terminal::warning(&format!(
                    "git knows no commit {name} here: the history stores only the name"
                ));
            }
            Some(commit.unwrap_or_else(|| Commit { hash: name.clone(), ..Commit::default() }))
        };
        let built = |side: &Side| Some(Commit::of_hash(folder, side.commit.as_ref()?, side.dirty));
        let (base, new) = (revision(&self.base_commit), revision(&self.new_commit));
        let here = Commit::of_folder(folder);
        let commits = figures.programs.iter().map(|program| {
            let new = new.clone().or_else(|| built(&program.new)).or_else(|| here.clone());
            [base.clone().or_else(|| built(&program.base)), new]
        });
        let commits: Vec<[Option<Commit>; 2]> = commits.collect();
        if commits.iter().any(|[_, new]| new.is_none()) {
            terminal::note("the commit of the new build is unknown: name it with --new-commit");
        }
        match history::append(path, figures, &commits) {
            Ok(()) => terminal::note(&format!("added to {}", path.display())),
            Err(error) => {
                terminal::error(&error.to_string());
                return false;
            }
        }
        true
    }
}

/// Appends to the summary of the step; no failure, since the runner and not the user names the file.
fn summarise(document: &Document) {
    let Some(path) = std::env::var_os(step_summary::VARIABLE).filter(|path| !path.is_empty()) else { return };
    if let Err(error) = step_summary::append(Path::new(&path), document) {
        terminal::warning(&format!(
            "cannot write the summary of the step ({}): {error}",
            step_summary::VARIABLE
        ));
    }
}
