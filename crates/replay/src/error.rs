//! What can keep a replay from being made.

use std::io;
use std::path::PathBuf;

use heaptoll_trace::TraceError;
use thiserror::Error;

/// A replay that cannot be made, or not be continued.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The trace has nothing to replay.
    #[error(
        "{trace} has no call that can be replayed ({skipped} were left out: they failed, or use unknown blocks). Was \
         the program recorded from its beginning?"
    )]
    Empty {
        /// The trace.
        trace: String,
        /// Calls that were left out.
        skipped: u64,
    },
    /// The flattened trace does not fit.
    #[error(
        "no space for the driver's copy of the trace ({needed_mib} MiB so far) in {folder}: {source}; free some, or \
         set TMPDIR to a folder with space"
    )]
    NoSpace {
        /// Where it was put.
        folder: PathBuf,
        /// What was written until then, MiB.
        needed_mib: u64,
        /// The system's error.
        source: io::Error,
    },
    /// More objects at once than slots can be numbered.
    #[error(
        "the trace (times --scale) has more than 4294967295 live objects, the most that a replay can number"
    )]
    TooManyObjects,
    /// Tables that this machine has no memory for.
    #[error(
        "the driver's table of {slots} objects takes {needed_mib} MiB, but this machine has {available_mib} MiB \
         free; use more memory or a smaller --scale"
    )]
    TableTooLarge {
        /// Objects at once.
        slots: u64,
        /// Its size, MiB.
        needed_mib: u64,
        /// What is free, MiB.
        available_mib: u64,
    },
    /// Blocks that would be written and this machine has no memory for.
    #[error(
        "the trace's objects take up to {live_mib} MiB, but this machine has {available_mib} MiB free; use --touch \
         none, a smaller --scale, or more memory"
    )]
    LiveTooLarge {
        /// Largest live bytes, MiB.
        live_mib: u64,
        /// What is free, MiB.
        available_mib: u64,
    },
    /// One of heaptoll's own pieces is missing.
    #[error("{what} is missing: {path}; run `make build` in the source tree, or install heaptoll again")]
    Missing {
        /// The piece.
        what: &'static str,
        /// Where it should be.
        path: PathBuf,
    },
    /// A process, pipe or file that the system does not give.
    #[error("cannot {what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// The driver's own cost could not be measured, so no figure would mean anything.
    #[error("the driver fails under the manager that does nothing, so its own cost is unknown: {0}")]
    OwnCost(String),
}

impl ReplayError {
    /// An error of the system's.
    pub fn system(what: &'static str) -> impl FnOnce(io::Error) -> ReplayError {
        move |source| ReplayError::System { what, source }
    }
}
