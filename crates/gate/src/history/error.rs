//! Why a history cannot be used, or not be written.

use std::path::PathBuf;

use thiserror::Error;

/// A history that cannot be used, or not be written.
#[derive(Debug, Error)]
pub enum HistoryError {
    /// It does not exist.
    #[error("{0} does not exist; `heaptoll gate --history FILE` makes it")]
    Missing(PathBuf),
    /// Not a file of a gate.
    #[error("{path} is not a history of heaptoll gate ({reason})")]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What was seen.
        reason: String,
    },
    /// Written by a later heaptoll.
    #[error(
        "{path} has layout {layout}, this heaptoll ({}) knows {known}; update heaptoll: the file was written by {needed}",
        heaptoll_command::version::OURS
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its layout.
        layout: i64,
        /// The latest that is known here.
        known: i64,
        /// The version of heaptoll that wrote it.
        needed: String,
    },
    /// SQLite's own failure: disk full, no permission, in use, damaged.
    #[error("{path}: {cause}; its folder must be writable, and no other program may keep it open for long")]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// SQLite's error.
        cause: rusqlite::Error,
    },
}
