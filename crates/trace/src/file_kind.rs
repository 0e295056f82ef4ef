//! The kinds of files that are made of chunks, which their first bytes show.

use crate::error::TraceError;
use crate::format::{FILE_MAGIC, GRAPH_MAGIC};

/// The kinds of files that are made of chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A trace.
    Trace,
    /// A trace with pointers.
    Graph,
}

impl FileKind {
    /// The first bytes.
    pub(crate) fn magic(self) -> [u8; 8] {
        match self {
            FileKind::Trace => FILE_MAGIC,
            FileKind::Graph => GRAPH_MAGIC,
        }
    }

    /// The error for another file.
    pub(crate) fn refuse(self, name: &str, content: String) -> TraceError {
        let name = name.to_string();
        match self {
            FileKind::Trace => TraceError::NotATrace { name, content },
            FileKind::Graph => TraceError::NotAGraph { name, content },
        }
    }
}
