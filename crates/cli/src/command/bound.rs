//! `heaptoll bound`: The smallest heap that a trace could have been served from.

use clap::Args;

use crate::failure::Failure;

/// The smallest heap that a trace could have been served from.
#[derive(Debug, Args)]
pub struct Arguments {}

/// Runs the command.
///
/// # Errors
/// See [`Failure`].
pub fn run(_arguments: &Arguments) -> Result<u8, Failure> {
    todo!()
}
