//! Errors of a sample.

use std::io;

use thiserror::Error;

/// Why a sample could not be taken.
#[derive(Debug, Error)]
pub enum LedgerError {
    /// It has ended meanwhile.
    #[error("process {pid} has ended: its memory can no longer be read")]
    Ended {
        /// Its number.
        pid: i32,
    },
    /// It is another program by now.
    #[error("process {pid} replaced itself by another program: the recorded blocks are gone")]
    Replaced {
        /// Its number.
        pid: i32,
    },
    /// The kernel denies it.
    #[error(
        "the kernel does not allow heaptoll to read {file}: run heaptoll as that process's user or as root; only \
         root can read a set-user-ID program"
    )]
    Denied {
        /// In `/proc`.
        file: String,
    },
    /// Any other failure.
    #[error("cannot read {file}: {source}")]
    Read {
        /// In `/proc`.
        file: String,
        /// The system's reason.
        source: io::Error,
    },
    /// A line that no kernel writes.
    #[error("{file} has an unknown line: {line:?}")]
    Parse {
        /// In `/proc`.
        file: String,
        /// The line.
        line: String,
    },
    /// A trace that cannot be read.
    #[error(transparent)]
    Trace(#[from] heaptoll_trace::TraceError),
    /// A trace without what the ledger needs.
    #[error(
        "this trace has no ledger and no samples of resident memory: record it again with `heaptoll record --ledger`, or \
         run `heaptoll ledger -- COMMAND`"
    )]
    NotRecorded,
    /// A trace that was to have a ledger, and has no snapshot and no sample.
    #[error(
        "this program was never sampled, so there is nothing to show. If no message names the reason, it ended too \
         soon or the kernel did not allow it; give it more work, such as a larger input"
    )]
    NoSnapshot,
}
