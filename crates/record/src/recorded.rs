//! The result of a recording.

use std::path::PathBuf;
use std::time::Duration;

/// One process image and its trace.
#[derive(Debug, Clone, PartialEq)]
pub struct Recording {
    /// The trace.
    pub path: PathBuf,
    /// Process number.
    pub pid: i32,
    /// The file it executed; empty when it had ended before that could be read.
    pub exe: PathBuf,
    /// How it ended, as text.
    pub how: String,
    /// Events in the trace.
    pub events: u64,
    /// Snapshots of its memory in the trace.
    pub snapshots: usize,
    /// Size of the trace, bytes.
    pub bytes: u64,
    /// Events that could not be kept.
    pub lost: u64,
    /// Blocks that were freed past the layer.
    pub unseen_frees: u64,
    /// Why not; `None` when all are there.
    pub trouble: Option<String>,
}

/// The result of a recording.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RecordingOutcome {
    /// The traces, that of the first process image first.
    pub recordings: Vec<Recording>,
    /// The first process's exit status; 128 plus the number of the signal that killed it. `None` when the recording
    /// stopped while it ran.
    pub status: Option<u8>,
    /// From its start to the end of the last of its processes that was recorded.
    pub wall: Duration,
    /// What is in no trace, as messages.
    pub warnings: Vec<String>,
}

impl RecordingOutcome {
    /// Events in all traces.
    pub fn events(&self) -> u64 {
        self.recordings.iter().map(|recording| recording.events).sum()
    }

    /// Whether nothing is known of any process: no call, and no snapshot of what it mapped.
    pub fn is_empty(&self) -> bool {
        self.recordings.iter().all(|recording| recording.events == 0 && recording.snapshots == 0)
    }

    /// Size of all traces, bytes.
    pub fn bytes(&self) -> u64 {
        self.recordings.iter().map(|recording| recording.bytes).sum()
    }

    /// Whether every event of every process that was to be recorded was kept.
    pub fn is_whole(&self) -> bool {
        self.warnings.is_empty() && self.recordings.iter().all(|recording| recording.trouble.is_none())
    }
}

/// Receives notices while the program is recorded. It is called from the loop that drains the rings: it must not take
/// long.
pub trait Progress {
    /// The program has been started.
    fn started(&mut self, _pid: i32) {}

    /// A process image, other than the first, is being recorded into this file.
    fn follows(&mut self, _pid: i32, _path: &std::path::Path) {}

    /// The first process has ended, but others that it started have not. Called once, some seconds later.
    fn waits_for(&mut self, _pids: &[i32]) {}

    /// Something that the user must know at once, as a message: a full disk.
    fn trouble(&mut self, _text: &str) {}
}

/// Ignores all notices.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {}
