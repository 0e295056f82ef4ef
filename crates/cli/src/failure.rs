//! Why a command ends early, and the exit status for it.
//!
//! 0: all well. 1: something was measured and something went wrong (a manager failed, an output file could not be
//! written, ...). 2: nothing was measured because the request cannot be carried out. 130: Ctrl-C.

use heaptoll_catalog::CatalogError;
use heaptoll_experiment::launch::LaunchError;
use heaptoll_experiment::manager::ManagerError;
use heaptoll_experiment::places::PlacesError;
use heaptoll_experiment::runner::RunError;
use heaptoll_experiment::store::StoreError;
use heaptoll_preflight::Refusal;
use heaptoll_report::ReportError;
use thiserror::Error;

/// Exit status: something measured went wrong.
pub const TROUBLE: u8 = 1;
/// Exit status: the request cannot be carried out.
pub const REFUSED: u8 = 2;
/// Exit status: Ctrl-C.
pub const INTERRUPTED: u8 = 130;

/// The reason a command ended early.
#[derive(Debug, Error)]
pub enum Failure {
    #[error(transparent)]
    Places(#[from] PlacesError),
    #[error(transparent)]
    Manager(#[from] ManagerError),
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    #[error(transparent)]
    Preflight(#[from] Refusal),
    #[error(transparent)]
    Launch(#[from] LaunchError),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Report(#[from] ReportError),
    /// A trace that cannot be read or written, or a request about it that cannot be carried out: the typed error of
    /// the crate that found it.
    #[error(transparent)]
    Refused(Box<dyn std::error::Error>),
    /// Something went wrong on the way; what was kept until then is kept.
    #[error(transparent)]
    Trouble(Box<dyn std::error::Error>),
    /// A request that makes no sense.
    #[error("{0}")]
    Usage(String),
    /// Nothing is left to compare.
    #[error("{0}")]
    NothingToCompare(String),
    /// Signals could not be caught.
    #[error("cannot watch for Ctrl-C: {0}")]
    Signals(std::io::Error),
    /// Standard output is closed or full.
    #[error("cannot write to standard output: {0}")]
    Stdout(std::io::Error),
    /// Ctrl-C before anything was measured.
    #[error("interrupted before anything was measured")]
    Interrupted,
}

impl Failure {
    /// The exit status.
    pub fn code(&self) -> u8 {
        match self {
            Failure::Run(_) | Failure::Stdout(_) | Failure::Report(_) | Failure::Trouble(_) => TROUBLE,
            Failure::Interrupted | Failure::Preflight(Refusal::Cancelled) => INTERRUPTED,
            _ => REFUSED,
        }
    }
}
