//! Why an experiment ends early.

use heaptoll_catalog::CatalogError;
use heaptoll_experiment::experiment::Experiment;
use heaptoll_experiment::extension::NeedsLaboratory;
use heaptoll_experiment::launch::LaunchError;
use heaptoll_experiment::manager::ManagerError;
use heaptoll_experiment::places::PlacesError;
use heaptoll_experiment::runner::RunError;
use heaptoll_experiment::store::StoreError;
use heaptoll_preflight::Refusal;
use heaptoll_report::ReportError;
use thiserror::Error;

/// The reason an experiment ended early.
#[derive(Debug, Error)]
pub enum Failure {
    #[error(transparent)]
    Places(#[from] PlacesError),
    #[error(transparent)]
    Manager(#[from] ManagerError),
    #[error(transparent)]
    Laboratory(#[from] NeedsLaboratory),
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
    /// Ctrl-C before anything was measured.
    #[error("interrupted before anything was measured")]
    Interrupted,
}

impl Failure {
    /// That nothing is left, with the reasons why each stack was refused.
    pub fn nothing(what: &str, experiment: &Experiment) -> Failure {
        let refused = experiment.refused.iter();
        let reasons = refused.map(|(program, stack, why)| format!("\n  {stack} on {program}: {why}"));
        Failure::NothingToCompare(format!("{what}:{}", reasons.collect::<String>()))
    }
}
