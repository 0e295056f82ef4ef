//! `heaptoll programs`: the catalog.

use std::path::PathBuf;

use clap::Args;
use heaptoll_experiment::places::Places;
use heaptoll_experiments::failure::Failure;
use heaptoll_experiments::programs;
use heaptoll_report::terminal::programs_table;

use crate::terminal;

/// List the programs of the catalog: what each does, which Debian package brings it, whether it is here.
#[derive(Debug, Args)]
pub struct Arguments {
    /// A folder with catalog entries of your own (docs/guide/programs.md explains how to write one)
    #[arg(long, value_name = "DIR")]
    catalog: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// A catalog that cannot be read.
pub fn run(arguments: &Arguments) -> Result<u8, Failure> {
    let rows = programs::list(arguments.catalog.as_deref(), &Places::find()?)?;
    terminal::print(&programs_table(&rows, &terminal::style()))?;
    Ok(0)
}
