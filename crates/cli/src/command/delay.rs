//! `heaptoll delay`.

use clap::Args;

use crate::failure::Failure;

/// What it costs when freed memory waits: time and memory over the size of a quarantine.
#[derive(Debug, Args)]
pub struct Arguments {}

/// Runs the command.
///
/// # Errors
/// See [`Failure`].
pub fn run(_arguments: &Arguments) -> Result<u8, Failure> {
    Err(Failure::Usage("this command is being written".into()))
}
