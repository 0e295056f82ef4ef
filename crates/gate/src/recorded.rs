//! Recordings of both builds with their call sites: where a difference of memory comes from, and the counts of requests
//! where there is no tracer.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use heaptoll_experiment::launch::LaunchError;
use heaptoll_experiment::runner::environment_of;
use heaptoll_preflight::inspect_program;
use heaptoll_record::{Interrupt, Progress, RecordingOptions, Request};
use heaptoll_trace::EventKind;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

use super::metric::Metric;
use super::subject::Subject;
use heaptoll_command::context::Context;
use heaptoll_runs::record::manager_of;
use heaptoll_trace_reports::stat;

/// One recording.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Recorded {
    /// The traces of its process images, one each; in no file.
    #[serde(skip)]
    pub traces: Vec<PathBuf>,
    /// What they count, summed as traced runs are.
    pub metrics: BTreeMap<Metric, u64>,
}

/// Both, each with its trace or the reason why there is none.
#[derive(Serialize, Deserialize)]
pub struct Recordings {
    /// Of the base.
    pub base: Result<Recorded, String>,
    /// Of the new build.
    pub new: Result<Recorded, String>,
    /// Of the base once more, where that was requested and the others were made.
    pub again: Option<Result<Recorded, String>>,
}

impl Recordings {
    /// The same without recordings that no call reached, unless a traced run has shown that there is none: `requests`
    /// are its calls.
    pub fn checked(self, requests: Option<u64>) -> Recordings {
        let none = |run: &Result<Recorded, String>| {
            run.as_ref().is_ok_and(|recorded| recorded.metrics.get(&Metric::Allocations) == Some(&0))
        };
        if requests == Some(0) || !none(&self.base) {
            return self;
        }
        let why = || Err("no call of the program's reached the recording layer".to_owned());
        Recordings { base: why(), new: why(), again: None }
    }
}

/// Records both builds, one after the other, and the base once more where it is to be recorded `twice`. Where the base
/// cannot be recorded the new build is not.
pub fn record(subject: &Subject, twice: bool, context: &Context) -> Recordings {
    let base = one(subject, 0, "base.heaptoll", context);
    let new = match &base {
        Ok(_) => one(subject, 1, "new.heaptoll", context),
        Err(_) => Err("the base was not recorded".into()),
    };
    let again = (twice && new.is_ok()).then(|| one(subject, 0, "again.heaptoll", context));
    Recordings { base, new, again }
}

fn one(subject: &Subject, at: usize, name: &str, context: &Context) -> Result<Recorded, String> {
    let Subject { program, .. } = subject;
    let (stack, manager, output) = (subject.stacks[at], subject.managers[at], &subject.folder.join(name));
    let command = stack.command_in(program, output);
    reachable(&command, stack.directory())?;
    let manager = manager_of(manager, context.places, context.messages).map_err(|error| error.to_string())?;
    let own = environment_of(program, output).into_iter();
    let request = Request {
        command,
        environment: own.map(|(name, value)| (name.into(), value.into())).collect(),
        directory: stack.directory().map(Path::to_path_buf),
        stdin: Some(program.stdin.as_ref().map_or_else(|| "/dev/null".into(), PathBuf::from)),
        stdout: Some("/dev/null".into()),
        stderr: Some("/dev/null".into()),
        layer: context.places.record_layer(),
        manager,
        output: output.to_path_buf(),
        force: true,
        options: RecordingOptions { sites: true, ..RecordingOptions::default() },
        machine: vec![],
        own_group: true,
        interrupt: Interrupt::default(),
    };
    let recorded = within(subject.protocol.timeout(), context, &request)?;
    if recorded.status.map(i32::from) != Some(subject.protocol.expect_status) {
        return Err("the recorded run ended differently from the others".into());
    }
    if !recorded.is_whole() {
        let why = recorded.recordings.iter().find_map(|one| one.trouble.clone());
        let why = why.or_else(|| recorded.warnings.first().cloned());
        return Err(why.unwrap_or_else(|| "the recording is incomplete".into()));
    }
    let traces: Vec<PathBuf> = recorded.recordings.iter().map(|one| one.path.clone()).collect();
    if traces.is_empty() {
        return Err("no process was recorded".into());
    }
    let mut sums: BTreeMap<Metric, u64> = BTreeMap::new();
    for (at, one) in recorded.recordings.iter().enumerate() {
        let is_replaced =
            recorded.recordings[at + 1..].iter().any(|later| one.pid > 0 && later.pid == one.pid);
        for (metric, count) in metrics(&one.path)? {
            // What an image holds when another one replaces it is not left behind by the program.
            if is_replaced && metric == Metric::Exit {
                continue;
            }
            let sum = sums.entry(metric).or_default();
            *sum = sum.saturating_add(count);
        }
    }
    Ok(Recorded { traces, metrics: sums })
}

/// Whether the recording layer reaches the program's calls. It is loaded in front of the C library's malloc.
fn reachable(command: &[OsString], folder: Option<&Path>) -> Result<(), String> {
    let environment: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    let facts = inspect_program(command, &environment, folder).map_err(|refusal| refusal.to_string())?;
    if facts.own_exports.iter().any(|name| name == "malloc") {
        return Err(format!("{} has a malloc of its own", facts.binary.display()));
    }
    if !facts.hidden_allocator.is_empty() {
        let inside = facts.hidden_allocator.join(", ");
        return Err(format!("{} has an allocator inside ({inside})", facts.binary.display()));
    }
    Ok(())
}

/// A recording that Ctrl-C stops at once. Its program is killed then, and when it runs longer than `limit`.
fn within(
    limit: Duration,
    context: &Context,
    request: &Request,
) -> Result<heaptoll_record::RecordingOutcome, String> {
    let done = AtomicBool::new(false);
    let mut program = Started::default();
    let handle = program.handle.clone();
    let begun = Instant::now();
    let (recorded, is_over) = std::thread::scope(|scope| {
        let watch = std::thread::Builder::new().spawn_scoped(scope, || {
            while !done.load(Relaxed) {
                let is_over = begun.elapsed() > limit;
                if is_over || context.interrupt.is_set() {
                    if let Some((program, group)) = handle.get() {
                        // The descriptor is that process's, whatever its number is used for by now; the number of its
                        // group is its own as long as one of its processes runs.
                        let _ = pidfd_send_signal(program, Signal::KILL);
                        let _ = kill_process_group(*group, Signal::KILL);
                    }
                    // The first one is the program's, the second one stops the recording.
                    request.interrupt.raise();
                    request.interrupt.raise();
                    return is_over;
                }
                std::thread::sleep(Duration::from_millis(50));
            }
            false
        })?;
        let recorded = heaptoll_record::record(request, &mut program);
        done.store(true, Relaxed);
        Ok::<_, std::io::Error>((recorded, watch.join().unwrap_or(false)))
    })
    .map_err(|error| LaunchError::System(error).to_string())?;
    if is_over {
        return Err(format!("the recorded run took longer than {:.0} s", limit.as_secs_f64()));
    }
    recorded.map_err(|error| error.to_string())
}

/// The program that is being recorded, by a descriptor, and its process group.
#[derive(Default)]
struct Started {
    handle: Arc<OnceLock<(OwnedFd, Pid)>>,
}

impl Progress for Started {
    fn started(&mut self, pid: i32) {
        let Some(pid) = Pid::from_raw(pid) else { return };
        if let Ok(program) = pidfd_open(pid, PidfdFlags::empty()) {
            let _ = self.handle.set((program, pid));
        }
    }
}

/// The requests that a trace holds.
fn metrics(trace: &Path) -> Result<BTreeMap<Metric, u64>, String> {
    let (figures, _) =
        stat::measure(trace, stat::StatRequest::default()).map_err(|error| error.to_string())?;
    let requests = |kind: EventKind| kind.allocates() || kind == EventKind::Realloc;
    let kinds = |of: fn(EventKind) -> bool| figures.kinds.iter().filter(move |one| of(one.kind));
    Ok(BTreeMap::from([
        (Metric::Allocations, kinds(requests).map(|one| one.calls).sum()),
        (Metric::Bytes, kinds(requests).map(|one| one.bytes).sum()),
        (Metric::Frees, kinds(EventKind::frees).map(|one| one.calls).sum()),
        (Metric::Live, figures.peak.live_bytes),
        (Metric::Exit, figures.at_exit.bytes),
    ]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_that_no_call_reached_counts_only_where_a_traced_run_has_none_either() {
        let with = |calls: u64| {
            let metrics = BTreeMap::from([(Metric::Allocations, calls)]);
            let recorded = || Ok(Recorded { traces: vec!["t".into()], metrics: metrics.clone() });
            Recordings { base: recorded(), new: recorded(), again: None }
        };
        assert!(with(0).checked(Some(7)).base.is_err() && with(0).checked(None).new.is_err());
        assert!(with(0).checked(Some(0)).base.is_ok() && with(7).checked(None).new.is_ok());
    }
}
