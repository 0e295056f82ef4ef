//! `heaptoll export`: a trace as Parquet.

use std::path::PathBuf;

use clap::Args;
use heaptoll_experiments::export::{self, Request};
use heaptoll_experiments::failure::Failure;

use crate::exit::TROUBLE;
use crate::memory::MemoryArguments;
use crate::messages::TerminalMessages;

/// Write a trace as Parquet, for DuckDB, pandas or Spark.
///
/// One row an event; docs/reference/trace-parquet.md explains the columns and shows queries. When the trace has call
/// stacks, they go to a second file (`x.sites.parquet` next to `x.parquet`).
///
/// Exit status: 0 all well; 1 the trace is damaged (what is whole is exported) or a file could not be written; 2 it is
/// no trace, cannot be read, or the file exists.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  heaptoll export gawk.heaptoll\n  \
    heaptoll export gawk.heaptoll -o /tmp/gawk.parquet --force\n  \
    duckdb -c \"select kind, count(*), sum(size) from 'gawk.parquet' group by kind\"")]
pub struct Arguments {
    /// The trace that `heaptoll record` made; `-` is standard input
    trace: PathBuf,
    /// The file to write; without it, the trace's name with .parquet at its end, in the current folder
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace files that exist
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    memory: MemoryArguments,
}

/// Runs the command.
///
/// # Errors
/// See [`Failure`].
pub fn run(arguments: &Arguments) -> Result<u8, Failure> {
    let request = Request {
        trace: arguments.trace.clone(),
        output: arguments.output.clone(),
        force: arguments.force,
        memory_limit_bytes: arguments.memory.limit_bytes(),
    };
    let is_whole = export::run(&request, &TerminalMessages::default())?;
    Ok(if is_whole { 0 } else { TROUBLE })
}
