//! What is to be gated: programs, each in two builds, and how long it may take.

use std::ffi::OsString;
use std::path::PathBuf;

use super::limits::Limits;

/// A gate.
#[derive(Debug, Clone)]
pub struct Request {
    /// The programs.
    pub programs: Vec<Entry>,
    /// The commits of which both sides are built; without them both are there.
    pub refs: Option<Refs>,
    /// Seconds that the timed runs of each program may take; by the length of a run where none were given.
    pub budget_s: Option<f64>,
    /// Seed of every random choice.
    pub seed: Option<u64>,
    /// Time limit of one invocation, s.
    pub timeout_s: f64,
    /// The words of the command, for the report.
    pub command: Vec<String>,
}

/// One program in two builds.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// What it is compared with.
    pub base: SideRequest,
    /// What is gated.
    pub new: SideRequest,
    /// Its limits.
    pub limits: Limits,
    /// Standard input of both; nothing without one.
    pub stdin: Option<PathBuf>,
    /// Exit status of success.
    pub expect_status: i32,
    /// Whether both may write different output.
    pub outputs_differ: bool,
}

/// One side of a program.
#[derive(Debug, Clone, Default)]
pub struct SideRequest {
    /// Program and arguments.
    pub command: Vec<OsString>,
    /// A manager that is put into it; its own without one.
    pub manager: Option<String>,
}

/// Two commits of the repository in whose folder heaptoll runs.
#[derive(Debug, Clone)]
pub struct Refs {
    /// The base.
    pub base: String,
    /// What is gated; the working tree as it is without one.
    pub new: Option<String>,
    /// The command that builds a tree, for `sh`; none where nothing has to be built.
    pub build: Option<String>,
}

impl Entry {
    /// A name for a program that has none: that of its file.
    pub fn name_of(command: &[OsString]) -> String {
        let first = command.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
        let name = first.rsplit('/').next().unwrap_or_default().to_owned();
        if name.is_empty() { first } else { name }
    }
}
