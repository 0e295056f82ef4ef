//! Why a table of allocators cannot be used.

use std::path::PathBuf;

use thiserror::Error;

/// A table that cannot be used.
#[derive(Debug, Error)]
pub enum TableError {
    /// The file cannot be read.
    #[error("the table of allocators {} cannot be read: {cause}; check its path, or run `make build` again", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        cause: std::io::Error,
    },
    /// It is no TOML, or has other keys.
    #[error("the table of allocators {} is not understood: {reason}", .path.display())]
    NotUnderstood {
        /// The file.
        path: PathBuf,
        /// What is wrong, with its line.
        reason: String,
    },
    /// A family that makes no sense.
    #[error("in the table of allocators {}, family `{family}`: {reason}; docs/questions/own-allocators.md explains each key", .path.display())]
    Family {
        /// The file.
        path: PathBuf,
        /// Its name.
        family: String,
        /// What is wrong with it.
        reason: String,
    },
}
