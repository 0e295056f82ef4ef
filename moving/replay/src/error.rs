//! What may go wrong, in words for the person who began the replay.

use heaptoll_trace::TraceError;

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
        "{path} has so many objects that their tables need {needs_mib} MiB, more than {limit_mib} MiB: allow more"
    )]
    Memory {
        /// The trace.
        path: String,
        /// MiB needed.
        needs_mib: u64,
        /// MiB allowed.
        limit_mib: u64,
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
        move |source| Error::System { what, path: path.display().to_string(), source }
    }
}
