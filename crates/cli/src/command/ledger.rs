//! `heaptoll ledger`: Where the memory of a program is.

use clap::Args;

use crate::failure::Failure;

/// Where the memory of a program is.
#[derive(Debug, Args)]
pub struct Arguments {}

/// Runs the command.
///
/// # Errors
/// See [`Failure`].
pub fn run(_arguments: &Arguments) -> Result<u8, Failure> {
    todo!()
}
