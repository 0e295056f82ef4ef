//! Errors that prevent a table.

use std::path::{Path, PathBuf};

/// Why nothing, or not all, could be measured.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// heaptoll's own pieces are not there.
    #[error(transparent)]
    Places(#[from] heaptoll_experiment::places::PlacesError),
    /// A manager that is not known, or a description that cannot be read.
    #[error(transparent)]
    Manager(#[from] heaptoll_experiment::manager::ManagerError),
    /// The catalog.
    #[error(transparent)]
    Catalog(#[from] heaptoll_catalog::CatalogError),
    /// An experiment that stopped.
    #[error(transparent)]
    Run(#[from] heaptoll_experiment::runner::RunError),
    /// The page of curves.
    #[error(transparent)]
    Report(#[from] heaptoll_report::ReportError),
    /// A program of the catalog that cannot run here.
    #[error("{program} cannot run here: {reason}; scripts/setup bench installs what is missing")]
    Missing {
        /// Its name.
        program: String,
        /// What is missing.
        reason: String,
    },
    /// A bundled binary that was not built.
    #[error("{0} is not there; build it with `make build`")]
    NotBuilt(PathBuf),
    /// A file that cannot be read or written.
    #[error("cannot {action} {path}: {cause}", path = .path.display())]
    File {
        /// A verb.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        cause: std::io::Error,
    },
    /// The program whose heap is marked cannot be compiled.
    #[error("cc cannot compile the program whose heap is marked: {0}")]
    Compiler(String),
    /// It ran, and reported nothing.
    #[error("marking under {stack}: {reason}")]
    Marking {
        /// The stack.
        stack: String,
        /// How it ended, and its standard error.
        reason: String,
    },
    /// JSON that cannot be made.
    #[error("cannot write the figures as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

impl Error {
    /// Adds the verb and the file to the system's error.
    pub fn file(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.to_path_buf();
        move |cause| Error::File { action, path, cause }
    }
}
