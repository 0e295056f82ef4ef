//! `heaptoll-collectors`: collectors compared with allocators and with each other. Interleaved runs of the catalog's
//! programs, geometric means, curves of CPU over memory, threads, GCBench, and the speed of marking; each compared with
//! Tithe's target.

mod curve;
mod document;
mod envelope;
mod error;
mod gcbench;
mod marking;
mod measure;
mod table;
mod targets;
mod threads;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

pub use error::Error;

/// Compare collectors with allocators.
///
/// Exit status: 0 all runs ended well, whatever the figures; 1 some did not, and the table names them; 2 the table
/// could not be made.
#[derive(Debug, Parser)]
#[command(name = "heaptoll-collectors", version)]
#[command(arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
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

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Table(options) => table::run(&options),
        Command::Curve(options) => curve::run(&options),
        Command::Gcbench(options) => gcbench::run(&options),
        Command::Marking(options) => marking::run(&options),
        Command::Threads(options) => threads::run(&options),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("heaptoll-collectors: {error}");
            ExitCode::from(2)
        }
    }
}
