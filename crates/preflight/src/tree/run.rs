//! What one run of a command shows: how it ended, and the images that its processes executed.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::effects::Watched;
use crate::killed::killed_by;

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// By itself, with this status.
    Exited(i32),
    /// By a signal that was not ours.
    Killed(i32),
    /// By us, at the limit.
    Stopped,
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ending::Exited(status) => write!(f, "exit status {status}"),
            Ending::Killed(signal) => write!(f, "killed by signal {signal}"),
            Ending::Stopped => write!(f, "stopped at the time limit"),
        }
    }
}

/// One `exec`.
#[derive(Debug, Clone)]
pub struct Image {
    /// Process id.
    pub pid: i32,
    /// The file executed.
    pub exe: PathBuf,
    /// The user that decides which files it may open.
    pub user: u32,
    /// Whether a dynamic loader was started with it.
    pub loader: bool,
    /// Whether the kernel set `AT_SECURE`, which makes the loader ignore `LD_PRELOAD`.
    pub secure: bool,
    /// Its `LD_PRELOAD`.
    pub preload: Option<OsString>,
    /// CPU time of the image, processes forked from it included, ns.
    pub cpu_ns: u64,
    /// The most that one of its processes held in memory that is no file's, bytes; known of processes that came to their
    /// own end.
    pub anonymous_bytes: u64,
}

/// What was seen.
#[derive(Debug)]
pub struct Run {
    /// How the command ended.
    pub ending: Ending,
    /// Whether it was killed where its stack ends.
    pub stack_was_full: bool,
    /// Process id of the command.
    pub pid: i32,
    /// Beginning of standard error.
    pub stderr: String,
    /// Every `exec`, in order; empty when not traced.
    pub images: Vec<Image>,
    /// From when on a process belongs to which image: (pid, `CLOCK_MONOTONIC` ns, image).
    pub changes: Vec<(i32, u64, usize)>,
    /// Whether ptrace was permitted.
    pub traced: bool,
    /// The most memory that is no file's that all its processes held at once, bytes, as sampled; 0 without ptrace.
    pub together_bytes: u64,
    /// The peak of resident memory as the kernel counts it for the whole command, bytes: images that were replaced by exec
    /// included. Where the command has less, the peak of this process when it started it.
    pub peak_bytes: u64,
    /// The most resident memory of an image that came to its end, bytes; 0 without ptrace.
    pub resident_bytes: u64,
    /// What it did beyond its own memory; `None` when it was not watched.
    pub watched: Option<Watched>,
    /// Wall time.
    pub elapsed: Duration,
}

impl Run {
    /// How the command ended, and by what it may have been killed.
    pub fn end_in_words(&self) -> String {
        match self.ending {
            Ending::Killed(_) if self.stack_was_full => format!(
                "{} (its stack was full: its last access was next to its stack pointer, outside any mapping)",
                self.ending
            ),
            Ending::Killed(signal) => killed_by(signal),
            other => other.to_string(),
        }
    }

    /// The image that a process was at a time.
    pub fn image_at(&self, pid: i32, time_ns: u64) -> Option<usize> {
        let mine = || self.changes.iter().filter(|c| c.0 == pid);
        // The first change of a fresh process is seen shortly after it begins to run.
        mine().rfind(|c| c.1 <= time_ns).or_else(|| mine().next()).map(|c| c.2)
    }
}
