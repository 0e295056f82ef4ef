//! Errors that prevent a table, each with a remedy.

use std::path::PathBuf;

use thiserror::Error;

/// A table that cannot be made.
#[derive(Debug, Error)]
pub enum Error {
    /// heaptoll is not built.
    #[error(transparent)]
    Places(#[from] heaptoll_experiment::places::PlacesError),
    /// The catalog cannot be read or has no such program.
    #[error(transparent)]
    Catalog(#[from] heaptoll_catalog::CatalogError),
    /// A manager that is not there.
    #[error(transparent)]
    Manager(#[from] heaptoll_experiment::manager::ManagerError),
    /// The launcher failed.
    #[error(transparent)]
    Launch(#[from] heaptoll_experiment::launch::LaunchError),
    /// An experiment failed.
    #[error(transparent)]
    Run(#[from] heaptoll_experiment::runner::RunError),
    /// A tool, or its output.
    #[error(transparent)]
    Tool(#[from] heaptoll_callgrind::Error),
    /// The statistics page.
    #[error(transparent)]
    Page(#[from] heaptoll_stats_page::PageError),
    /// A program that is not installed.
    #[error("{program}: {reason}")]
    Missing {
        /// The program.
        program: String,
        /// What has to be installed.
        reason: String,
    },
    /// A run that did not end as it must.
    #[error("{program} under {manager}: {reason}")]
    Failed {
        /// The program.
        program: String,
        /// The manager.
        manager: String,
        /// How it ended, and its standard error.
        reason: String,
    },
    /// A published table that is not as it must be.
    #[error("{path}: {reason}; take the file from the project's studies/published again", path = path.display())]
    Published {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A file to write or a folder to make.
    #[error("cannot {action} {path}: {source}", path = path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A document without the place for a table.
    #[error(
        "{path} has no block for this table: put the lines `{begin}` and `{end}` where it belongs",
        path = path.display()
    )]
    NoBlock {
        /// The document.
        path: PathBuf,
        /// The line before the block.
        begin: String,
        /// The line after it.
        end: String,
    },
    /// The layer that measures live bytes.
    #[error("{path} is not there; run `make build`, or set HEAPTOLL_LAYERS_DIR to the layers' folder", path = .0.display())]
    NoLayer(PathBuf),
    /// Interrupted.
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    /// For `map_err` on a system error of a file.
    pub fn file(action: &'static str, path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.to_path_buf();
        move |source| Error::File { action, path, source }
    }
}
