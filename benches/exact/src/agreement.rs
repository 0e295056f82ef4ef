//! `agreement`: counts of the tracer and the simulators against those of Valgrind's own tools on the same run.

mod caches;
mod instructions;

use std::path::PathBuf;

use crate::Error;
use crate::setup::{Choice, Setup, machine_line};

/// Programs of the catalog that are written in C, C and C, C and C: allocation-heavy, deterministic, of one thread.
const PROGRAMS: [&str; 5] = ["gawk", "cfrac", "espresso", "lua", "perl"];
/// A baseline, two current ones of different design, and one of 1982 whose routines are short.
const MANAGERS: [&str; 4] = ["glibc", "mimalloc3", "kingsley", "jemalloc"];

/// The command line of `agreement`.
#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    choice: Choice,
    /// Only instructions, against callgrind
    #[arg(long, conflicts_with = "caches")]
    instructions: bool,
    /// Only cache misses, against cachegrind
    #[arg(long)]
    caches: bool,
    /// Let programs and managers see the real clock: work that depends on the time then depends on the tool
    #[arg(long)]
    real_clock: bool,
    /// Folder of the tracer [default: the installation's]; one built by `make -C tracer ALIKE=yes OUT=DIR BUILD=DIR` gives
    /// programs the addresses that they have under Valgrind's own tools
    #[arg(long, value_name = "DIR")]
    tracer: Option<PathBuf>,
    /// Bind functions at their first call, as programs do, and not at the start
    #[arg(long)]
    lazy: bool,
    /// Per cent that a figure may be off
    #[arg(long, value_name = "PERCENT", default_value_t = 0.01)]
    tolerance: f64,
}

/// Compares. False if a figure is off by more than the tolerance.
///
/// # Errors
/// A program fails, or a tool is missing.
pub fn run(options: &Options) -> Result<bool, Error> {
    let mut setup = Setup::open(options.choice.timeout)?;
    if !options.real_clock {
        setup.stop_the_clock()?;
    }
    let managers = setup.managers(&options.choice.managers, &MANAGERS)?;
    let programs = setup.programs(&options.choice, &PROGRAMS)?;
    if let Some(folder) = &options.tracer {
        setup.use_tracer(folder)?;
    }
    println!("{}; inputs: {}\n", machine_line(), options.choice.size);
    let mut agreed = true;
    if !options.caches {
        agreed &= instructions::run(&setup, &programs, &managers, options)?;
    }
    if !options.instructions {
        agreed &= caches::run(&setup, &programs, &managers, options)?;
    }
    Ok(agreed)
}
