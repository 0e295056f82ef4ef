//! `heaptoll minheap`.

use clap::Args;

use crate::failure::Failure;

/// The smallest heap in which a program completes, by collector.
#[derive(Debug, Args)]
pub struct Arguments {}

/// Runs the command.
///
/// # Errors
/// See [`Failure`].
pub fn run(_arguments: &Arguments) -> Result<u8, Failure> {
    Err(Failure::Usage("this command is being written".into()))
}
