//! heaptoll measured by itself: its own cost, whether its figures are right, how often it claims a difference that does
//! not exist, and whether it finds one that does. `make bench` runs all of it and prints each figure with its target.

mod calibration;
mod child;
mod company;
mod error;
mod load;
mod pairing;
mod power;
mod rig;
mod shards;
mod truth;

use std::path::{Path, PathBuf};

use clap::{Parser, Subcommand};
use heaptoll_catalog::Size;
use heaptoll_experiment::experiment::Pairing;

use crate::error::BenchError;

/// Measure heaptoll itself.
#[derive(Debug, Parser)]
#[command(name = "heaptoll-bench", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Time and memory that heaptoll adds to an invocation
    OwnCost,
    /// Peak memory and CPU seconds against programs that know their own
    Truth,
    /// How often a difference between equal managers is claimed, by resampling glibc-against-glibc rows
    Calibration {
        /// Measure them in lockstep
        #[arg(long)]
        lockstep: bool,
        /// Repetitions measured
        #[arg(short, long, default_value_t = 40)]
        repetitions: u32,
        /// Tables resampled from them
        #[arg(long, default_value_t = 2000)]
        resamplings: u32,
        /// Repetitions in each resampled table
        #[arg(short, default_value_t = 10)]
        n: usize,
    },
    /// How often a manager slowed by a known amount is distinguished from itself
    Power {
        /// Slow-down in per cent of the program's CPU
        #[arg(long, default_value_t = 3.0)]
        percent: f64,
        /// Repetitions of each experiment
        #[arg(short, default_value_t = 15)]
        n: u32,
        /// Experiments
        #[arg(long, default_value_t = 10)]
        experiments: u32,
        /// Half a second a run, and not a tenth
        #[arg(long)]
        longer: bool,
        /// Experiments of the manager against itself
        #[arg(long, default_value_t = 10)]
        equal: u32,
        /// Measure them in lockstep
        #[arg(long)]
        lockstep: bool,
        /// Busy processes at the same time
        #[arg(long, default_value_t = 0)]
        busy: usize,
    },
    /// How far glibc differs from itself, in lockstep and one after the other, on an idle machine and with busy
    /// processes
    Pairing {
        /// Repetitions of each program
        #[arg(short, default_value_t = 30)]
        n: u32,
        /// Half a second a run, and not a tenth
        #[arg(long)]
        longer: bool,
    },
    /// How far ratios of runs at once lie from those of runs alone, by company, slice and footprint
    Company {
        /// Repetitions of each
        #[arg(short, default_value_t = 8)]
        n: u32,
        /// Numbers of stacks that run at once
        #[arg(long, value_delimiter = ',', default_value = "2,5,8", value_parser = at_once)]
        at_once: Vec<usize>,
        /// Only the pairs with this in their names
        #[arg(long, default_value = "")]
        only: String,
    },
    /// How large an experiment on many machines may be: its plan, its shards with synthetic rows, merge, report, export
    Shards {
        /// The folder that gets them; a million rows take 0.6 GB there
        folder: PathBuf,
        /// Programs
        #[arg(long, default_value_t = 40)]
        programs: u32,
        /// Managers
        #[arg(long, default_value_t = 10)]
        managers: u32,
        /// Repetitions on each class of machines
        #[arg(long, default_value_t = 2500)]
        repetitions: u32,
        /// Classes of machines
        #[arg(long, default_value_t = 1)]
        classes: u32,
        /// Repetitions of a shard
        #[arg(long, default_value_t = 100)]
        each: u32,
        /// Nodes
        #[arg(long, default_value_t = 20)]
        nodes: u32,
        /// The heaptoll to measure [default: the one next to this program]
        #[arg(long)]
        heaptoll: Option<PathBuf>,
    },
    /// Touch memory and print the kernel's figure of it (run by `truth`)
    #[command(hide = true)]
    Touch {
        /// MiB to touch
        mib: usize,
    },
    /// Spin for a known time of CPU (run by `truth`)
    #[command(hide = true)]
    Spin {
        /// CPU milliseconds
        ms: u64,
    },
}

fn main() -> std::process::ExitCode {
    let result = match Cli::parse().command {
        Command::OwnCost => truth::own_cost(),
        Command::Truth => truth::truth(),
        Command::Calibration { lockstep, repetitions, resamplings, n } => {
            calibration::run(pairing(lockstep), repetitions, resamplings, n)
        }
        Command::Power { percent, n, experiments, longer, equal, lockstep, busy } => {
            power::run(&power::Plan {
                percent,
                n,
                size: size(longer),
                experiments,
                equal,
                pairing: pairing(lockstep),
                busy,
            })
        }
        Command::Pairing { n, longer } => pairing::run(n, size(longer)),
        Command::Company { n, at_once, only } => company::run(&company::Plan { n, companies: at_once, only }),
        Command::Shards { folder, programs, managers, repetitions, classes, each, nodes, heaptoll } => {
            shards::run(&shards::Size {
                folder,
                programs,
                managers,
                repetitions,
                classes,
                each,
                nodes,
                heaptoll,
            })
        }
        Command::Touch { mib } => child::touch(mib),
        Command::Spin { ms } => child::spin(ms),
    };
    match result {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("heaptoll-bench: {error}");
            std::process::ExitCode::FAILURE
        }
    }
}

/// A number of stacks that run at once: two at least.
fn at_once(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|&stacks| stacks >= 2).ok_or_else(|| "give two stacks or more".into())
}

/// Builds a shared object of a C source of ours.
fn c_object(folder: &Path, name: &str, source: &str) -> Result<PathBuf, BenchError> {
    let (file, object) = (folder.join(format!("{name}.c")), folder.join(format!("{name}.so")));
    std::fs::write(&file, source).map_err(BenchError::system("write a C source"))?;
    let mut cc = std::process::Command::new("cc");
    let built = cc.args(["-O2", "-shared", "-fPIC", "-fno-builtin", "-o"]).arg(&object).arg(&file).status();
    match built.map_err(BenchError::system("cc"))?.success() {
        true => Ok(object),
        false => Err(BenchError::Unexpected(format!("cc could not build {name}.c"))),
    }
}

fn size(longer: bool) -> Size {
    if longer { Size::Demo } else { Size::Quick }
}

fn pairing(lockstep: bool) -> Pairing {
    if lockstep { Pairing::Lockstep } else { Pairing::Interleaved }
}

/// Prints one figure with its target. A missed target is shown and does not fail: benches inform, tests decide.
fn print_figure(what: &str, figure: String, target: &str, met: bool) {
    println!("{what:<58} {figure:>22}   target {target:<18} {}", if met { "met" } else { "MISSED" });
}
