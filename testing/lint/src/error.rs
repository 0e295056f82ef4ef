//! Why a check could not be made.

use std::path::{Path, PathBuf};

/// Why a check could not be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read {path}: {source}; run this in a checkout of heaptoll")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{path} is not valid: {message}")]
    Rules { path: PathBuf, message: String },
    #[error("cargo metadata of {path} fails: {message}")]
    Metadata { path: PathBuf, message: String },
    #[error("cannot parse {path}: {message}; cargo check shows the place")]
    Parse { path: PathBuf, message: String },
}

impl Error {
    /// For `map_err` of a read.
    pub fn read(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
        move |source| Error::Read { path: path.to_path_buf(), source }
    }

    /// For `map_err` of a rule file.
    pub fn rules(path: &Path, message: impl std::fmt::Display) -> Error {
        Error::Rules { path: path.to_path_buf(), message: message.to_string() }
    }
}
