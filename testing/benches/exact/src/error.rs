//! Reasons for which a table cannot be made, each with its remedy.

use std::path::{Path, PathBuf};

/// Why nothing could be measured or compared.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// heaptoll is not built.
    #[error(transparent)]
    Places(#[from] heaptoll_experiment::places::PlacesError),
    /// The catalog.
    #[error(transparent)]
    Catalog(#[from] heaptoll_catalog::CatalogError),
    /// A manager that does not exist.
    #[error(transparent)]
    Manager(#[from] heaptoll_experiment::manager::ManagerError),
    /// The launcher failed.
    #[error(transparent)]
    Launch(#[from] heaptoll_experiment::launch::LaunchError),
    /// The tracer.
    #[error(transparent)]
    Tracer(#[from] heaptoll_reftrace_host::TracerError),
    /// The simulators.
    #[error(transparent)]
    Settings(#[from] heaptoll_locality::simulation::BadSettings),
    /// Caches that cannot be simulated.
    #[error(transparent)]
    Machine(#[from] heaptoll_locality::machine::MachineError),
    /// One of Valgrind's tools, or what it wrote.
    #[error(transparent)]
    Tool(#[from] heaptoll_callgrind::Error),
    /// A program that is not installed.
    #[error("{program} cannot run here: {reason}; scripts/setup bench installs what is missing")]
    Missing {
        /// The program.
        program: String,
        /// What is missing.
        reason: String,
    },
    /// A run that did not end as it must.
    #[error("{program} under {manager} by {by}: {reason}")]
    Failed {
        /// The program.
        program: String,
        /// The manager.
        manager: String,
        /// What ran it.
        by: String,
        /// How it ended, and what it printed.
        reason: String,
    },
    /// Valgrind's tools are not in its folder.
    #[error("there is no {0}; install Valgrind with: apt-get install valgrind, then run `make build`")]
    NoValgrind(PathBuf),
    /// A file or folder.
    #[error("cannot {action} {path}: {source}", path = path.display())]
    File {
        /// A verb.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// Interrupted.
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    /// Adds the verb and the file to the system's error.
    pub fn file(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.to_path_buf();
        move |source| Error::File { action, path, source }
    }
}
