//! Why a bench ends early.

use std::path::{Path, PathBuf};

use heaptoll_command::failure::Failure;

/// The reason, with its remedy where there is one.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Places(#[from] heaptoll_experiment::places::PlacesError),
    #[error(transparent)]
    Catalog(#[from] heaptoll_catalog::CatalogError),
    #[error(transparent)]
    Manager(#[from] heaptoll_experiment::manager::ManagerError),
    #[error(transparent)]
    Launch(#[from] heaptoll_experiment::launch::LaunchError),
    #[error(transparent)]
    Run(#[from] heaptoll_experiment::runner::RunError),
    #[error(transparent)]
    Experiment(#[from] Failure),
    #[error(transparent)]
    Trace(#[from] heaptoll_trace::TraceError),
    #[error(transparent)]
    Tracer(#[from] heaptoll_reftrace_host::TracerError),
    #[error(transparent)]
    Settings(#[from] heaptoll_locality::simulation::BadSettings),
    #[error(transparent)]
    Machine(#[from] heaptoll_locality::machine::MachineError),
    #[error(transparent)]
    Report(#[from] heaptoll_report::ReportError),
    #[error("cannot write the figures as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// One of Valgrind's tools, or what it wrote.
    #[error(transparent)]
    Tool(#[from] heaptoll_callgrind::Error),
    /// malloc and free are not stepped through.
    #[error(transparent)]
    Step(#[from] crate::fastpath::tracer::StepError),
    #[error("{program} cannot run here: {reason}; scripts/setup bench installs what is missing")]
    Missing { program: String, reason: String },
    #[error("{0} is not there; build it with `make build`")]
    NotBuilt(PathBuf),
    #[error("there is no {0}; install Valgrind with: apt-get install valgrind, then run `make build`")]
    NoValgrind(PathBuf),
    /// A command that was run to its end.
    #[error("`{command}` ended with {how}: {errors}")]
    Ended {
        command: String,
        how: String,
        /// The last 500 bytes of its standard error.
        errors: String,
    },
    /// What was run did not do what it must.
    #[error("{what}: {reason}")]
    Failed { what: String, reason: String },
    /// The system refused something.
    #[error("{what}: {cause}")]
    System { what: String, cause: std::io::Error },
    #[error("interrupted")]
    Interrupted,
    /// Something is not what it must be.
    #[error("{0}")]
    Unexpected(String),
}

impl Error {
    /// Names what was tried.
    pub fn system(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Error {
        let what = what.into();
        move |cause| Error::System { what, cause }
    }

    /// Names the verb and the file.
    pub fn file(action: &str, path: &Path) -> impl FnOnce(std::io::Error) -> Error {
        Error::system(format!("cannot {action} {}", path.display()))
    }

    /// Names what was run.
    pub fn failed(what: impl Into<String>, reason: impl ToString) -> Error {
        Error::Failed { what: what.into(), reason: reason.to_string() }
    }
}
