//! The files that a user can request: HTML, Markdown, JSON, CSV, Parquet. One that fails does not
//! keep the others from being written.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use heaptoll_experiment::comparison::Comparison;
use heaptoll_experiment::experiment::Experiment;
use heaptoll_report::document::Document;
use heaptoll_report::flat_table::FlatTable;
#[cfg(feature = "full")]
use heaptoll_report::parquet;
use heaptoll_report::{ReportError, csv, files, html, json, markdown};

use crate::written_files::TextFile;
use crate::{standard_output, terminal};
use heaptoll_command::failure::Failure;

/// Files that show a document.
#[derive(Debug, Clone, Args, Default)]
pub struct Pages {
    /// Write a self-contained HTML page; `-` is standard output, instead of the tables
    #[arg(long, value_name = "FILE")]
    pub html: Option<TextFile>,
    /// Write the sentences and tables as Markdown, for a pull request; `-` is standard output, instead of the tables
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<TextFile>,
}

impl Pages {
    /// Writes every requested file; returns whether all were written.
    pub fn write(&self, document: &Document) -> bool {
        let page = text_written(&self.html, || html::document::render(document));
        let text = text_written(&self.markdown, || Ok(markdown::render(document)));
        page && text
    }
}

/// Writes a file where one is requested, and prints a note or the error; `-` is standard output. Returns whether nothing
/// failed.
pub fn written(
    path: &Option<impl AsRef<Path>>,
    write: impl FnOnce(&mut (dyn Write + Send)) -> Result<(), ReportError>,
) -> bool {
    let Some(path) = path.as_ref().map(AsRef::as_ref) else { return true };
    if !standard_output::is_meant(path) {
        return reported(path, files::write_atomically(path, write));
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
pub fn text_written(path: &Option<TextFile>, text: impl FnOnce() -> Result<String, ReportError>) -> bool {
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
#[derive(Debug, Clone, Args, Default)]
pub struct Outputs {
    #[command(flatten)]
    pub pages: Pages,
    /// Write everything as JSON (docs/reference/json-schema.md); `-` is standard output, instead of the tables
    #[arg(long, value_name = "FILE")]
    pub json: Option<TextFile>,
    /// Write CSV, one line per run; `-` is standard output, instead of the tables
    #[arg(long, value_name = "FILE")]
    pub csv: Option<TextFile>,
    /// Write Parquet, one row per run
    #[arg(long, value_name = "FILE")]
    pub parquet: Option<PathBuf>,
}

impl Outputs {
    /// Whether a file with all rows is requested.
    pub fn have_figures(&self) -> bool {
        self.json.is_some() || self.csv.is_some() || self.parquet.is_some()
    }

    /// The same with absolute paths, so that a change of the current folder does not move the files.
    pub fn absolute(&self) -> Outputs {
        let mut all = self.clone();
        let texts = [&mut all.pages.html, &mut all.pages.markdown, &mut all.json, &mut all.csv];
        let paths = texts.into_iter().flatten().map(|file| &mut file.0).chain(&mut all.parquet);
        for path in paths.filter(|path| !standard_output::is_meant(path)) {
            if let Ok(absolute) = std::path::absolute(&*path) {
                *path = absolute;
            }
        }
        all
    }

    /// Writes every requested file; returns whether all were written. `document` shows the experiment.
    pub fn write(&self, experiment: &Experiment, comparison: &Comparison, document: &Document) -> bool {
        let pages = self.pages.write(document);
        let json = written(&self.json, |out| json::write(experiment, comparison, out));
        let rows = self.write_rows(|| FlatTable::of_runs(experiment));
        pages && json && rows
    }

    /// Writes the requested files of rows; returns whether all were written.
    pub fn write_rows<'a>(&self, table: impl Fn() -> FlatTable<'a>) -> bool {
        let csv = written(&self.csv, |out| csv::write(table(), out));
        #[cfg(feature = "full")]
        let parquet = written(&self.parquet, |out| parquet::write(table(), out));
        #[cfg(not(feature = "full"))]
        let parquet = self.parquet.is_none();
        csv && parquet
    }
}

/// The command line that heaptoll was started by, as text.
pub fn own_arguments() -> Vec<String> {
    let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    std::iter::once("heaptoll".to_owned()).chain(words).collect()
}
