//! Whether a manager does under the tracer what it does natively, tested on it each time.
//!
//! Valgrind refuses some system calls, lays out the address space itself and has no restartable sequences; the tracer
//! repairs most of it from outside (docs/method/tracer.md), and this module finds what remains for one manager. The
//! test is a small program staged with the tracer, the probe. It allocates blocks in ways that make managers grow, map,
//! align, move and start caches for threads, and prints for each step where in their pages the blocks lie. It runs
//! natively and under the tracer. A manager under which it ends differently cannot be measured; one to which a system
//! call was refused, or that places blocks as it never does natively, takes another path than natively.
//!
//! Where native runs differ among themselves (address space randomisation, the CPU on which a thread happens to run)
//! placement proves nothing, and only the rest is compared.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use heaptoll_experiment::interrupt::Interrupt;
use heaptoll_experiment::launch::{self, Finished, Invocation};
use heaptoll_launcher::Ended;
use heaptoll_reftrace::decoder::Sink;
use heaptoll_reftrace::{Event, Owner, Reference};
use heaptoll_units::limits;

use crate::error::TracerError;
use crate::find::Tracer;
use crate::options::Options;
use crate::syscalls;
use crate::trace::trace;

mod affinity;

/// Whether measurements of a manager under the tracer hold natively.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fitness {
    /// It does what it does natively, as far as the probe shows.
    Works,
    /// It runs, but differs from native runs: how.
    OtherPath(String),
    /// It does not run: what happened.
    NotMeasurable(String),
}

/// Native runs at first, and at most, before a difference is reported.
const NATIVE_RUNS: usize = 2;
const NATIVE_RUNS_AT_MOST: usize = 12;
/// The slowest of our managers takes a few seconds when the machine is busy.
const LIMIT: Duration = Duration::from_secs(60);

/// Runs the probe with these objects preloaded, in this environment (over heaptoll's own).
///
/// # Errors
/// [`TracerError`] when the tracer or the launcher fails, not the manager.
pub fn fitness(
    tracer: &Tracer,
    launcher: &Path,
    preload: &[PathBuf],
    environment: &[(String, String)],
    interrupt: &Interrupt,
) -> Result<Fitness, TracerError> {
    let probe = tracer.tool().with_file_name("probe");
    if !probe.is_file() {
        return Err(TracerError::NotBuilt { path: probe });
    }
    let invocation = Invocation {
        command: vec![probe.into_os_string()],
        environment: environment.to_vec(),
        preload: preload.to_vec(),
        timeout: LIMIT,
        ..Invocation::default()
    };
    let natively =
        || -> Result<Finished, TracerError> { Ok(launch::start(launcher, &invocation, interrupt)?.wait()?) };
    // On two CPUs, if there are two: a manager with a cache for each does not place alike on both.
    let on = affinity::own();
    let mut native = Vec::new();
    for run in 0..NATIVE_RUNS {
        let _pinned = on.as_ref().and_then(|on| on.only(run));
        native.push(natively()?);
    }
    let traced = match trace(tracer, launcher, &invocation, &Options::default(), interrupt, |_| NullSink) {
        Ok(traced) => traced,
        Err(TracerError::CannotRun { output, .. }) => return Ok(Fitness::NotMeasurable(output)),
        Err(error) => return Err(error),
    };
    if native.iter().all(|run| run.ended != traced.finished.ended) {
        return Ok(Fitness::NotMeasurable(other_end(&native[0], &traced.finished, &traced.warnings)));
    }
    let mut refused = BTreeMap::new();
    for ((number, errno), times) in traced.images.iter().flat_map(|image| &image.refused) {
        if !syscalls::changes_nothing(*number, *errno) {
            *refused.entry((*number, *errno)).or_insert(0) += times;
        }
    }
    if !refused.is_empty() {
        return Ok(Fitness::OtherPath(refusals(&refused)));
    }
    let under = steps(&traced.finished);
    let mut moved = moved(&native, &under);
    while !moved.is_empty() && native.len() < NATIVE_RUNS_AT_MOST && !interrupt.is_set() {
        native.push(natively()?);
        moved = self::moved(&native, &under);
    }
    Ok(if moved.is_empty() {
        Fitness::Works
    } else {
        let steps = moved.into_iter().collect::<Vec<_>>().join(", ");
        let runs = native.len();
        Fitness::OtherPath(format!(
            "it places blocks otherwise than in {runs} native runs, which agree (steps of the probe: {steps})"
        ))
    })
}

fn refusals(refused: &BTreeMap<(u32, u32), u64>) -> String {
    let each = refused.iter().map(|(&(number, errno), times)| {
        let name = syscalls::name(number);
        let error = std::io::Error::from_raw_os_error(i32::try_from(errno).unwrap_or(0));
        let consequence = match i64::from(number) {
            libc::SYS_rseq => ": caches by CPU are not used",
            libc::SYS_brk => ": the manager takes memory elsewhere than from brk",
            _ => "",
        };
        format!("{name} failed {times} times ({error}), which it does not natively{consequence}")
    });
    each.collect::<Vec<_>>().join("; ")
}

fn other_end(native: &Finished, traced: &Finished, warnings: &[String]) -> String {
    let output = traced.error_tail.trim();
    let output = if output.is_empty() { warnings.join("; ") } else { output.to_owned() };
    let output = match limits::memory() {
        // What it writes then is its map of the address space.
        Some(limit) => format!("; {limit}"),
        None if output.is_empty() => output,
        None => format!(": {output}"),
    };
    format!("the probe {} instead of {}{output}", end(traced.ended), end(native.ended))
}

fn end(ended: Ended) -> String {
    match ended {
        Ended::Exit(status) => format!("ends with status {status}"),
        Ended::Signal(number) => format!("is killed by signal {number}"),
        Ended::Timeout => format!("does not end within {} s", LIMIT.as_secs()),
        Ended::Cancelled => "is cancelled".into(),
        Ended::ExecFailed(errno) | Ended::SetupFailed(errno) => {
            format!("cannot be started ({})", std::io::Error::from_raw_os_error(errno))
        }
    }
}

/// The steps of the probe, and the placement in each.
fn steps(run: &Finished) -> BTreeMap<String, String> {
    let text = String::from_utf8_lossy(&run.output_head);
    text.lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(step, placement)| (step.into(), placement.into()))
        .collect()
}

/// Steps in which all native runs agree with each other, and not with the traced one.
fn moved(native: &[Finished], traced: &BTreeMap<String, String>) -> BTreeSet<String> {
    let native: Vec<_> = native.iter().map(steps).collect();
    let Some((first, others)) = native.split_first() else { return BTreeSet::new() };
    first
        .iter()
        .filter(|(step, placement)| others.iter().all(|run| run.get(*step) == Some(placement)))
        .filter(|(step, placement)| traced.get(*step) != Some(placement))
        .map(|(step, _)| step.clone())
        .collect()
}

/// Discards everything: only the end and the refused calls matter.
struct NullSink;

impl Sink for NullSink {
    fn references(&mut self, _: Owner, _: &[Reference]) {}
    fn event(&mut self, _: &Event<'_>) {}
}

#[cfg(test)]
mod tests;
