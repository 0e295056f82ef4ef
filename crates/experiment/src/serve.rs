//! A server as the program: started under a manager, driven by a load command, stopped cleanly.
//!
//! The load runs without a manager of ours, so that only the server differs. The server's CPU is counted from when it
//! is ready: reading its configuration or a snapshot is start-up.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::time::{Duration, Instant};

use heaptoll_launcher::Ended;
use regex_lite::Regex;

use crate::experiment::ServeInfo;
use crate::interrupt::Interrupt;
use crate::launch::{self, Finished, Invocation, LaunchError};
use crate::observation::ServeFigures;
use crate::sampler::{self, Sampled, Sampler};

/// How long a server may take to become ready.
const READY_PATIENCE: Duration = Duration::from_secs(30);
/// How long it may take to end after its stop signal.
const STOP_PATIENCE: Duration = Duration::from_secs(15);
/// Pace of the memory samples. Timed runs are sampled here because a server's memory over time is the question;
/// at this pace the sampler itself costs under a thousandth of a core.
const PACE: Duration = Duration::from_millis(100);

/// Pace at which it is seen that a load has ended, or its server.
const LOAD_PACE: Duration = Duration::from_millis(10);
/// How long a load may go on without its server.
const ALONE_PATIENCE: Duration = Duration::from_secs(2);

/// Lines that are kept of what a server prints until it is ready.
const LINES_KEPT: usize = 12;

/// What came out of one round with a server.
#[derive(Debug)]
pub struct Served {
    /// The server's own end and usage. Of one that was never ready `error_tail` holds the last lines of both outputs.
    pub server: Finished,
    /// Figures of the round.
    pub figures: ServeFigures,
    /// Memory over time.
    pub sampled: Sampled,
    /// Why the round does not count, if it does not.
    pub failure: Option<String>,
}

/// The number of a signal name without `SIG`.
pub fn signal_number(name: &str) -> Option<i32> {
    Some(match name.trim_start_matches("SIG") {
        "TERM" => libc::SIGTERM,
        "INT" => libc::SIGINT,
        "QUIT" => libc::SIGQUIT,
        "HUP" => libc::SIGHUP,
        "USR1" => libc::SIGUSR1,
        "USR2" => libc::SIGUSR2,
        _ => return None,
    })
}

/// Checks the patterns of a server before anything is started.
///
/// # Errors
/// One that is no regular expression, or a figures pattern without a named group.
pub fn check_patterns(ready: &str, figures: Option<&str>) -> Result<(), PatternError> {
    Regex::new(ready).map_err(PatternError::NoRegex)?;
    let Some(figures) = figures else { return Ok(()) };
    let figures = Regex::new(figures).map_err(PatternError::NoRegex)?;
    figures.capture_names().flatten().next().map(drop).ok_or(PatternError::NoNames)
}

/// A pattern that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PatternError {
    /// Not a regular expression.
    #[error("not a regular expression: {0}")]
    NoRegex(regex_lite::Error),
    /// Nothing in it is called a figure.
    #[error("the figures pattern names no group; write one as (?P<name>...)")]
    NoNames,
}

/// One round: start, wait for the ready line, load, watch it idle where that is wanted, stop. `loads` are run one after
/// the other; the second is the burst.
///
/// # Errors
/// The launcher's own failures; a server that misbehaves is a [`Served`] with a `failure`.
pub fn round(
    launcher: &Path,
    server: &Invocation,
    loads: &[Invocation],
    info: &ServeInfo,
    ready: &Regex,
    interrupt: &Interrupt,
) -> Result<Served, LaunchError> {
    let begun = Instant::now();
    let mut running = launch::start(launcher, &Invocation { follow: true, ..server.clone() }, interrupt)?;
    let Some(pid) = running.pid() else {
        let server = running.wait()?;
        let failure = Some(ending(server.ended));
        return Ok(Served { server, figures: ServeFigures::default(), sampled: Sampled::default(), failure });
    };
    let sampler = Sampler::watch(pid, PACE)?;
    let mut figures = ServeFigures::default();
    let mut printed = Printed::default();
    let readiness = await_ready(&running, ready, interrupt, &mut printed);
    running.stop_following();
    let failure = if readiness == Readiness::Ready {
        figures.ready_s = begun.elapsed().as_secs_f64();
        let before = sampler::cpu_s(pid);
        let failure = drive(launcher, pid, loads, info, interrupt, &mut figures)?;
        // Before the stop signal, since shutting down (a last snapshot, freeing everything) is not the load's work.
        figures.loaded_cpu_s = (sampler::cpu_s(pid) - before).max(0.0);
        let was_alive = is_alive(pid);
        if was_alive && failure.is_none() {
            idle(pid, &info.idle_s, interrupt, &mut figures);
        }
        if !is_alive(pid) {
            // Whatever the load reports then, this is why; and the CPU time of an ended process cannot be read.
            if !was_alive {
                figures.loaded_cpu_s = 0.0;
            }
            let server = running.wait()?;
            let what = if was_alive { "idle" } else { "loaded" };
            let failure = Some(format!("{} while it was {what}", ending(server.ended)));
            return Ok(Served { server, figures, sampled: sampler.finish(), failure });
        }
        failure
    } else if readiness == Readiness::Gone {
        let server = printed.instead_of_errors(running.wait()?);
        let failure = Some(format!("{} before a line matched `{}`", ending(server.ended), info.ready));
        return Ok(Served { server, figures, sampled: sampler.finish(), failure });
    } else {
        Some(never_ready(info))
    };
    let stop = stop_signal(info);
    let stopped_in_time = stop_cleanly(&running, stop);
    let sampled = sampler.finish();
    let mut server = running.wait()?;
    if readiness != Readiness::Ready {
        server = printed.instead_of_errors(server);
    }
    let clean = matches!(server.ended, Ended::Exit(0)) || server.ended == Ended::Signal(stop);
    let failure = failure.or_else(|| match (stopped_in_time, clean) {
        (false, _) => Some(format!("did not end within {} s of SIG{}", STOP_PATIENCE.as_secs(), info.stop)),
        (true, false) => Some(ending(server.ended)),
        _ => None,
    });
    Ok(Served { server, figures, sampled, failure })
}

/// Starts a server and waits until it is ready; of one that never is, why.
///
/// # Errors
/// The launcher's own failures.
pub(crate) fn start_ready(
    launcher: &Path,
    server: &Invocation,
    info: &ServeInfo,
    ready: &Regex,
    interrupt: &Interrupt,
) -> Result<Result<launch::Running, String>, LaunchError> {
    let mut running = launch::start(launcher, &Invocation { follow: true, ..server.clone() }, interrupt)?;
    let readiness = await_ready(&running, ready, interrupt, &mut Printed::default());
    running.stop_following();
    Ok(match readiness {
        Readiness::Ready => Ok(running),
        Readiness::Gone => {
            Err(format!("{} before a line matched `{}`", ending(running.wait()?.ended), info.ready))
        }
        Readiness::GivenUp => {
            stop_cleanly(&running, stop_signal(info));
            Err(never_ready(info))
        }
    })
}

/// The signal that stops a server.
pub(crate) fn stop_signal(info: &ServeInfo) -> i32 {
    signal_number(&info.stop).unwrap_or(libc::SIGTERM)
}

fn never_ready(info: &ServeInfo) -> String {
    format!("no line matched `{}` within {} s", info.ready, READY_PATIENCE.as_secs())
}

/// How waiting for a server came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Readiness {
    Ready,
    /// It has ended instead.
    Gone,
    /// Patience, or the user, ended the waiting.
    GivenUp,
}

/// How a process ended, as the predicate of a sentence.
fn ending(ended: Ended) -> String {
    let system = |errno: i32| std::io::Error::from_raw_os_error(errno).to_string();
    match ended {
        Ended::Exit(status) => format!("ended with exit status {status}"),
        Ended::Signal(number) => format!("was killed by signal {number}"),
        Ended::Timeout => "was over the time limit".into(),
        Ended::Cancelled => "was cancelled".into(),
        Ended::ExecFailed(errno) => format!("could not be started ({})", system(errno)),
        Ended::SetupFailed(errno) => format!("could not be set up ({})", system(errno)),
    }
}

/// The last lines of both outputs of a server that is not ready yet: the reader needs them to correct the pattern.
#[derive(Default)]
struct Printed {
    lines: VecDeque<String>,
}

impl Printed {
    fn take(&mut self, line: String) {
        if self.lines.len() == LINES_KEPT {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }

    fn instead_of_errors(self, server: Finished) -> Finished {
        let printed: Vec<String> = self.lines.into();
        let error_tail = match printed.is_empty() {
            true if server.error_tail.trim().is_empty() => "(it printed nothing)".into(),
            // A line without its end was not seen by the pattern either.
            true => server.error_tail,
            false => printed.join("\n"),
        };
        Finished { error_tail, ..server }
    }
}

fn await_ready(
    running: &launch::Running,
    ready: &Regex,
    interrupt: &Interrupt,
    printed: &mut Printed,
) -> Readiness {
    let until = Instant::now() + READY_PATIENCE;
    while Instant::now() < until && !interrupt.is_set() {
        match running.next_line(Duration::from_millis(200)) {
            Some(line) if ready.is_match(&line) => return Readiness::Ready,
            Some(line) => printed.take(line),
            // Nothing for a while, or both outputs closed: a server that is gone has no live /proc entry.
            None if running.pid().is_none_or(|pid| !is_alive(pid)) => return Readiness::Gone,
            None => {}
        }
    }
    Readiness::GivenUp
}

fn is_alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// Runs the loads of a server, until one fails or the server has ended, and gathers their reports and figures. Gives why they do not count.
pub(crate) fn drive(
    launcher: &Path,
    server: i32,
    loads: &[Invocation],
    info: &ServeInfo,
    interrupt: &Interrupt,
    figures: &mut ServeFigures,
) -> Result<Option<String>, LaunchError> {
    for (at, load) in loads.iter().enumerate() {
        let loaded = run_load(launcher, server, load, interrupt)?;
        let mut found = ServeFigures {
            load_report: String::from_utf8_lossy(&loaded.output_head).into_owned(),
            ..ServeFigures::default()
        };
        let failure = load_failure(&loaded, info, &mut found);
        figures.load_s += loaded.usage.wall_ns as f64 / 1e9;
        figures.load_report.push_str(&found.load_report);
        let is_burst = at > 0;
        let name = |name: String| if is_burst { format!("burst {name}") } else { name };
        figures.load_figures.extend(found.load_figures.into_iter().map(|(of, value)| (name(of), value)));
        // A burst need not report anything.
        if failure.is_some() && (!is_burst || loaded.ended != Ended::Exit(0)) {
            return Ok(failure);
        }
        if !is_alive(server) {
            break;
        }
    }
    Ok(None)
}

/// Runs a load to its end. One that goes on after its server has ended is ended, too: it may wait for an answer for ever.
fn run_load(
    launcher: &Path,
    server: i32,
    load: &Invocation,
    interrupt: &Interrupt,
) -> Result<Finished, LaunchError> {
    let running = launch::start(launcher, load, interrupt)?;
    let mut alone_since = None;
    while running.pid().is_some_and(is_alive) && !interrupt.is_set() {
        std::thread::sleep(LOAD_PACE);
        let is_alone = !is_alive(server);
        if is_alone && alone_since.get_or_insert_with(Instant::now).elapsed() > ALONE_PATIENCE {
            running.cancel();
            break;
        }
    }
    running.wait()
}

/// Waits, and reads the server's memory at each of these times after now; until it is gone, or Ctrl-C.
fn idle(pid: i32, times_s: &[f64], interrupt: &Interrupt, figures: &mut ServeFigures) {
    if times_s.is_empty() {
        return;
    }
    let begun = Instant::now();
    for after_s in std::iter::once(&0.0).chain(times_s) {
        let until = begun + Duration::try_from_secs_f64(*after_s).unwrap_or(Duration::MAX);
        while Instant::now() < until {
            if interrupt.is_set() || !is_alive(pid) {
                return;
            }
            std::thread::sleep(PACE.min(until.saturating_duration_since(Instant::now())));
        }
        let resident = sampler::resident_kib(pid).map(|kib| (after_s.to_string(), kib as f64));
        figures.idle_rss_kib.extend(resident);
    }
}

fn load_failure(loaded: &Finished, info: &ServeInfo, figures: &mut ServeFigures) -> Option<String> {
    if loaded.ended != Ended::Exit(0) {
        let output = loaded.error_tail.lines().last().unwrap_or_default();
        let colon = if output.is_empty() { "" } else { ": " };
        return Some(format!("its load {}{colon}{output}", ending(loaded.ended)));
    }
    let pattern = info.figures.as_deref()?;
    match Regex::new(pattern) {
        Err(error) => Some(format!("figures pattern: {error}")),
        Ok(pattern) => {
            figures.load_figures = read_figures(&pattern, &figures.load_report);
            figures
                .load_figures
                .is_empty()
                .then(|| "the load's report contains no figure that the pattern finds".into())
        }
    }
}

/// Figures in a load's report: each named group of each match is one. A group that caught no number names its match
/// and stands before the others (`SET requests_per_s`).
pub fn read_figures(pattern: &Regex, report: &str) -> BTreeMap<String, f64> {
    let mut found = BTreeMap::new();
    for captures in pattern.captures_iter(report) {
        let mut prefix = String::new();
        let mut values = Vec::new();
        for group in pattern.capture_names().flatten() {
            let Some(text) = captures.name(group).map(|text| text.as_str()) else { continue };
            match text.replace(',', "").parse::<f64>() {
                Ok(value) => values.push((group, value)),
                Err(_) => prefix = format!("{text} "),
            }
        }
        found.extend(values.into_iter().map(|(group, value)| (format!("{prefix}{group}"), value)));
    }
    found
}

/// Sends the stop signal and waits; kills the tree when patience ends. Returns whether it ended by itself.
pub(crate) fn stop_cleanly(running: &launch::Running, stop: i32) -> bool {
    let Some(pid) = running.pid() else { return true };
    running.signal(stop);
    let until = Instant::now() + STOP_PATIENCE;
    while Instant::now() < until {
        if !is_alive(pid) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    running.cancel();
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_by_group_and_match() {
        let pattern = Regex::new(r#""(?P<name>\w+)","(?P<requests_per_s>[\d.]+)","(?P<p99_ms>[\d.]+)""#)
            .expect("regex");
        let report = "\"SET\",\"1000.5\",\"0.3\"\n\"GET\",\"2000\",\"x\"\n\"LPUSH\",\"10\",\"1\"\n";
        let figures = read_figures(&pattern, report);
        assert_eq!(figures.get("SET requests_per_s"), Some(&1000.5));
        assert_eq!(figures.get("LPUSH p99_ms"), Some(&1.0));
        assert_eq!(figures.len(), 4, "the GET line does not match: {figures:?}");
        let nameless = Regex::new(r"(?P<per_s>[\d,]+) requests").expect("regex");
        assert_eq!(read_figures(&nameless, "12,000 requests").get("per_s"), Some(&12000.0));
    }

    #[test]
    fn stop_signals_have_names() {
        assert_eq!(signal_number("TERM"), Some(libc::SIGTERM));
        assert_eq!(signal_number("SIGINT"), Some(libc::SIGINT));
        assert_eq!(signal_number("NOPE"), None);
    }
}
