//! What may go wrong, in words for the person who began the replay.

use std::io::ErrorKind;

use heaptoll_trace::TraceError;
use heaptoll_units::{size_text, whole_bytes};

/// A replay that cannot begin or go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The system refuses.
    #[error("cannot {what} {path}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// The file.
        path: String,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The trace has no objects.
    #[error("{0} has no objects: there is nothing to replay")]
    Empty(String),
    /// More than the form of programs can name.
    #[error("{path} has {what}, which a replay cannot name")]
    TooLarge {
        /// The trace.
        path: String,
        /// What is too large or too much.
        what: &'static str,
    },
    /// Tables of the trace's objects take more memory than is allowed.
    #[error(
        "{path} has {objects} objects: their tables need {} of memory, and {} are allowed; allow it with --memory-limit {}",
        whole_bytes(*needs_bytes), whole_bytes(*limit_bytes), size_text(needs_bytes.next_multiple_of(1 << 20))
    )]
    Memory {
        /// The trace.
        path: String,
        /// How many it has.
        objects: u64,
        /// Bytes needed.
        needs_bytes: u64,
        /// Bytes allowed.
        limit_bytes: u64,
    },
    /// Events of the trace contradict each other.
    #[error(
        "{path} is damaged, although its checksums are right: {what}; record it again, or take a copy that is whole"
    )]
    Damaged {
        /// The trace.
        path: String,
        /// What is wrong.
        what: &'static str,
    },
    /// The temporary folder is full.
    #[error(
        "there is no space left in the folder {folder}, where the trace is kept in the form that replays read: set \
         TMPDIR to a folder with more space"
    )]
    Space {
        /// The folder.
        folder: String,
    },
    /// The file of a program is not as it was written.
    #[error("{path} is no prepared replay, or damaged: {what}; prepare it from the trace again")]
    Program {
        /// The file.
        path: String,
        /// What is wrong.
        what: &'static str,
    },
    /// No such plan.
    #[error("there is no plan {name}: plans are {known}")]
    Plan {
        /// What was given.
        name: String,
        /// The known ones.
        known: String,
    },
    /// The collector refuses an option.
    #[error("the collector refuses {0}")]
    Refused(&'static str),
}

impl Error {
    /// An error of the system about a file.
    pub fn system(what: &'static str, path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Error {
        move |source| match source.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                Error::Space { folder: path.parent().unwrap_or(path).display().to_string() }
            }
            _ => Error::System { what, path: path.display().to_string(), source },
        }
    }
}
