//! Why seeded faults could not be tried.

use std::path::{Path, PathBuf};

/// Why seeded faults could not be tried.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read {path}: {source}; run this in a checkout of heaptoll")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("cannot write {path}: {source}; make space there, or remove the folder")]
    Write { path: PathBuf, source: std::io::Error },
    #[error("cannot run {program}: {source}; install it")]
    Run { program: &'static str, source: std::io::Error },
    #[error("git ls-files fails in {root}: {message}; run this in a checkout of heaptoll")]
    Git { root: PathBuf, message: String },
    #[error("{path} is not a list of faults: {message}")]
    List { path: PathBuf, message: String },
    #[error("no fault has {names} in its name, package or assertion; --list prints all")]
    NoneSelected { names: String },
}

impl Error {
    /// For `map_err` of a read.
    pub fn read(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
        move |source| Error::Read { path: path.to_path_buf(), source }
    }

    /// For `map_err` of a write.
    pub fn write(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
        move |source| Error::Write { path: path.to_path_buf(), source }
    }
}
