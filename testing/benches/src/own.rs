//! heaptoll measured by itself: its own cost, whether its figures are right, how often it claims a difference that does
//! not exist, and whether it finds one that does.

mod calibration;
mod child;
mod company;
mod load;
mod pairing;
mod power;
mod protocol;
mod shards;
mod truth;

use clap::Subcommand;

use self::protocol::{pairing, size};
use crate::Error;

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
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
    Power(power::Plan),
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
    Company(company::Plan),
    /// How large an experiment on many machines may be: its plan, its shards with synthetic rows, merge, report, export
    Shards(shards::Size),
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

/// Runs one of them.
///
/// # Errors
/// heaptoll is not built, or a child or an experiment fails.
pub fn run(command: Command) -> Result<(), Error> {
    match command {
        Command::OwnCost => truth::own_cost(),
        Command::Truth => truth::truth(),
        Command::Calibration { lockstep, repetitions, resamplings, n } => {
            calibration::run(pairing(lockstep), repetitions, resamplings, n)
        }
        Command::Power(plan) => power::run(&plan),
        Command::Pairing { n, longer } => pairing::run(n, size(longer)),
        Command::Company(plan) => company::run(&plan),
        Command::Shards(size) => shards::run(&size),
        Command::Touch { mib } => child::touch(mib),
        Command::Spin { ms } => child::spin(ms),
    }
}
