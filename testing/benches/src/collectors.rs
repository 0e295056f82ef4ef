//! Collectors compared with allocators and with each other. Interleaved runs of the catalog's programs, geometric means,
//! curves of CPU over memory, threads, GCBench, and the speed of marking; each compared with Tithe's target.

mod curve;
mod document;
mod envelope;
mod gcbench;
mod marking;
mod measure;
mod table;
mod targets;
mod threads;

use clap::Subcommand;

use crate::Error;

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// CPU and memory of programs over glibc's, and the targets of Tithe's modes
    Table(table::Options),
    /// CPU against memory over heap sizes, ours and Boehm's: a page of charts and a verdict a program
    Curve(curve::Options),
    /// Throughput of one thread and of two
    Threads(threads::Options),
    /// GCBench linked with Tithe and with libgc, at equal heap sizes
    Gcbench(gcbench::Options),
    /// How fast live small objects are marked: Tithe and the sweep layer over other managers
    Marking(marking::Options),
}

/// Runs one of them. False when some runs did not end well, and the table names them.
///
/// # Errors
/// The table could not be made.
pub fn run(command: &Command) -> Result<bool, Error> {
    match command {
        Command::Table(options) => table::run(options),
        Command::Curve(options) => curve::run(options),
        Command::Gcbench(options) => gcbench::run(options),
        Command::Marking(options) => marking::run(options),
        Command::Threads(options) => threads::run(options),
    }
}
