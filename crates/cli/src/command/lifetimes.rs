//! `heaptoll lifetimes`: How long the objects of a trace live.

use clap::Args;

use crate::failure::Failure;

/// How long the objects of a trace live.
#[derive(Debug, Args)]
pub struct Arguments {}

/// Runs the command.
///
/// # Errors
/// See [`Failure`].
pub fn run(_arguments: &Arguments) -> Result<u8, Failure> {
    todo!()
}
