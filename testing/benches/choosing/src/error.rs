//! What stops the bench.

use std::path::PathBuf;

/// Why it stops.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// heaptoll's own files.
    #[error("heaptoll's files: {0}; run make build")]
    Places(String),
    /// An experiment.
    #[error(transparent)]
    Experiment(#[from] heaptoll_command::failure::Failure),
    /// Its folder.
    #[error("no temporary folder for the experiments: {0}; is it writable and not full?")]
    Scratch(std::io::Error),
    /// An unfinished experiment.
    #[error("interrupted")]
    Interrupted,
    /// Earlier figures.
    #[error("cannot read figures from {path}: {reason}")]
    Input {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The output file.
    #[error("cannot write {path}: {reason}")]
    Output {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}
