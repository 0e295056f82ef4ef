//! What is to be proved: a command, its surroundings and a stack of shared objects.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// One question for [`preflight`](crate::preflight): does this program, run like this, get its memory from this
/// stack?
#[derive(Debug, Clone)]
pub struct Request {
    /// The program and its arguments. The program is looked up in the `PATH` of `environment` unless it has a slash.
    pub command: Vec<OsString>,
    /// The complete environment of the program; nothing else is inherited. `LD_PRELOAD` and the `HEAPTOLL_`
    /// variables in it are replaced.
    pub environment: Vec<(OsString, OsString)>,
    /// Working directory; the caller's own when `None`.
    pub directory: Option<PathBuf>,
    /// File that standard input comes from; `/dev/null` when `None`.
    pub stdin: Option<PathBuf>,
    /// Layers in front of the manager, the program's first: each forwards to the next, the last to the manager.
    pub layers: Vec<PathBuf>,
    /// What is preloaded after them, in order; the first object that exports `malloc` is the manager. Empty means
    /// glibc's own malloc.
    pub preload: Vec<PathBuf>,
    /// `libheaptoll_count.so`.
    pub count_layer: PathBuf,
    /// How long the program may run before it is stopped and judged by what was seen so far.
    pub limit: Duration,
    /// How the run is watched for what it does beyond its own memory; `None`: it is not.
    pub watch: Option<Watch>,
    /// Set by another thread to cancel: the program is killed and [`Refusal::Cancelled`](crate::Refusal) returned.
    pub cancel: Arc<AtomicBool>,
    /// Set by another thread where `limit` is over sooner: the program is stopped and judged as there.
    pub hurry: Option<Arc<AtomicBool>>,
}

/// How a run is watched for its effects ([`crate::Effect`]).
#[derive(Debug, Clone, Default)]
pub struct Watch {
    /// The processor that it is pinned to, as the kernel numbers it: how many threads a program or a manager starts may
    /// depend on the processors it sees.
    pub cpu: u32,
    /// Folders in which the run's effects do not count: its scratch folder.
    pub exempt: Vec<PathBuf>,
}
