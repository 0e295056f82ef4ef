//! Why an experiment file cannot be used, or not be written any more.

use std::path::PathBuf;

use thiserror::Error;

use super::layout::LAYOUT;

/// The version of this heaptoll.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A file that cannot be used, or cannot be written any more.
#[derive(Debug, Error)]
pub enum StoreError {
    /// It exists already.
    #[error("{0} exists already; give --db another name (`heaptoll run` continues its own with --resume)")]
    Exists(PathBuf),
    /// Another run appends to it.
    #[error("another heaptoll run is writing {0}; wait for its end")]
    InUse(PathBuf),
    /// It does not exist.
    #[error(
        "{0} does not exist; experiments are written by `heaptoll run`, `delay` and `frequency` with `--db FILE`"
    )]
    Missing(PathBuf),
    /// Not a file of heaptoll's.
    #[error("{path} is not a heaptoll experiment ({reason})")]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What was seen.
        reason: String,
    },
    /// Written by a newer heaptoll.
    #[error(
        "{path} has layout {layout}, this heaptoll ({VERSION}) reads {LAYOUT}; update heaptoll: the file was written by \
         {needed}"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its layout number.
        layout: i64,
        /// The version of heaptoll that wrote it.
        needed: String,
    },
    /// A setting of a newer heaptoll.
    #[error(
        "{path} has the setting `{setting}`, which this heaptoll ({VERSION}) does not know; update heaptoll: the file was \
         written by {needed}"
    )]
    UnknownSetting {
        /// The file.
        path: PathBuf,
        /// The setting's name.
        setting: String,
        /// The version of heaptoll that wrote it.
        needed: String,
    },
    /// Damaged content.
    #[error("{path} is damaged: {reason}; `sqlite3 {path} .recover` may save rows", path = .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What does not fit.
        reason: String,
    },
    /// What was written could not be forced to the disk.
    #[error("{path} was written but is not on the disk: {cause}; free space there and try again", path = .path.display())]
    NotOnDisk {
        /// The file.
        path: PathBuf,
        /// The system's error.
        cause: std::io::Error,
    },
    /// SQLite's own failure: disk full, no permission, locked by another heaptoll.
    #[error("{path}: {advice} ({cause})", path = .path.display(), advice = advice(.cause))]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// SQLite's error.
        cause: rusqlite::Error,
    },
}

impl StoreError {
    /// Whether the file's disk is full or failing.
    pub fn is_of_the_disk(&self) -> bool {
        use rusqlite::ErrorCode::{DiskFull, SystemIoFailure};
        match self {
            StoreError::NotOnDisk { .. } => true,
            StoreError::Sqlite { cause, .. } => {
                matches!(cause.sqlite_error_code(), Some(DiskFull | SystemIoFailure))
            }
            _ => false,
        }
    }
}

fn advice(cause: &rusqlite::Error) -> &'static str {
    use rusqlite::ErrorCode;
    match cause.sqlite_error_code() {
        Some(ErrorCode::DiskFull | ErrorCode::SystemIoFailure) => {
            "the disk is full or failing; rows so far are kept"
        }
        Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied | ErrorCode::ReadOnly) => {
            "cannot be opened for writing; check the folder and its permissions"
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => "is in use by another heaptoll",
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => "is not an intact SQLite file",
        _ => "cannot be read or written",
    }
}
