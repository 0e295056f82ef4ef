//! What can go wrong while layers are measured.

use thiserror::Error;

/// Why there is no figure.
#[derive(Debug, Error)]
pub enum BenchError {
    #[error(transparent)]
    Places(#[from] heaptoll_experiment::places::PlacesError),
    #[error(transparent)]
    Manager(#[from] heaptoll_experiment::manager::ManagerError),
    #[error(transparent)]
    Catalog(#[from] heaptoll_catalog::CatalogError),
    #[error(transparent)]
    Run(#[from] heaptoll_experiment::runner::RunError),
    #[error("the program of pairs could not be compiled: {0}; is there a C compiler?")]
    Build(String),
    #[error("the program of pairs under {stack}: {reason}")]
    Pair { stack: String, reason: String },
    #[error("the program of marks, {program}: {reason}; run `make build` again")]
    Marks { program: String, reason: String },
}
