//! Errors of a trace: the file is something else, newer, or the system refuses. Damage is no error: a
//! reader warns of it and returns what is whole.

use std::io;

use heaptoll_units::whole_bytes;
use thiserror::Error;

/// Why a trace cannot be read or written.
#[derive(Debug, Error)]
pub enum TraceError {
    /// The bytes are something else.
    #[error(
        "{name} is not a trace of heaptoll: it seems to be {content}; `heaptoll record` makes traces. `heaptoll \
         trace export` and `diff` also read heap profiles of pprof, DHAT, jemalloc, gperftools and Go"
    )]
    NotATrace {
        /// The file.
        name: String,
        /// What it seems to be.
        content: String,
    },
    /// The bytes are something else than a trace with pointers.
    #[error(
        "{name} is not a trace with pointers: it seems to be {content}; `heaptoll record --graph` makes traces with \
         pointers"
    )]
    NotAGraph {
        /// The file.
        name: String,
        /// What it seems to be.
        content: String,
    },
    /// Written by a later heaptoll.
    #[error(
        "{name} has version {version} of the trace format; this heaptoll reads up to version {known}. Read it with \
         the heaptoll that recorded it, or a newer one"
    )]
    Newer {
        /// The file.
        name: String,
        /// Version of the file.
        version: u32,
        /// Newest version known here.
        known: u32,
    },
    /// The system refused to open, make, read or write a file.
    #[error("cannot {action} {name}: {source}")]
    System {
        /// What was tried: `open`, `make`, `read`, `write`.
        action: &'static str,
        /// The file.
        name: String,
        /// The system's reason.
        source: io::Error,
    },
    /// The file to be made is there.
    #[error("{name} exists: choose another name, or replace it with --force")]
    Exists {
        /// The file.
        name: String,
    },
    /// Its objects take more memory than is allowed.
    #[error(
        "{name} has {more}{objects} objects at its peak: reading it needs about {} of memory, more than the limit of \
         {}; allow it with --memory-limit {}",
        whole_bytes(*needs_bytes), whole_bytes(*limit_bytes), allow(*needs_bytes)
    )]
    Memory {
        /// The file.
        name: String,
        /// `more than ` when not all of it was counted.
        more: &'static str,
        /// Most objects alive at once.
        objects: u32,
        /// Bytes that they take.
        needs_bytes: u64,
        /// Bytes that they may take.
        limit_bytes: u64,
    },
    /// An extra table cannot be read or written as JSON.
    #[error("the table `{table}` of {name} is not valid: {source}; did another version write it?")]
    Table {
        /// The file.
        name: String,
        /// Its name.
        table: String,
        /// The JSON library's reason.
        source: serde_json::Error,
    },
    /// A caller of the writer names an object that is not live.
    #[error("object {slot} is resized or freed, but it is not live: a defect in the writer of the trace")]
    NotLive {
        /// The object.
        slot: u32,
    },
    /// A caller of the writer uses a call for what it is not for.
    #[error("{kind:?} is not a kind of event that `{call}` takes")]
    WrongKind {
        /// The kind.
        kind: crate::EventKind,
        /// The function.
        call: &'static str,
    },
    /// More objects live at once than slots can be numbered.
    #[error("more than 4,294,967,294 objects are live: a trace cannot number them")]
    TooManyObjects,
}

/// A size that the command line takes and that is enough: `4G`.
fn allow(bytes: u64) -> String {
    match bytes {
        bytes if bytes >= 1 << 30 => format!("{}G", bytes.div_ceil(1 << 30)),
        bytes => format!("{}M", bytes.div_ceil(1 << 20)),
    }
}

impl TraceError {
    pub(crate) fn system(action: &'static str, name: &str, source: io::Error) -> TraceError {
        TraceError::System { action, name: name.to_string(), source }
    }

    /// The system gives no thread for reading.
    pub fn no_thread(source: io::Error) -> TraceError {
        TraceError::system("start", "a thread", source)
    }

    /// The same error again, for a further caller.
    pub(crate) fn copy(&self) -> TraceError {
        match self {
            TraceError::System { action, name, source } => {
                let source = source.raw_os_error().map_or_else(
                    || io::Error::new(source.kind(), source.to_string()),
                    io::Error::from_raw_os_error,
                );
                TraceError::System { action, name: name.clone(), source }
            }
            TraceError::Table { name, table, source } => {
                let source = serde::ser::Error::custom(source);
                TraceError::Table { name: name.clone(), table: table.clone(), source }
            }
            other => TraceError::system("write", "the trace", io::Error::other(other.to_string())),
        }
    }

    /// Whether no space was left: on the disk, in the quota, or under the file size limit.
    pub fn is_full(&self) -> bool {
        matches!(self, TraceError::System { source, .. } if crate::output::is_full(source))
    }
}
