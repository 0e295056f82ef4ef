//! Why a corpus cannot be made or read.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// A corpus that cannot be made or read.
#[derive(Debug, Error)]
pub enum CorpusError {
    /// A file cannot be read.
    #[error("cannot read {path}: {cause}", path = .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// A file or folder cannot be written.
    #[error("cannot write {path}: {cause}; free space there, or give another folder (-o)", path = .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// A file of the index's name that is none.
    #[error("{path} is not an index of a corpus ({why}); give another folder (-o)", path = .path.display())]
    NoIndex {
        /// The file.
        path: PathBuf,
        /// What does not fit.
        why: String,
    },
    /// A folder without an index.
    #[error("{path} has no corpus: `heaptoll lab corpus -o DIR` makes one", path = .path.display())]
    NoCorpus {
        /// The folder.
        path: PathBuf,
    },
}
