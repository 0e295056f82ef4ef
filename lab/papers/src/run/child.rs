//! One heaptoll command, run as a child until it ends, its time is over, or Ctrl-C.
//!
//! It is heaptoll itself, so a signal makes it end in order, with the figures that it has. The child has a process
//! group of its own: a terminal's Ctrl-C reaches the study alone, which passes it on once, and it dies with the study.

use std::fs::File;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use heaptoll_experiment::interrupt::Interrupt;
use rustix::process::{Pid, Signal, kill_process, kill_process_group, set_parent_process_death_signal};
use thiserror::Error;

/// Time for a command to end after the signal.
const GRACE: Duration = Duration::from_secs(20);
/// Interval of polling.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A command that cannot be run.
#[derive(Debug, Error)]
pub enum ChildError {
    /// It does not start.
    #[error("cannot start {program}: {source}")]
    Start {
        /// What.
        program: String,
        /// Why.
        source: std::io::Error,
    },
    /// Its output cannot be kept.
    #[error("cannot write {path}: {source}; is the disk full?")]
    Log {
        /// Where.
        path: String,
        /// Why.
        source: std::io::Error,
    },
}

/// Why a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndCause {
    /// By itself.
    Itself,
    /// Its time was over.
    Deadline,
    /// Ctrl-C.
    Interrupt,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    /// Exit status; `None` where a signal killed it.
    pub code: Option<i32>,
    /// Why.
    pub why: EndCause,
}

/// A command, its files, and when it must end.
pub struct Run<'a> {
    /// The executable.
    pub program: &'a Path,
    /// Its arguments.
    pub arguments: &'a [String],
    /// Standard output goes here, from its beginning.
    pub out: &'a Path,
    /// Standard error is added here.
    pub err: &'a Path,
    /// When the signal is sent.
    pub until: Option<Instant>,
    /// The signal that ends it.
    pub signal: Signal,
}

impl Run<'_> {
    /// Runs it to its end; `poll` is called at every interval.
    ///
    /// # Errors
    /// It does not start, or its output cannot be kept.
    pub fn to_end(&self, interrupt: &Interrupt, mut poll: impl FnMut()) -> Result<End, ChildError> {
        if interrupt.is_set() {
            return Ok(End { code: None, why: EndCause::Interrupt });
        }
        let mut child = self.start()?;
        let mut why = EndCause::Itself;
        let mut signalled: Option<Instant> = None;
        loop {
            match child.try_wait() {
                Ok(Some(status)) => return Ok(end(status, why)),
                Ok(None) => {}
                // It is no child of ours any more: nothing to wait for.
                Err(_) => return Ok(End { code: None, why }),
            }
            let now = Instant::now();
            match signalled {
                None if interrupt.is_set() => {
                    why = EndCause::Interrupt;
                    signalled = Some(now);
                    signal(&child, self.signal, false);
                }
                None if self.until.is_some_and(|until| now >= until) => {
                    why = EndCause::Deadline;
                    signalled = Some(now);
                    signal(&child, self.signal, false);
                }
                Some(since) if now >= since + GRACE => {
                    signal(&child, Signal::KILL, true);
                    let status = child.wait();
                    return Ok(status.map_or(End { code: None, why }, |status| end(status, why)));
                }
                _ => {}
            }
            poll();
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    fn start(&self) -> Result<Child, ChildError> {
        let log = |path: &Path, source| ChildError::Log { path: path.display().to_string(), source };
        let out = File::create(self.out).map_err(|source| log(self.out, source))?;
        let err = File::options().create(true).append(true).open(self.err);
        let err = err.map_err(|source| log(self.err, source))?;
        let mut command = Command::new(self.program);
        command.args(self.arguments).stdin(Stdio::null()).stdout(out).stderr(err).process_group(0);
        let signal = self.signal;
        // SAFETY: only `prctl` and `signal` are called between fork and exec; both are async-signal-safe system calls,
        // and no pointers are passed.
        unsafe {
            command.pre_exec(move || {
                set_parent_process_death_signal(Some(Signal::TERM))?;
                // A shell starts its background jobs with SIGINT ignored, and a command that inherits that would
                // never end in order.
                libc::signal(signal.as_raw(), libc::SIG_DFL);
                Ok(())
            });
        }
        let program = || self.program.display().to_string();
        command.spawn().map_err(|source| ChildError::Start { program: program(), source })
    }
}

fn end(status: ExitStatus, why: EndCause) -> End {
    // A command that ended by itself may still have been killed: by the system, for lack of memory.
    debug_assert!(status.code().is_some() || status.signal().is_some());
    End { code: status.code(), why }
}

/// Sends a signal to a child that has not been waited for, or to its whole group.
fn signal(child: &Child, signal: Signal, group: bool) {
    // The callers have not waited for the child, so that the number is still its own, and that of the group it leads.
    let pid = Pid::from_child(child);
    // It may have ended by itself by now.
    let _ = if group { kill_process_group(pid, signal) } else { kill_process(pid, signal) };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(script: &str, until: Option<Duration>, interrupt: &Interrupt) -> (End, String, Duration) {
        let folder = tempfile::tempdir().expect("a folder");
        let (out, err) = (folder.path().join("out"), folder.path().join("err"));
        let begun = Instant::now();
        let arguments = ["-c".to_owned(), script.to_owned()];
        let run = Run {
            program: Path::new("/bin/sh"),
            arguments: &arguments,
            out: &out,
            err: &err,
            until: until.map(|after| begun + after),
            signal: Signal::INT,
        };
        let end = run.to_end(interrupt, || {}).expect("it starts");
        (end, std::fs::read_to_string(&out).expect("it is kept"), begun.elapsed())
    }

    /// Interrupts the script with `signal` once it has written something.
    fn run_until(script: &str, signal: Signal) -> (End, String) {
        let folder = tempfile::tempdir().expect("a folder");
        let (out, err) = (folder.path().join("out"), folder.path().join("err"));
        let arguments = ["-c".to_owned(), script.to_owned()];
        let program = Path::new("/bin/sh");
        let run = Run { program, arguments: &arguments, out: &out, err: &err, until: None, signal };
        let interrupt = Interrupt::default();
        let written = || std::fs::metadata(&out).is_ok_and(|file| file.len() > 0);
        let end = run
            .to_end(&interrupt, || {
                if written() {
                    interrupt.set()
                }
            })
            .expect("it starts");
        (end, std::fs::read_to_string(&out).expect("it is kept"))
    }

    #[test]
    fn a_command_ends_by_itself_with_its_status_and_output() {
        let (end, out, _) = run("echo figures; exit 3", None, &Interrupt::default());
        assert_eq!((end, out.as_str()), (End { code: Some(3), why: EndCause::Itself }, "figures\n"));
    }

    #[test]
    fn at_its_deadline_a_command_may_end_in_order() {
        // Five seconds are for a busy machine, on which the shell sets its trap late.
        let script = "trap 'kill $!; echo partial; exit 130' INT; sleep 60 & wait";
        let (end, out, _) = run(script, Some(Duration::from_secs(5)), &Interrupt::default());
        assert_eq!((end, out.as_str()), (End { code: Some(130), why: EndCause::Deadline }, "partial\n"));
    }

    #[test]
    fn a_command_ends_in_order_also_where_heaptoll_was_started_with_the_signal_ignored() {
        // SAFETY: the call passes no function of ours; no test of this binary sends itself this signal.
        let before = unsafe { libc::signal(libc::SIGQUIT, libc::SIG_IGN) };
        let script = "trap 'kill $!; echo partial; exit 130' QUIT; sleep 60 & echo ready; wait";
        let (end, out) = run_until(script, Signal::QUIT);
        // SAFETY: `before` is the disposition that `signal` returned above.
        unsafe { libc::signal(libc::SIGQUIT, before) };
        assert_eq!(
            (end, out.as_str()),
            (End { code: Some(130), why: EndCause::Interrupt }, "ready\npartial\n")
        );
    }

    #[test]
    fn after_an_interrupt_nothing_is_started() {
        let interrupt = Interrupt::default();
        interrupt.set();
        let folder = tempfile::tempdir().expect("a folder");
        let out = folder.path().join("out");
        let run = Run {
            program: Path::new("/bin/true"),
            arguments: &[],
            out: &out,
            err: &out,
            until: None,
            signal: Signal::INT,
        };
        assert_eq!(run.to_end(&interrupt, || {}).expect("no start").why, EndCause::Interrupt);
        assert!(!out.exists());
    }
}
