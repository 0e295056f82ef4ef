//! A program as it is, run once and watched, where nothing is preloaded into it and so nothing has to be proved.
//!
//! Two builds of a program are compared like this: static programs and such with an allocator of their own, too.

use std::ffi::OsString;
use std::sync::atomic::Ordering;

use crate::plan::Plan;
use crate::program::locate;
use crate::refusal::Refusal;
use crate::request::Request;
use crate::tree::{self, Ending, Run};

/// What one run of a program as it is shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Observed {
    /// What it did beyond its own memory; `None` where it was not watched.
    pub watched: Option<crate::Watched>,
    /// Whether it came to its own end within the limit.
    pub finished: bool,
    /// How it ended, in words: `exit status 0`, `killed by signal 11`.
    pub outcome: String,
    /// Whether that was this exit status.
    pub status: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The beginning of what it wrote to standard error.
    pub stderr: String,
    /// The most memory that is no file's that all its processes held at once, bytes.
    pub together_bytes: u64,
    /// Wall time, seconds.
    pub seconds: f64,
}

/// Runs `request.command` once with nothing preloaded; layers, manager and counting layer of the request are not used.
///
/// # Errors
/// It is not there, cannot be started, or the run was cancelled.
pub fn observe(request: &Request) -> Result<Observed, Refusal> {
    let environment: Vec<(OsString, OsString)> =
        request.environment.iter().filter(|(name, _)| name != "LD_PRELOAD").cloned().collect();
    let plan = Plan {
        program: locate(&request.command, &environment, request.directory.as_deref())?,
        arguments: request.command.clone(),
        environment,
        directory: request.directory.clone(),
        stdin: request.stdin.clone(),
        limit: request.limit,
        hurry: request.hurry.as_deref(),
        trace: true,
        enough: &|| false,
        begun: &|| true,
        admit: &|_| {},
        watch: request.watch.as_ref(),
    };
    let run = tree::run(&plan, &request.cancel)?;
    if request.cancel.load(Ordering::Relaxed) {
        return Err(Refusal::Cancelled);
    }
    Ok(observed(run))
}

fn observed(run: Run) -> Observed {
    let (status, signal) = match run.ending {
        Ending::Exited(status) => (Some(status), None),
        Ending::Killed(signal) => (None, Some(signal)),
        Ending::Stopped => (None, None),
    };
    Observed {
        finished: run.ending != Ending::Stopped,
        outcome: run.ending.to_string(),
        status,
        signal,
        stderr: run.stderr,
        together_bytes: run.together_bytes,
        seconds: run.elapsed.as_secs_f64(),
        watched: run.watched,
    }
}
