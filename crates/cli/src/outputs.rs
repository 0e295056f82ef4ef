//! The files that a user can request: HTML, Markdown, JSON, CSV, Parquet. Checked before anything is measured, written at the
//! end; one that fails does not keep the others from being written.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use heaptoll_experiment::comparison::Comparison;
use heaptoll_experiment::experiment::Experiment;
use heaptoll_report::document::Document;
#[cfg(feature = "full")]
use heaptoll_report::parquet;
use heaptoll_report::{ReportError, csv, files, html, json, markdown};

use crate::{full, standard_output, terminal};
use heaptoll_command::failure::Failure;
use heaptoll_command::writable;

/// Files that show a document.
#[derive(Debug, Args, Default)]
pub struct Pages {
    /// Write a self-contained HTML page; `-` is standard output, instead of the tables
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write the sentences and tables as Markdown, for a pull request; `-` is standard output, instead of the tables
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
}

impl Pages {
    /// Those that are requested.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        [&self.html, &self.markdown].into_iter().flatten().map(PathBuf::as_path)
    }

    /// Writes every requested file; returns whether all were written.
    pub fn write(&self, document: &Document) -> bool {
        let page = text_written(&self.html, || html::document::render(document));
        let text = text_written(&self.markdown, || Ok(markdown::render(document)));
        page && text
    }
}

/// Refuses files that could not be written at the end.
///
/// # Errors
/// A folder that does not exist or does not let us write; a path that is a folder.
pub fn all_writable<'a>(paths: impl Iterator<Item = &'a Path>) -> Result<(), Failure> {
    paths.filter(|path| !standard_output::is_meant(path)).try_for_each(|path| {
        writable::check(path).map_err(|why| Failure::Usage(format!("cannot write {}: {why}", path.display())))
    })
}

/// Writes a file where one is requested, and prints a note or the error; `-` is standard output. Returns whether nothing
/// failed.
pub fn written(
    path: &Option<PathBuf>,
    write: impl FnOnce(&mut dyn Write) -> Result<(), ReportError>,
) -> bool {
    let Some(path) = path else { return true };
    if !standard_output::is_meant(path) {
        return reported(path, files::write_atomically(path, |out| write(out)));
    }
    let mut bytes = Vec::new();
    let printed = write(&mut bytes)
        .map_err(Failure::from)
        .and_then(|()| terminal::print_file(&String::from_utf8_lossy(&bytes)));
    if let Err(failure) = &printed {
        terminal::error(&failure.to_string());
    }
    printed.is_ok()
}

/// The same of a text.
pub fn text_written(path: &Option<PathBuf>, text: impl FnOnce() -> Result<String, ReportError>) -> bool {
    written(path, |out| {
        out.write_all(text()?.as_bytes()).map_err(|source| ReportError::Stream { form: "file", source })
    })
}

/// Prints a note of a file that was written, or the error; returns whether it was written.
fn reported(path: &Path, result: Result<(), ReportError>) -> bool {
    match &result {
        Ok(()) => terminal::note(&format!("wrote {}", path.display())),
        Err(error) => terminal::error(&error.to_string()),
    }
    result.is_ok()
}

/// Output files of an experiment.
#[derive(Debug, Args, Default)]
pub struct Outputs {
    #[command(flatten)]
    pub pages: Pages,
    /// Write everything as JSON (docs/reference/json-schema.md); `-` is standard output, instead of the tables
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write CSV, one line per run; `-` is standard output, instead of the tables
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write Parquet, one row per run
    #[arg(long, value_name = "FILE")]
    pub parquet: Option<PathBuf>,
}

impl Outputs {
    fn paths(&self) -> impl Iterator<Item = &Path> {
        self.pages
            .paths()
            .chain([&self.json, &self.csv, &self.parquet].into_iter().flatten().map(PathBuf::as_path))
    }

    /// Whether a file with all rows is requested.
    pub fn have_figures(&self) -> bool {
        self.json.is_some() || self.csv.is_some() || self.parquet.is_some()
    }

    /// Makes the paths absolute, so that a change of the current folder does not move the files.
    pub fn make_absolute(&mut self) {
        let pages = &mut self.pages;
        let all = [&mut pages.html, &mut pages.markdown, &mut self.json, &mut self.csv, &mut self.parquet];
        for path in all.into_iter().flatten().filter(|path| !standard_output::is_meant(path)) {
            if let Ok(absolute) = std::path::absolute(&*path) {
                *path = absolute;
            }
        }
    }

    /// Refuses files that could not be written at the end, before time is spent on measuring.
    ///
    /// # Errors
    /// A folder that does not exist or does not let us write; a path that is a folder; a form that this build leaves out.
    pub fn check(&self) -> Result<(), Failure> {
        full::required("--parquet", self.parquet.is_some())?;
        all_writable(self.paths())
    }

    /// Writes every requested file; returns whether all were written. `document` shows the experiment.
    pub fn write(&self, experiment: &Experiment, comparison: &Comparison, document: &Document) -> bool {
        let pages = self.pages.write(document);
        let json = written(&self.json, |out| json::write(experiment, comparison, out));
        let csv = written(&self.csv, |out| csv::write(experiment, out));
        #[cfg(feature = "full")]
        let parquet = written(&self.parquet, |out| parquet::write(experiment, out));
        #[cfg(not(feature = "full"))]
        let parquet = self.parquet.is_none();
        pages && json && csv && parquet
    }
}

/// The arguments heaptoll was started with, as text.
pub fn own_arguments() -> Vec<String> {
    std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect()
}
