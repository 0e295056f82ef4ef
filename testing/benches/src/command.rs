//! The command line: one program, and a command for each bench.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::{adversary, choosing, collectors, exact, fairness, fastpath, layers, own, profilers, recording};

/// Measure heaptoll itself, its managers, and the tools that it is compared with.
///
/// Exit status: 0 measured, and all that must be so is so; 1 something is not, and its line shows what; 2 nothing could be
/// measured.
#[derive(Debug, Parser)]
#[command(name = "heaptoll-bench", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[command(flatten)]
    Own(own::Command),
    Adversary(adversary::Options),
    Choosing(choosing::Options),
    /// Collectors compared with allocators and with each other
    #[command(subcommand)]
    Collectors(collectors::Command),
    /// The tracer and its simulators against Valgrind's own tools
    #[command(subcommand)]
    Exact(exact::Command),
    Fairness(fairness::Options),
    Fastpath(fastpath::Options),
    Layers(layers::Options),
    Profilers(profilers::Options),
    /// Recording, querying and replaying traces
    #[command(subcommand)]
    Recording(recording::Command),
}

/// Runs the bench of the command line.
pub fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Own(command) => own::run(command).map(|()| true),
        Command::Adversary(options) => adversary::run(&options),
        Command::Choosing(options) => choosing::run(&options),
        Command::Collectors(command) => collectors::run(&command),
        Command::Exact(command) => exact::run(&command),
        Command::Fairness(options) => fairness::run(&options),
        Command::Fastpath(options) => fastpath::run(&options),
        Command::Layers(options) => layers::run(&options).map(|()| true),
        Command::Profilers(options) => profilers::run(&options).map(|()| true),
        Command::Recording(command) => recording::run(&command).map(|()| true),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("heaptoll-bench: {error}");
            ExitCode::from(2)
        }
    }
}
