//! `heaptoll record`: Record every allocation of a program into a trace.

use clap::Args;

use crate::failure::Failure;

/// Record every allocation of a program into a trace.
#[derive(Debug, Args)]
pub struct Arguments {}

/// Runs the command.
///
/// # Errors
/// See [`Failure`].
pub fn run(_arguments: &Arguments) -> Result<u8, Failure> {
    todo!()
}
