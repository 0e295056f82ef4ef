//! `heaptoll report DB`: a stored experiment again, and in other forms.

use std::path::PathBuf;

use clap::Args;
use heaptoll_lab::compare::{compare, judge_outputs};
use heaptoll_lab::store::Store;
use heaptoll_report::terminal::{render, render_document};

use crate::failure::{self, Failure};
use crate::outputs::Outputs;
use crate::terminal;
use crate::traced::stored;

/// Show a stored experiment again, or write it as HTML, JSON, CSV or Parquet.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The experiment's file, as `heaptoll run` named it at its end
    db: PathBuf,
    #[command(flatten)]
    outputs: Outputs,
}

/// Runs the command.
///
/// # Errors
/// A file that cannot be read, outputs that cannot be written.
pub fn run(arguments: &Arguments) -> Result<u8, Failure> {
    let mut experiment = Store::read(&arguments.db)?;
    arguments.outputs.check()?;
    judge_outputs(&mut experiment);
    let comparison = compare(&experiment);
    let style = terminal::style();
    let traced = stored::document(&experiment).map(|document| render_document(&document, &style));
    // Of runs that are all traced there is nothing to compare by time.
    let mut text =
        if stored::is_all(&experiment) { String::new() } else { render(&experiment, &comparison, &style) };
    if let Some(traced) = traced {
        text.push_str(if text.is_empty() { "" } else { "\n" });
        text.push_str(&traced);
    }
    let printed = terminal::print(&text);
    let written = arguments.outputs.write(&experiment, &comparison);
    printed?;
    Ok(if written { 0 } else { failure::TROUBLE })
}
