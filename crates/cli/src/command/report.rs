//! `heaptoll report DB`: a stored experiment again, and in other forms.

use std::path::PathBuf;

use clap::Args;
use heaptoll_lab::compare::{compare, judge_outputs};
use heaptoll_lab::store::Store;
use heaptoll_report::terminal::render;

use crate::failure::{self, Failure};
use crate::outputs::Outputs;
use crate::terminal;

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
    let printed = terminal::print(&render(&experiment, &comparison, &terminal::style()));
    let written = arguments.outputs.write(&experiment, &comparison);
    printed?;
    Ok(if written { 0 } else { failure::TROUBLE })
}
