//! The tracer and its simulators against Valgrind's own tools, how much they slow a program down, and Zorn's Figures 4 to 7
//! again.

mod agreement;
mod difference;
mod family;
mod profiled;
mod setup;
mod simulated;
mod simulators;
mod slowdown;
mod traced;
mod zorn;

use clap::Subcommand;

use crate::Error;

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Instructions against callgrind's, cache misses against cachegrind's
    Agreement(agreement::Options),
    /// CPU of a program under the tracer, its simulators, callgrind and cachegrind, over that of a plain run
    Slowdown(slowdown::Options),
    /// References a second that the simulators process
    Simulators(simulators::Options),
    /// Page faults and cache misses under the BSD allocator and under conservative collectors (Zorn 1992, Figures 4 to 7)
    Zorn(zorn::Options),
}

/// Runs one of them. False when something that was compared does not agree.
///
/// # Errors
/// The table could not be made.
pub fn run(command: &Command) -> Result<bool, Error> {
    match command {
        Command::Agreement(options) => agreement::run(options),
        Command::Slowdown(options) => slowdown::run(options),
        Command::Simulators(options) => simulators::run(options),
        Command::Zorn(options) => zorn::run(options),
    }
}
