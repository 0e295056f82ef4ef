//! Output shared by the commands whose result is a document: print it, write it as HTML, Markdown and JSON where requested.

use clap::Args;
use heaptoll_report::ReportError;
use heaptoll_report::document::Document;
use heaptoll_report::terminal::render_document;

use crate::exit;
use crate::outputs::{Pages, text_written};
use crate::terminal;
use crate::written_files::TextFile;
use heaptoll_command::failure::Failure;
use heaptoll_command::labelled::{Envelope, Labelled};

/// Output files of a command whose result is a document.
#[derive(Debug, Args, Default)]
pub struct DocumentOutputs {
    #[command(flatten)]
    pub pages: Pages,
    /// Write the figures as JSON; `-` is standard output, instead of the tables
    #[arg(long, value_name = "FILE")]
    pub json: Option<TextFile>,
}

impl DocumentOutputs {
    /// Prints the document and writes the files. `figures`, which serialise as an object, are written to the JSON
    /// after their schema. Returns the command's exit status.
    ///
    /// # Errors
    /// Standard output is full.
    pub fn deliver(&self, document: &Document, figures: &impl Labelled) -> Result<u8, Failure> {
        self.deliver_with(document, document, figures)
    }

    /// The same with a shorter document for the terminal.
    ///
    /// # Errors
    /// Standard output is full.
    pub fn deliver_with(
        &self,
        printed: &Document,
        document: &Document,
        figures: &impl Labelled,
    ) -> Result<u8, Failure> {
        let printed = terminal::print(&render_document(printed, &terminal::style()));
        let code = self.write(document, figures);
        printed.map(|()| code)
    }

    /// The same where standard output is a program's: the document goes to standard error.
    pub fn deliver_to_errors(&self, document: &Document, figures: &impl Labelled) -> u8 {
        if !terminal::is_output_reserved() {
            terminal::print_to_errors(&render_document(document, &terminal::style_of(&std::io::stderr())));
        }
        self.write(document, figures)
    }

    /// Writes the files alone. Returns the command's exit status.
    pub fn write(&self, document: &Document, figures: &impl Labelled) -> u8 {
        let pages = self.pages.write(document);
        let json = text_written(&self.json, || json(figures));
        if pages && json { 0 } else { exit::TROUBLE }
    }
}

/// The JSON file of a command whose result is a list.
#[derive(Debug, Args, Default)]
pub struct ListOutput {
    /// Write the list as JSON; `-` is standard output, instead of the tables
    #[arg(long, value_name = "FILE")]
    pub json: Option<TextFile>,
}

impl ListOutput {
    /// Prints the tables, or the JSON in their place, and writes the file. Returns whether all was written.
    ///
    /// # Errors
    /// Standard output is full.
    pub fn deliver(&self, tables: &str, figures: &impl Labelled) -> Result<bool, Failure> {
        terminal::print(tables)?;
        Ok(text_written(&self.json, || json(figures)))
    }
}

fn json(figures: &impl Labelled) -> Result<String, ReportError> {
    let text = serde_json::to_string_pretty(&Envelope::new(figures));
    text.map(|text| text + "\n")
        .map_err(|error| ReportError::Encode { form: "JSON", detail: error.to_string() })
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    use super::*;

    #[derive(Serialize, Deserialize)]
    struct Figures {
        objects: u64,
    }

    impl Labelled for Figures {
        const SCHEMA: &'static str = "heaptoll-stat/1";
    }

    fn document() -> Document {
        Document { title: "gawk".into(), ..Document::default() }
    }

    #[test]
    fn files_hold_the_figures_and_their_schema() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| Some(TextFile(folder.path().join(name)));
        let pages = Pages { html: path("a.html"), markdown: path("a.md") };
        let outputs = DocumentOutputs { pages, json: path("a.json") };
        assert_eq!(outputs.deliver(&document(), &Figures { objects: 7 }).ok(), Some(0));
        let text = std::fs::read_to_string(folder.path().join("a.json")).expect("it is there");
        let value: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
        assert_eq!(value["schema"], "heaptoll-stat/1");
        assert_eq!(value["objects"], 7);
        assert!(folder.path().join("a.html").is_file());
        let markdown = std::fs::read_to_string(folder.path().join("a.md")).expect("it is there");
        assert_eq!(markdown, "## gawk\n");
    }

    #[test]
    fn a_file_that_cannot_be_written_is_trouble() {
        let pages = Pages { html: Some(TextFile("/nowhere/a.html".into())), ..Pages::default() };
        let outputs = DocumentOutputs { pages, json: None };
        assert_eq!(outputs.deliver(&document(), &Figures { objects: 1 }).ok(), Some(exit::TROUBLE));
    }
}
