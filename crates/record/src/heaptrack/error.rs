//! Why a recording of heaptrack does not become a trace.

use std::io;

use heaptoll_trace::TraceError;
use heaptoll_units::whole_bytes;
use thiserror::Error;

/// Why a recording of heaptrack does not become a trace.
#[derive(Debug, Error)]
pub enum HeaptrackError {
    /// It begins with another line.
    #[error("{name} is not a recording of heaptrack, which begins with its version: `v 10400 3`")]
    NotHeaptrack {
        /// The file.
        name: String,
    },
    /// A file format that is not known.
    #[error(
        "{name} has version {version} of heaptrack's file format, but this heaptoll reads versions 1 to 3. Record \
         the program with heaptrack 1.1 to 1.5, or with `heaptoll record --sites`"
    )]
    OtherVersion {
        /// The file.
        name: String,
        /// Its version; 0 where it states none.
        version: u64,
    },
    /// A line has something else than heaptrack writes.
    #[error("line {line} of {name} is not valid: {what}; the file is damaged, or another program wrote it")]
    Malformed {
        /// The file.
        name: String,
        /// The line's number, from 1.
        line: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// It ends before its first event.
    #[error("{name} ends before its first event: it was cut off, or the program ended before it allocated")]
    Empty {
        /// The file.
        name: String,
    },
    /// Its tables or objects take more memory than is allowed.
    #[error(
        "{name} needs more than the memory limit of {}, at its line {line}: allow more with --memory-limit",
        whole_bytes(*limit_bytes)
    )]
    Memory {
        /// The file.
        name: String,
        /// Where, from 1.
        line: u64,
        /// The limit.
        limit_bytes: u64,
    },
    /// The system does not let it be read.
    #[error("cannot read {name}: {source}")]
    Read {
        /// The file.
        name: String,
        /// The system's reason.
        source: io::Error,
    },
    /// The trace cannot be written.
    #[error(transparent)]
    Trace(#[from] TraceError),
}
