//! Is a manager that is slower by a known few per cent told from itself?
//!
//! `delay.c` forwards to glibc and spins a settable number of turns in every malloc. What a turn costs on this
//! machine and program is measured first, against zero turns, so that the slow-down is known and not assumed.

use std::path::{Path, PathBuf};
use std::process::Command;

use heaptoll_lab::compare::{compare, judge_outputs};
use heaptoll_lab::comparison::Metric;
use heaptoll_lab::places::Places;

use crate::rig::{self, Stack};
use crate::{BenchError, say};

const SOURCE: &str = include_str!("../delay.c");
/// Turns of the calibration run: enough that their cost stands far above the noise.
const MANY_TURNS: f64 = 100.0;

fn build(folder: &Path) -> Result<PathBuf, BenchError> {
    let source = folder.join("delay.c");
    let object = folder.join("delay.so");
    std::fs::write(&source, SOURCE).map_err(BenchError::system("write delay.c"))?;
    let status = Command::new("cc")
        .args(["-O2", "-shared", "-fPIC", "-fno-builtin", "-o"])
        .arg(&object)
        .arg(&source)
        .status()
        .map_err(BenchError::system("cc"))?;
    if status.success() {
        Ok(object)
    } else {
        Err(BenchError::Unexpected("cc could not build delay.c".into()))
    }
}

fn stack(name: &str, object: &Path, turns: f64) -> Stack {
    Stack {
        name: name.into(),
        preload: vec![object.to_path_buf()],
        environment: vec![("DELAY_TURNS".into(), format!("{turns:.0}"))],
        tells: false,
    }
}

/// CPU ratio of `name` to the baseline, with whether a difference is claimed.
fn cpu_ratio(
    places: &Places,
    stacks: &[Stack],
    n: u32,
    seed: u64,
) -> Result<(f64, f64, f64, bool), BenchError> {
    let mut experiment = rig::run(places, rig::cfrac(places)?, stacks, n, seed)?;
    judge_outputs(&mut experiment);
    let comparison = compare(&experiment);
    let row = comparison.tables[0].rows.iter().find(|row| row.stack == stacks[1].name);
    let ratio = row.and_then(|row| row.figures.get(&Metric::Cpu)?.ratio);
    let ratio = ratio.ok_or_else(|| BenchError::Unexpected("no ratio came out".into()))?;
    Ok((ratio.ratio, ratio.low, ratio.high, ratio.differs))
}

/// Measures the turn, then the experiments.
pub fn run(percent: f64, n: u32, experiments: u32) -> Result<(), BenchError> {
    let places = Places::find()?;
    let folder = tempfile::tempdir().map_err(BenchError::system("temporary folder"))?;
    let object = build(folder.path())?;
    let pair = |turns: f64| [stack("delay", &object, 0.0), stack("delayed", &object, turns)];
    let (many, ..) = cpu_ratio(&places, &pair(MANY_TURNS), 20, 1)?;
    let turns = (MANY_TURNS * (percent / 100.0) / (many - 1.0)).round();
    println!(
        "{MANY_TURNS} turns a malloc cost {:.1} % of cfrac's CPU; {percent} % are {turns} turns",
        100.0 * (many - 1.0)
    );
    let (mut claimed, mut itself) = (0, 0);
    for experiment in 0..experiments {
        let (ratio, low, high, differs) = cpu_ratio(&places, &pair(turns), n, 100 + u64::from(experiment))?;
        claimed += u32::from(differs && ratio > 1.0);
        let (_, _, _, false_claim) = cpu_ratio(&places, &pair(0.0), n, 200 + u64::from(experiment))?;
        itself += u32::from(false_claim);
        println!("  {ratio:.4} ({low:.4} to {high:.4}){}", if differs { "" } else { "  not claimed" });
    }
    say(
        &format!("experiments of n = {n} that claim the {percent} %"),
        format!("{claimed} of {experiments}"),
        "most",
        f64::from(claimed) >= 0.8 * f64::from(experiments),
    );
    println!("{:<58} {itself} of {experiments}", "experiments of the manager against itself that claim");
    Ok(())
}
