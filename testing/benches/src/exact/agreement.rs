//! `agreement`: counts of the tracer and the simulators against those of Valgrind's own tools on the same run.

mod caches;
mod instructions;
mod options;

use super::setup::Setup;
use crate::Error;
use crate::installation::machine_line;

pub use options::Options;

/// Programs of the catalog that are written in C, C and C, C and C: allocation-heavy, deterministic, of one thread.
const PROGRAMS: [&str; 5] = ["gawk", "cfrac", "espresso", "lua", "perl"];
/// A baseline, two current ones of different design, and one of 1982 whose routines are short.
const MANAGERS: [&str; 4] = ["glibc", "mimalloc3", "kingsley", "jemalloc"];

/// Compares. False if a figure is off by more than the tolerance.
///
/// # Errors
/// A program fails, or a tool is missing.
pub fn run(options: &Options) -> Result<bool, Error> {
    let mut setup = Setup::open(options.choice.timeout)?;
    if !options.real_clock {
        setup.stop_the_clock()?;
    }
    let managers = setup.installation.managers(&options.choice.managers, &MANAGERS)?;
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
