//! `heaptoll export`: Write a trace as Parquet.

use clap::Args;

use crate::failure::Failure;

/// Write a trace as Parquet.
#[derive(Debug, Args)]
pub struct Arguments {}

/// Runs the command.
///
/// # Errors
/// See [`Failure`].
pub fn run(_arguments: &Arguments) -> Result<u8, Failure> {
    todo!()
}
