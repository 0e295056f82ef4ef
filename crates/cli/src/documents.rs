//! Output shared by the commands whose result is a document: print it, write it as HTML, Markdown and JSON where requested.

use std::path::PathBuf;

use clap::Args;
use heaptoll_report::ReportError;
use heaptoll_report::document::Document;
use heaptoll_report::terminal::render_document;
use serde::Serialize;

use crate::exit;
use crate::outputs::{self, Pages, text_written};
use crate::terminal;
use heaptoll_command::failure::Failure;
use heaptoll_command::labelled::Envelope;

/// Output files of a command whose result is a document.
#[derive(Debug, Args, Default)]
pub struct DocumentOutputs {
    #[command(flatten)]
    pub pages: Pages,
    /// Write the figures as JSON; `-` is standard output, instead of the tables
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

impl DocumentOutputs {
    /// Refuses files that could not be written at the end, before time is spent.
    ///
    /// # Errors
    /// A folder that does not exist or does not let us write.
    pub fn check(&self) -> Result<(), Failure> {
        outputs::all_writable(self.pages.paths().chain(self.json.as_deref()))
    }

    /// Prints the document and writes the files. `figures`, which serialise as an object, are written to the JSON
    /// after `schema`, its name and version (`heaptoll-stat/1`). Returns the command's exit status.
    ///
    /// # Errors
    /// Standard output is full.
    pub fn deliver(
        &self,
        document: &Document,
        schema: &str,
        figures: &impl Serialize,
    ) -> Result<u8, Failure> {
        self.deliver_with(document, document, schema, figures)
    }

    /// The same with a shorter document for the terminal.
    ///
    /// # Errors
    /// Standard output is full.
    pub fn deliver_with(
        &self,
        printed: &Document,
        document: &Document,
        schema: &str,
        figures: &impl Serialize,
    ) -> Result<u8, Failure> {
        let printed = terminal::print(&render_document(printed, &terminal::style()));
        let code = self.write(document, schema, figures);
        printed.map(|()| code)
    }

    /// The same where standard output is a program's: the document goes to standard error.
    pub fn deliver_to_errors(&self, document: &Document, schema: &str, figures: &impl Serialize) -> u8 {
        if !terminal::is_output_reserved() {
            terminal::print_to_errors(&render_document(document, &terminal::style_of(&std::io::stderr())));
        }
        self.write(document, schema, figures)
    }

    /// Writes the files alone. Returns the command's exit status.
    pub fn write(&self, document: &Document, schema: &str, figures: &impl Serialize) -> u8 {
        let pages = self.pages.write(document);
        let json = text_written(&self.json, || json(schema, figures));
        if pages && json { 0 } else { exit::TROUBLE }
    }
}

/// The JSON file of a command whose result is a list.
#[derive(Debug, Args, Default)]
pub struct ListOutput {
    /// Write the list as JSON; `-` is standard output, instead of the tables
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

impl ListOutput {
    /// Refuses a file that could not be written at the end.
    ///
    /// # Errors
    /// A folder that does not exist or does not let us write.
    pub fn check(&self) -> Result<(), Failure> {
        outputs::all_writable(self.json.iter().map(PathBuf::as_path))
    }

    /// Prints the tables, or the JSON in their place, and writes the file. Returns whether all was written.
    ///
    /// # Errors
    /// Standard output is full.
    pub fn deliver(&self, tables: &str, schema: &str, figures: &impl Serialize) -> Result<bool, Failure> {
        terminal::print(tables)?;
        Ok(text_written(&self.json, || json(schema, figures)))
    }
}

fn json(schema: &str, figures: &impl Serialize) -> Result<String, ReportError> {
    let text = serde_json::to_string_pretty(&Envelope::new(schema, figures));
    text.map(|text| text + "\n")
        .map_err(|error| ReportError::Encode { form: "JSON", detail: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Figures {
        objects: u64,
    }

    fn document() -> Document {
        Document { title: "gawk".into(), ..Document::default() }
    }

    #[test]
    fn files_hold_the_figures_and_their_schema() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| Some(folder.path().join(name));
        let pages = Pages { html: path("a.html"), markdown: path("a.md") };
        let outputs = DocumentOutputs { pages, json: path("a.json") };
        assert!(outputs.check().is_ok());
        assert_eq!(outputs.deliver(&document(), "heaptoll-stat/1", &Figures { objects: 7 }).ok(), Some(0));
        let text = std::fs::read_to_string(folder.path().join("a.json")).expect("it is there");
        let value: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
        assert_eq!(value["schema"], "heaptoll-stat/1");
        assert_eq!(value["objects"], 7);
        assert!(folder.path().join("a.html").is_file());
        let markdown = std::fs::read_to_string(folder.path().join("a.md")).expect("it is there");
        assert_eq!(markdown, "## gawk\n");
    }

    #[test]
    fn a_file_that_cannot_be_written_is_refused_before() {
        let pages = Pages { html: Some("/nowhere/a.html".into()), ..Pages::default() };
        let outputs = DocumentOutputs { pages, json: None };
        assert!(outputs.check().is_err_and(|failure| failure.to_string().contains("/nowhere/a.html")));
        assert_eq!(outputs.deliver(&document(), "s", &Figures { objects: 1 }).ok(), Some(exit::TROUBLE));
    }
}
