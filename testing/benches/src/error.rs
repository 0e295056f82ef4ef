//! Why a bench of recordings or of profiles ends early.

use std::path::Path;

use heaptoll_command::failure::Failure;
use thiserror::Error;

/// The reason.
#[derive(Debug, Error)]
pub enum BenchError {
    #[error(transparent)]
    Places(#[from] heaptoll_experiment::places::PlacesError),
    #[error(transparent)]
    Catalog(#[from] heaptoll_catalog::CatalogError),
    #[error(transparent)]
    Child(#[from] crate::child::ChildError),
    #[error(transparent)]
    Trace(#[from] heaptoll_trace::TraceError),
    /// A profile cannot be read.
    #[error("{path}: {failure}")]
    Profile {
        /// The profile.
        path: String,
        /// Why.
        failure: Box<Failure>,
    },
    /// The system refused something.
    #[error("{what}: {cause}; is the temporary folder writable, and not full?")]
    System {
        /// What was tried.
        what: String,
        /// The system's error.
        cause: std::io::Error,
    },
    /// Something is not what it must be.
    #[error("{0}")]
    Unexpected(String),
}

impl BenchError {
    /// Names what was tried.
    pub fn system(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> BenchError {
        let what = what.into();
        move |cause| BenchError::System { what, cause }
    }

    /// Names the profile.
    pub fn profile(path: &Path) -> impl FnOnce(Failure) -> BenchError {
        let path = path.display().to_string();
        move |failure| BenchError::Profile { path, failure: Box::new(failure) }
    }
}
