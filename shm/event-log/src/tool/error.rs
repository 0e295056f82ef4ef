//! Errors of the tool's side.

use std::io;
use std::path::PathBuf;

/// The reason for which a file could not be made or read.
#[derive(Debug, thiserror::Error)]
pub enum EventsError {
    /// The file could not be used.
    #[error("the events file {path} cannot be used ({error}); is its directory writable and not full?")]
    Io { path: PathBuf, error: io::Error },
    /// The limit is smaller than a file of one chunk.
    #[error("an events file of {limit} bytes has no space for events; allow at least {least} bytes")]
    TooSmall { limit: u64, least: u64 },
    /// The file is something else.
    #[error("{path} is not an events file of this version; it was overwritten or made by another heaptoll")]
    Foreign { path: PathBuf },
    /// The file is shorter or longer than its header states.
    #[error(
        "the events file {path} has {found} bytes where its header states {expected}; it was truncated, or copied in part: \
             run again"
    )]
    Truncated { path: PathBuf, expected: u64, found: u64 },
    /// A part of the file contradicts another.
    #[error(
        "the events file {path} is damaged: {what}; something other than the layer wrote to it: run again"
    )]
    Damaged { path: PathBuf, what: &'static str },
}
