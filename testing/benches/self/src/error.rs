//! Errors that end a bench.

use thiserror::Error;

/// A bench that could not be made.
#[derive(Debug, Error)]
pub enum BenchError {
    /// heaptoll is not built.
    #[error(transparent)]
    Places(#[from] heaptoll_experiment::places::PlacesError),
    /// The catalog cannot be read.
    #[error(transparent)]
    Catalog(#[from] heaptoll_catalog::CatalogError),
    /// The launcher failed.
    #[error(transparent)]
    Launch(#[from] heaptoll_experiment::launch::LaunchError),
    /// An experiment failed.
    #[error(transparent)]
    Run(#[from] heaptoll_experiment::runner::RunError),
    /// The system refused something.
    #[error("{what}: {cause}")]
    System {
        /// What was tried.
        what: &'static str,
        /// The system's error.
        cause: std::io::Error,
    },
    /// A child did not answer as expected.
    #[error("{0}")]
    Unexpected(String),
}

impl BenchError {
    /// For `map_err`.
    pub fn system(what: &'static str) -> impl FnOnce(std::io::Error) -> BenchError {
        move |cause| BenchError::System { what, cause }
    }
}
