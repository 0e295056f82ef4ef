//! The files that a gate writes for other tools: JUnit, Bencher, github-action-benchmark, the summary of a step on GitHub.
//! One that fails does not keep the others from being written.

use std::path::Path;

use clap::Args;
use heaptoll_gate::figures::Figures;
use heaptoll_gate::{action_benchmark, bencher, junit, step_summary};
use heaptoll_report::document::Document;

use crate::outputs::text_written;
use crate::terminal;
use crate::written_files::TextFile;

/// Files for other tools.
#[derive(Debug, Args, Default)]
pub struct GateOutputs {
    /// Write the verdicts as JUnit XML, one test case per metric and program
    #[arg(long, value_name = "FILE")]
    pub junit: Option<TextFile>,
    /// Write the new build's figures in Bencher's metric format (`bencher run --adapter json --file FILE`)
    #[arg(long, value_name = "FILE")]
    pub bencher: Option<TextFile>,
    /// Write the new build's figures for github-action-benchmark (`tool: customSmallerIsBetter`)
    #[arg(long, value_name = "FILE")]
    pub github_benchmark: Option<TextFile>,
}

impl GateOutputs {
    /// Writes every requested file, and the summary of the step where GitHub's runner names its file; returns whether
    /// all requested ones were written. `is_strict`: what could not be decided is an error.
    pub fn write(&self, figures: &Figures, document: &Document, is_strict: bool) -> bool {
        let junit = text_written(&self.junit, || junit::xml(figures, is_strict));
        let bencher = text_written(&self.bencher, || bencher::json(figures));
        let benchmark = text_written(&self.github_benchmark, || action_benchmark::json(figures));
        summarise(document);
        junit && bencher && benchmark
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
