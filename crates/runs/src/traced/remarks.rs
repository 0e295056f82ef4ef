//! Warnings about the figures of a traced run.

use std::path::Path;

use heaptoll_experiment::observation::Outcome;
use heaptoll_reftrace::Routine;
use heaptoll_reftrace_host::{ImageEnding, Traced, TracedImage, syscalls};
use heaptoll_units::each_once;

use super::cell::Cell;
use super::seen;
use crate::record::system_calls::{SIGSYS, TRACER, forbidden};

/// Images named one by one, at most.
const NAMED: usize = 3;

/// Everything, most important first.
pub fn of<S>(cell: &Cell, traced: &Traced<S>, outcome: &Outcome) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(why) = &traced.stopped {
        found.push(format!("heaptoll ended it early: {why}; the figures cover the run until then"));
    } else if !traced.gave_up.is_empty() {
        let why = traced.gave_up.iter();
        found.extend(why.map(|why| format!("Valgrind gave up: {why}; the figures cover the run until then")));
    } else if !outcome.is_ok() {
        found.push(match outcome {
            Outcome::WrongOutput => "its output differs from the baseline's: it did other work".into(),
            Outcome::Timeout(limit) => {
                format!("over the time limit of {limit} s: the figures cover the run until then; --timeout allows \
                more")
            }
            Outcome::Interrupted => "interrupted: the figures cover the run until then".into(),
            Outcome::Exit(status) => format!(
                "it ended with exit status {status}; if that is a good run, pass --expect-status {status}"
            ),
            other => format!("it failed: {other}; the figures cover the run until then"),
        });
        if *outcome == Outcome::Signal(SIGSYS) {
            found.push(forbidden("tracer", &[TRACER]));
        }
    }
    found.extend(images(traced));
    found.extend(served(cell, traced));
    found.extend(seen::bypassed(&cell.follow, traced));
    found.extend(refused(traced));
    found.extend(traced.warnings.iter().cloned());
    found.extend(traced.images.iter().flat_map(|image| image.warnings.iter().cloned()));
    found.extend(cell.cautions.iter().cloned());
    found.extend(cell.stack.warnings.iter().cloned());
    each_once(found)
}

/// Images that were not traced whole.
fn images<S>(traced: &Traced<S>) -> Vec<String> {
    let describe = |image: &TracedImage<S>| -> Option<String> {
        let what = format!("{} (process {})", image.image.name(), image.image.pid);
        if let Some(damage) = &image.damage {
            return Some(format!(
                "{what}: invalid trace record {:#x}, a defect of heaptoll; please report it",
                damage.word
            ));
        }
        match &image.ending {
            ImageEnding::Incomplete(why) if traced.stopped.as_ref() != Some(why) => {
                Some(format!("{what} was not traced to its end: {why}"))
            }
            ImageEnding::Unrecorded if traced.gave_up.is_empty() => Some(format!(
                "{what} did not record its end: a signal killed it, or it became an unrecorded program by exec"
            )),
            ImageEnding::Killed => Some(format!("{what} was killed: its figures cover the run until then")),
            _ => None,
        }
    };
    let mut found: Vec<String> = traced.images.iter().filter_map(describe).collect();
    if found.len() > NAMED {
        let more = found.len() - NAMED;
        found.truncate(NAMED);
        found.push(format!("{more} more processes were not traced to their ends"));
    }
    found
}

/// Whether the manager served the main image.
fn served<S>(cell: &Cell, traced: &Traced<S>) -> Option<String> {
    let main = traced.main()?;
    let object = main.routine_objects.get(&Routine::Malloc)?;
    let same = |preloaded: &String| {
        let real = |path: &str| std::fs::canonicalize(path).unwrap_or_else(|_| Path::new(path).into());
        real(preloaded) == real(object)
    };
    let is_ours = cell.stack.preload.is_empty() || cell.stack.preload.iter().any(same);
    (!is_ours).then(|| {
        format!("malloc of {} was served by {object}, not by {}", main.image.name(), cell.stack.name)
    })
}

/// System calls that failed because of the tracer.
fn refused<S>(traced: &Traced<S>) -> Vec<String> {
    let mut counts: std::collections::BTreeMap<(u32, u32), u64> = Default::default();
    for (key, count) in traced.images.iter().flat_map(|image| &image.refused) {
        *counts.entry(*key).or_default() += count;
    }
    counts
        .into_iter()
        .filter(|((call, errno), _)| !syscalls::changes_nothing(*call, *errno))
        .map(|((call, errno), count)| {
            let error = std::io::Error::from_raw_os_error(errno as i32);
            let call = syscalls::name(call);
            format!("{call} failed {count} times under the tracer ({error}); natively it may not fail")
        })
        .collect()
}
