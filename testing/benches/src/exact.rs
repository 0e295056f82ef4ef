//! `heaptoll-exact`: the tracer and its simulators against Valgrind's own tools, how much they slow a program down, and
//! Zorn's Figures 4 to 7 again.

mod agreement;
mod error;
mod family;
mod profiled;
mod setup;
mod simulated;
mod simulators;
mod slowdown;
mod table;
mod traced;
mod zorn;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

pub use error::Error;

/// Confirm or refute the figures of the tracer and its simulators.
///
/// Exit status: 0 all that was compared agrees, whatever other figures are; 1 something does not, and its row shows
/// what; 2 the table could not be made.
#[derive(Debug, Parser)]
#[command(name = "heaptoll-exact", version)]
#[command(arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Instructions against callgrind's, cache misses against cachegrind's
    Agreement(agreement::Options),
    /// CPU of a program under the tracer, its simulators, callgrind and cachegrind, over that of a plain run
    Slowdown(slowdown::Options),
    /// References a second that the simulators process
    Simulators(simulators::Options),
    /// Page faults and cache misses under the BSD allocator and under conservative collectors (Zorn 1992, Figures 4 to 7)
    Zorn(zorn::Options),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Agreement(options) => agreement::run(&options),
        Command::Slowdown(options) => slowdown::run(&options),
        Command::Simulators(options) => simulators::run(&options),
        Command::Zorn(options) => zorn::run(&options),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("heaptoll-exact: {error}");
            ExitCode::from(2)
        }
    }
}
