//! Is a manager that is slower by a known few per cent distinguished from itself?
//!
//! `delay.c` forwards to glibc and spins a settable number of turns in every sixteenth malloc. What a turn costs on
//! this machine and program is measured first, against zero turns, so that the slow-down is known and not assumed.

use std::path::Path;

use heaptoll_catalog::Size;
use heaptoll_experiment::compare::{compare, judge_outputs};
use heaptoll_experiment::comparison::Metric;
use heaptoll_experiment::experiment::Pairing;
use heaptoll_statistics::Interval;

use super::load::Load;
use super::protocol::{pairing, protocol, size};
use crate::compile::{OBJECT, compile};
use crate::installation::{Installation, scratch};
use crate::table::print_figure;
use crate::{Error, NoProgress, Stack};

/// Turns of the calibration run: enough that their cost is far above the noise.
const MANY_TURNS: f64 = 1600.0;

fn stack(name: &str, object: &Path, turns: f64) -> Stack {
    Stack {
        preload: vec![object.to_path_buf()],
        environment: vec![("DELAY_TURNS".into(), format!("{turns:.0}"))],
        ..Stack::plain(name)
    }
}

/// The experiments.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct Plan {
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
}

/// CPU ratio of the second stack to the first.
fn cpu_ratio(
    installation: &Installation,
    stacks: &[Stack],
    size: Size,
    pairing: Pairing,
    n: u32,
    seed: u64,
) -> Result<Interval, Error> {
    let cfrac = installation.program("cfrac", size)?;
    let mut experiment = installation.run(&cfrac, stacks, protocol(n, seed, pairing), &mut NoProgress)?;
    judge_outputs(&mut experiment);
    let comparison = compare(&experiment);
    let row = comparison.tables[0].rows.iter().find(|row| row.stack == stacks[1].name);
    let ratio = row.and_then(|row| row.figures.get(&Metric::Cpu)?.ratio);
    ratio.ok_or_else(|| Error::Unexpected("no ratio came out".into()))
}

/// Measures the turn, then the experiments.
pub fn run(plan: &Plan) -> Result<(), Error> {
    let Plan { percent, n, longer, experiments, equal, lockstep, busy } = *plan;
    let (size, pairing) = (size(longer), pairing(lockstep));
    let installation = Installation::find()?;
    let folder = scratch()?;
    let object = compile(folder.path(), "delay.c", include_str!("../../c/delay.c"), &OBJECT)?;
    let pair = |turns: f64| [stack("delay", &object, 0.0), stack("delayed", &object, turns)];
    let _load = Load::start(busy)?;
    let many = cpu_ratio(&installation, &pair(MANY_TURNS), size, pairing, 20, 1)?.ratio;
    let turns = (MANY_TURNS * (percent / 100.0) / (many - 1.0)).round();
    println!(
        "{MANY_TURNS} turns in 16 calls of malloc cost {:.1} % of cfrac's CPU; {percent} % are {turns} turns",
        100.0 * (many - 1.0)
    );
    let (mut claimed, mut itself) = (0, 0);
    for experiment in 0..experiments {
        let found = cpu_ratio(&installation, &pair(turns), size, pairing, n, 100 + u64::from(experiment))?;
        claimed += u32::from(found.differs && found.ratio > 1.0);
        let claim = if found.differs { "" } else { "  not claimed" };
        println!("  {:.4} ({:.4} to {:.4}){claim}", found.ratio, found.low, found.high);
    }
    for experiment in 0..equal {
        let found = cpu_ratio(&installation, &pair(0.0), size, pairing, n, 200 + u64::from(experiment))?;
        itself += u32::from(found.differs);
    }
    print_figure(
        &format!("experiments of n = {n}, {busy} busy processes, that claim the {percent} %"),
        format!("{claimed} of {experiments}"),
        "19 of 20",
        f64::from(claimed) >= 0.95 * f64::from(experiments),
    );
    println!("{:<58} {itself:>16} of {equal}", "experiments of the manager against itself that claim");
    Ok(())
}
