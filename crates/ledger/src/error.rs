//! What can go wrong while looking at a process.

use std::io;

use thiserror::Error;

/// Why a look could not be taken.
#[derive(Debug, Error)]
pub enum LedgerError {
    /// It has ended meanwhile.
    #[error("process {pid} has ended: its memory cannot be looked at any more")]
    Ended {
        /// Whose.
        pid: i32,
    },
    /// It is another program by now.
    #[error("process {pid} has replaced itself by another program: the blocks of the record are gone")]
    Replaced {
        /// Whose.
        pid: i32,
    },
    /// The kernel does not let us.
    #[error(
        "the kernel does not let us read {file}: run heaptoll as the user of that process or as root; a setuid program \
         cannot be looked at by others"
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
        /// What the system says.
        source: io::Error,
    },
    /// A line that no kernel writes.
    #[error("{file} has a line that cannot be understood: {line:?}")]
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
    /// A trace that was to have a ledger, and has no look and no sample.
    #[error(
        "nobody looked at this program, so there is nothing to show: it ended too soon, or the kernel did not let us; give \
         it more to do, by a larger input say"
    )]
    NoLook,
}
