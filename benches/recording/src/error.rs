//! Errors while heaptoll is measured from outside.

use thiserror::Error;

/// The reason a bench ended early.
#[derive(Debug, Error)]
pub enum BenchError {
    #[error(transparent)]
    Places(#[from] heaptoll_experiment::places::PlacesError),
    #[error(transparent)]
    Catalog(#[from] heaptoll_catalog::CatalogError),
    #[error(transparent)]
    Child(#[from] heaptoll_bench::child::ChildError),
    #[error(transparent)]
    Trace(#[from] heaptoll_trace::TraceError),
    /// The system refused something.
    #[error("{what}: {cause}; is the temporary folder writable, and not full?")]
    System {
        /// What was tried.
        what: String,
        /// The system's error.
        cause: std::io::Error,
    },
    /// An answer that is not what it should be.
    #[error("{0}")]
    Unexpected(String),
}

impl BenchError {
    /// Names what was tried.
    pub fn system(what: &str) -> impl FnOnce(std::io::Error) -> BenchError {
        let what = what.to_owned();
        move |cause| BenchError::System { what, cause }
    }
}
