//! What can go wrong before a manager can be judged.

use std::path::PathBuf;

/// An error of the conformance suite.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A compiler is not installed, or failed on the suite.
    #[error(transparent)]
    Tool(#[from] heaptoll_callgrind::Error),
    /// A process could not be started or waited for.
    #[error("cannot run {what}: {source}; is the machine out of processes or memory?")]
    Process {
        /// What was to run.
        what: String,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A file or folder could not be used.
    #[error("cannot {action} {path}: {source}", path = path.display())]
    File {
        /// A verb.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// heaptoll's own files are missing.
    #[error(transparent)]
    Places(#[from] heaptoll_experiment::places::PlacesError),
    /// No such manager.
    #[error(transparent)]
    Manager(#[from] heaptoll_experiment::manager::ManagerError),
    /// The catalog of programs cannot be read.
    #[error(transparent)]
    Catalog(#[from] heaptoll_catalog::CatalogError),
    /// A manager whose malloc the program does not get.
    #[error(
        "{manager} does not serve the suite: malloc came from {found}; is it a shared object of this machine that \
         exports malloc? `heaptoll run -m {manager} -- ls` gives the reason"
    )]
    NotBound {
        /// The manager, as named.
        manager: String,
        /// The file that malloc came from.
        found: String,
    },
    /// A case that the suite does not have.
    #[error("there is no case `{name}`; `heaptoll-conformance --list` lists them")]
    NoCase {
        /// The requested name.
        name: String,
    },
    /// The suite or heaptoll gave unexpected output.
    #[error("{what} gave unexpected output: {answer}")]
    Answer {
        /// The program.
        what: String,
        /// Its output.
        answer: String,
    },
    /// A report could not be put into JSON.
    #[error("cannot write the report as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// Adds the file and the verb to an I/O error.
pub fn file<T>(action: &'static str, path: &std::path::Path, result: std::io::Result<T>) -> Result<T, Error> {
    result.map_err(|source| Error::File { action, path: path.to_path_buf(), source })
}
