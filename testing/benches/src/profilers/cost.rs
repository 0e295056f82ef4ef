//! What sampling costs: instructions, which are exact, and CPU time in pairs of runs. The profile itself is not written, so
//! that its cost, once in a run, does not hide that of sampling.

use std::path::Path;
use std::process::Command;

use heaptoll_statistics::paired;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::profiler::Profiler;
use super::subject::Subject;
use crate::installation::scratch;
use crate::{Error, child};

const VALGRIND: [&str; 5] = [
    "valgrind",
    "--tool=cachegrind",
    "--cache-sim=no",
    "--trace-children=yes",
    "--cachegrind-out-file=/dev/null",
];

/// A cell for each rate: instructions and CPU time over those without sampling.
///
/// # Errors
/// The program ends badly.
pub fn rows(
    profiler: &Profiler,
    rates: &[u64],
    subject: &Subject,
    runs: usize,
    seed: u64,
) -> Result<Vec<[String; 2]>, Error> {
    let instructions = instructions(profiler, rates, subject)?;
    let times = times(profiler, rates, subject, runs, seed)?;
    Ok(instructions.into_iter().zip(times).map(|(count, time)| [count, time]).collect())
}

/// A command with or without sampling, and the folder that it needs while it runs.
fn sampling(
    profiler: &Profiler,
    rate: Option<u64>,
    subject: &Subject,
    before: &[&str],
) -> Result<(Command, tempfile::TempDir), Error> {
    let folder = scratch()?;
    Ok((profiler.sampling(subject, rate, before, folder.path())?, folder))
}

fn instructions(profiler: &Profiler, rates: &[u64], subject: &Subject) -> Result<Vec<String>, Error> {
    let count = |rate| -> Result<Option<f64>, Error> {
        let (mut command, _folder) = sampling(profiler, rate, subject, &VALGRIND)?;
        let log = child::run(&mut command)?.errors;
        // `==123== I   refs:      4,567,890`, of env first and of the program that it becomes last.
        let line = log.lines().rfind(|line| line.contains("refs:"));
        Ok(line.and_then(|line| line.rsplit(' ').next()?.replace(',', "").parse().ok()))
    };
    if !Path::new("/usr/bin/valgrind").exists() {
        return Ok(vec!["no valgrind".to_owned(); rates.len()]);
    }
    let base = count(None)?;
    let ratio = |rate: &u64| -> Result<String, Error> {
        let counts = base.zip(count(Some(*rate))?);
        counts
            .map(|(base, sampled)| format!("{:.3}", sampled / base))
            .ok_or_else(|| Error::Unexpected(format!("valgrind counted no instructions of {}", subject.name)))
    };
    rates.iter().map(ratio).collect()
}

/// CPU time over that without sampling, run by run in random order; the first round is not counted.
fn times(
    profiler: &Profiler,
    rates: &[u64],
    subject: &Subject,
    runs: usize,
    seed: u64,
) -> Result<Vec<String>, Error> {
    let mut dice = ChaCha8Rng::seed_from_u64(seed);
    let mut logs = vec![Vec::new(); rates.len()];
    for round in 0..=runs {
        let mut order: Vec<Option<usize>> = (0..rates.len()).map(Some).chain([None]).collect();
        order.shuffle(&mut dice);
        let (mut base, mut seconds) = (0.0, vec![0.0; rates.len()]);
        for rate in order {
            let (mut command, _folder) = sampling(profiler, rate.map(|at| rates[at]), subject, &[])?;
            let took = child::run(&mut command)?.cpu_s;
            match rate {
                Some(at) => seconds[at] = took,
                None => base = took,
            }
        }
        for (log, seconds) in logs.iter_mut().zip(seconds).filter(|_| round > 0) {
            log.push(Some((seconds / base).ln()));
        }
    }
    let intervals = paired(&logs, 0.05, seed).into_iter();
    Ok(intervals
        .map(|interval| match interval {
            Some(interval) => format!("{:.3} ({:.3}–{:.3})", interval.ratio, interval.low, interval.high),
            None => "too few runs".to_owned(),
        })
        .collect())
}
