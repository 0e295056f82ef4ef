//! `heaptoll frequency`.

use clap::Args;

use crate::failure::Failure;

/// What the frequency of collections does to the program between them.
#[derive(Debug, Args)]
pub struct Arguments {}

/// Runs the command.
///
/// # Errors
/// See [`Failure`].
pub fn run(_arguments: &Arguments) -> Result<u8, Failure> {
    Err(Failure::Usage("this command is being written".into()))
}
