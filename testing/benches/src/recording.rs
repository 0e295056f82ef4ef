//! What recording costs a program, how large its traces are, and how fast they are queried and replayed. `make bench`
//! runs all three and prints each figure with its target.

mod installation;
mod overhead;
mod queries;
mod sizes;

use clap::{Parser, Subcommand};

use heaptoll_bench::BenchError;

/// Measure recording, querying and replaying traces.
#[derive(Debug, Parser)]
#[command(name = "heaptoll-recording", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
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

fn main() -> std::process::ExitCode {
    let result = match Cli::parse().command {
        Command::Overhead { n, seed } => overhead::run(n, seed),
        Command::Sizes => sizes::run(),
        Command::Queries => queries::run(),
    };
    match result {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("heaptoll-recording: {error}");
            std::process::ExitCode::FAILURE
        }
    }
}

/// Prints one figure with its target. A missed target is shown and does not fail: benches inform, tests decide.
fn print_figure(what: &str, figure: &str, target: &str, met: bool) {
    println!("{what:<52} {figure:>28}   target {target:<16} {}", if met { "met" } else { "MISSED" });
}
