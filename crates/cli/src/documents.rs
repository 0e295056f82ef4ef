//! What the commands that ask a trace have in common: print the document, write it as HTML and JSON where asked.

use std::path::PathBuf;

use clap::Args;
use heaptoll_report::document::Document;
use serde::Serialize;

use crate::failure::Failure;

/// Output files of a command that asks a trace.
#[derive(Debug, Args, Default)]
pub struct DocumentOutputs {
    /// Write a self-contained HTML page
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub html: Option<PathBuf>,
    /// Write the figures as JSON (docs/trace-json.md); `-` is standard output, instead of the tables
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub json: Option<PathBuf>,
}

impl DocumentOutputs {
    /// Refuses files that could not be written at the end, before time is spent.
    ///
    /// # Errors
    /// A folder that does not exist or does not let us write.
    pub fn check(&self) -> Result<(), Failure> {
        todo!()
    }

    /// Prints the document and writes the files. `figures` is what the JSON holds, `schema` its name and version in
    /// the file (`heaptoll-stat/1`). Gives the command's exit status.
    ///
    /// # Errors
    /// Standard output is full.
    pub fn deliver(
        &self,
        _document: &Document,
        _schema: &str,
        _figures: &impl Serialize,
    ) -> Result<u8, Failure> {
        todo!()
    }
}
