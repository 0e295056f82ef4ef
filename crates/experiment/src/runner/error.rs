//! What stops an experiment.

use heaptoll_units::limits;
use thiserror::Error;

use crate::launch::LaunchError;
use crate::observation::Outcome;
use crate::store::StoreError;
use crate::working_copy::WorkingCopyError;

/// Something that stops the experiment; rows so far are in the file and in memory.
#[derive(Debug, Error)]
pub enum RunError {
    /// The file.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The launcher.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// Scratch folders or the statistics page.
    #[error(
        "cannot make a scratch folder: {0}; {advice}",
        advice = limits::advice_or(.0, "is the temporary folder writable and not full?")
    )]
    Scratch(std::io::Error),
    /// A run's own folder.
    #[error(transparent)]
    WorkingCopy(#[from] WorkingCopyError),
    /// The baseline itself does not work.
    #[error(
        "{program} fails under the baseline {stack} itself: {outcome}{output}{}", advice(.outcome, *.never_ready).map(|text| format!("\n{text}")).unwrap_or_default()
    )]
    BaselineFails {
        /// Program.
        program: String,
        /// Baseline stack.
        stack: String,
        /// How it ended.
        outcome: Outcome,
        /// Its last output, on a new line.
        output: String,
        /// Whether it is a server that was never ready.
        never_ready: bool,
    },
    /// A pattern of the catalog's: of the serve section, or of a program's own figures.
    #[error("a pattern in the program's catalog entry: {0}")]
    Pattern(#[from] regex_lite::Error),
    /// What a command adds to its own runs.
    #[error(transparent)]
    Around(Box<dyn std::error::Error + Send + Sync>),
}

/// What to do about a baseline that fails, where something can be done on heaptoll's side.
pub(super) fn advice(outcome: &Outcome, never_ready: bool) -> Option<String> {
    match outcome {
        Outcome::ServeFailed(_) if never_ready => {
            Some("Give --ready a pattern that matches one of the output lines above".into())
        }
        Outcome::Exit(status) => {
            Some(format!("If it ends like this when all is well, pass --expect-status {status}"))
        }
        Outcome::Timeout(_) => Some("Give it more time with --timeout, or less to do".into()),
        _ => None,
    }
}
