//! The files that a user can request: HTML, JSON, CSV, Parquet. Checked before anything is measured, written at the
//! end; one that fails does not keep the others from being written.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use heaptoll_experiment::comparison::Comparison;
use heaptoll_experiment::experiment::Experiment;
use heaptoll_report::{ReportError, csv, files, html, json, parquet};

use crate::terminal;
use heaptoll_experiments::failure::Failure;
use heaptoll_experiments::writable;

/// Output files.
#[derive(Debug, Args, Default)]
pub struct Outputs {
    /// Write a self-contained HTML page
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub html: Option<PathBuf>,
    /// Write everything as JSON (docs/reference/json-schema.md)
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub json: Option<PathBuf>,
    /// Write one line an invocation as CSV
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub csv: Option<PathBuf>,
    /// Write one row an invocation as Parquet
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub parquet: Option<PathBuf>,
}

impl Outputs {
    fn paths(&self) -> impl Iterator<Item = &Path> {
        [&self.html, &self.json, &self.csv, &self.parquet].into_iter().flatten().map(PathBuf::as_path)
    }

    /// Makes the paths absolute, so that a change of the current folder does not move the files.
    pub fn make_absolute(&mut self) {
        for path in [&mut self.html, &mut self.json, &mut self.csv, &mut self.parquet].into_iter().flatten() {
            if let Ok(absolute) = std::path::absolute(&*path) {
                *path = absolute;
            }
        }
    }

    /// Refuses files that could not be written at the end, before time is spent on measuring.
    ///
    /// # Errors
    /// A folder that does not exist or does not let us write; a path that is a folder.
    pub fn check(&self) -> Result<(), Failure> {
        for path in self.paths() {
            writable::check(path)
                .map_err(|why| Failure::Usage(format!("cannot write {}: {why}", path.display())))?;
        }
        Ok(())
    }

    /// Writes every requested file; returns whether all were written.
    pub fn write(&self, experiment: &Experiment, comparison: &Comparison) -> bool {
        let mut all = true;
        let mut one = |path: &Option<PathBuf>, write: &dyn Fn(&mut dyn Write) -> Result<(), ReportError>| {
            let Some(path) = path else { return };
            match files::write_atomically(path, |out| write(out)) {
                Ok(()) => terminal::note(&format!("wrote {}", path.display())),
                Err(error) => {
                    all = false;
                    terminal::error(&error.to_string());
                }
            }
        };
        one(&self.html, &|out| {
            let page = html::render(experiment, comparison)?;
            out.write_all(page.as_bytes()).map_err(|source| ReportError::Stream { form: "HTML", source })
        });
        one(&self.json, &|out| json::write(experiment, comparison, out));
        one(&self.csv, &|out| csv::write(experiment, out));
        one(&self.parquet, &|out| parquet::write(experiment, out));
        all
    }
}

/// The arguments heaptoll was started with, as text.
pub fn own_arguments() -> Vec<String> {
    std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect()
}
