//! `heaptoll replay`: What other managers do with exactly this sequence of calls.

use clap::Args;

use crate::failure::Failure;

/// What other managers do with exactly this sequence of calls.
#[derive(Debug, Args)]
pub struct Arguments {}

/// Runs the command.
///
/// # Errors
/// See [`Failure`].
pub fn run(_arguments: &Arguments) -> Result<u8, Failure> {
    todo!()
}
