//! How far glibc differs from itself: in lockstep, and by runs one after the other in the same experiment.
//!
//! Each repetition of an experiment in lockstep also runs every stack by itself, so both ways meet the same minutes of
//! the machine. First on the machine as it is, then with four busy processes.

use heaptoll_catalog::Size;
use heaptoll_experiment::experiment::{Experiment, Pairing};
use heaptoll_experiment::observation::Phase;

use super::load::{BUSY, Load};
use super::protocol::protocol;
use crate::installation::Installation;
use crate::table::print_figure;
use crate::{Error, NoProgress, Stack};

/// Programs of which the target is of.
const PROGRAMS: [&str; 4] = ["cfrac", "gawk", "lua", "perl"];
/// Standard deviation of a log ratio that is to be reached.
const TARGET: f64 = 0.006;

/// Log ratios of CPU time of the second stack to the first, by repetition.
fn log_ratios(experiment: &Experiment, phase: Phase) -> Vec<f64> {
    let cpu_s = |stack: &str, repetition: u32| {
        let mut rows = experiment.observations.iter();
        let own =
            rows.find(|row| row.phase == phase && row.stack == stack && row.repetition == repetition)?;
        own.outcome.is_ok().then(|| own.cpu_s())
    };
    let stacks = &experiment.stacks;
    (0..experiment.settings.repetitions)
        .filter_map(|repetition| {
            let (first, second) = (cpu_s(&stacks[0].name, repetition)?, cpu_s(&stacks[1].name, repetition)?);
            Some((second / first).ln())
        })
        .collect()
}

fn deviation(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (values.len() as f64 - 1.0)).sqrt()
}

/// Measures all programs both ways, `repetitions` times.
pub fn run(repetitions: u32, size: Size) -> Result<(), Error> {
    let installation = Installation::find()?;
    let stacks = ["glibc", "glibc#2"].map(Stack::plain);
    for busy in [0, BUSY] {
        let _load = Load::start(busy)?;
        for name in PROGRAMS {
            let program = installation.program(name, size)?;
            let protocol = protocol(repetitions, 1992, Pairing::Lockstep);
            let measured = installation.run(&program, &stacks, protocol, &mut NoProgress)?;
            let (together, alone) =
                (log_ratios(&measured, Phase::Timed), log_ratios(&measured, Phase::Alone));
            if together.len() < 2 || alone.len() < 2 {
                return Err(Error::Unexpected(format!("{name} did not run to its end")));
            }
            let (together, alone) = (deviation(&together), deviation(&alone));
            print_figure(
                &format!("{name}, {} busy processes, {repetitions} pairs: sd, alone", busy),
                format!("{together:.4}, {alone:.4}"),
                &format!("at most {TARGET}"),
                together <= TARGET,
            );
        }
    }
    Ok(())
}
