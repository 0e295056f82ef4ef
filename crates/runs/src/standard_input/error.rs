//! Why heaptoll's standard input cannot be given to each run.

use std::path::PathBuf;
use std::time::Duration;

use heaptoll_units::{limits, whole_bytes};
use thiserror::Error;

/// The reason.
#[derive(Debug, Error)]
pub enum StandardInputError {
    /// A pipe that ends late or never.
    #[error(
        "standard input is a pipe that did not end and was silent for {} s ({} so far). Use `< /dev/null` if the \
         program reads nothing; else write its input to a file and use `< FILE`",
        .silence.as_secs(), whole_bytes(*.bytes)
    )]
    Silent {
        /// How long nothing came.
        silence: Duration,
        /// What came before.
        bytes: u64,
    },
    /// More than is kept.
    #[error(
        "standard input is a pipe with more than {}, the most that heaptoll keeps: write it to a file and use `< \
         FILE`",
        whole_bytes(*.most_bytes)
    )]
    TooMuch {
        /// The most that is kept.
        most_bytes: u64,
    },
    /// The copy cannot be written.
    #[error(
        "cannot keep standard input in {} for the runs: {cause}; {}",
        .folder.display(),
        limits::advice_or(.cause, "set TMPDIR to a folder with space, or write it to a file and use `< FILE`")
    )]
    Keep {
        /// Where it is kept.
        folder: PathBuf,
        /// The system's error.
        cause: std::io::Error,
    },
    /// It cannot be read.
    #[error("cannot read standard input: {0}; give a file, `< FILE`, or none, `< /dev/null`")]
    Read(std::io::Error),
}
