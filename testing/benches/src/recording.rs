//! What recording costs a program, how large its traces are, and how fast they are queried and replayed.

mod commands;
mod overhead;
mod queries;
mod sizes;

use clap::Subcommand;

use crate::Error;

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Wall time of recorded programs, interleaved with plain ones
    Overhead {
        /// Repetitions
        #[arg(short, default_value_t = 7)]
        n: usize,
        /// Seed of the order
        #[arg(long, default_value_t = 1992)]
        seed: u64,
    },
    /// Bytes an event of every catalog program
    Sizes,
    /// Events a second and memory of stat, lifetimes and replay on a long trace
    #[command(name = "asking")]
    Queries,
}

/// Runs one of them.
///
/// # Errors
/// heaptoll is not built, or a program cannot be recorded.
pub fn run(command: &Command) -> Result<(), Error> {
    match *command {
        Command::Overhead { n, seed } => overhead::run(n, seed),
        Command::Sizes => sizes::run(),
        Command::Queries => queries::run(),
    }
}
