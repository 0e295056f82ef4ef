//! `heaptoll stat`: Counts, sizes and rates of a trace.

use clap::Args;

use crate::failure::Failure;

/// Counts, sizes and rates of a trace.
#[derive(Debug, Args)]
pub struct Arguments {}

/// Runs the command.
///
/// # Errors
/// See [`Failure`].
pub fn run(_arguments: &Arguments) -> Result<u8, Failure> {
    todo!()
}
