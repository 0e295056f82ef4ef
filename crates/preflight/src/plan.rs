//! What the preflight runs and how: both sides of the fork read it, the tracer and the child that becomes the program.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::request::Watch;

/// What to run.
pub struct Plan<'a> {
    /// The file to execute.
    pub program: PathBuf,
    /// All arguments, the zeroth included.
    pub arguments: Vec<OsString>,
    /// The complete environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Working directory.
    pub directory: Option<PathBuf>,
    /// Standard input; `/dev/null` when `None`.
    pub stdin: Option<PathBuf>,
    /// When to stop it.
    pub limit: Duration,
    /// Set where it is to be stopped sooner.
    pub hurry: Option<&'a AtomicBool>,
    /// Whether to try ptrace.
    pub trace: bool,
    /// Polled: whether enough was seen; the run is then ended immediately.
    pub enough: &'a (dyn Fn() -> bool + Sync),
    /// Called when the time is up: whether the command has shown anything.
    pub begun: &'a (dyn Fn() -> bool + Sync),
    /// Called with the user of each image before it runs.
    pub admit: &'a (dyn Fn(u32) + Sync),
    /// How it is watched for effects, where it is; without ptrace it is not.
    pub watch: Option<&'a Watch>,
}
