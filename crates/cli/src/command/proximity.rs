//! `heaptoll proximity`.

use clap::Args;

use crate::failure::Failure;

/// How long requests take, by their distance to the last collection.
#[derive(Debug, Args)]
pub struct Arguments {}

/// Runs the command.
///
/// # Errors
/// See [`Failure`].
pub fn run(_arguments: &Arguments) -> Result<u8, Failure> {
    Err(Failure::Usage("this command is being written".into()))
}
