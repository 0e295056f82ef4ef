//! Errors of building a peer: each states what happened, to what, and what to do next.

use std::path::PathBuf;

/// An error of the peer builder.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// `cargo metadata` did not answer, with the network and without.
    #[error("cargo cannot list the peers' source crates of {manifest}: {message}\nrun `cargo fetch --manifest-path {manifest}` with network access (it also brings Cargo.lock up to date), then try again", manifest = manifest.display())]
    Metadata {
        /// The manifest that names the crates.
        manifest: PathBuf,
        /// Cargo's own message.
        message: String,
    },
    /// A crate that carries a peer's source is not among the dependencies.
    #[error("the crate {0} is not in the dependency list; add it to the peer builder's Cargo.toml")]
    NoCrate(&'static str),
    /// A crate's source is laid out differently from what the recipe expects.
    #[error("{what} in {path}: the crate's layout has changed, its recipe must follow", path = path.display())]
    Layout {
        /// What was sought.
        what: String,
        /// Where it was sought.
        path: PathBuf,
    },
    /// A tool of the build is not installed or failed.
    #[error(transparent)]
    Tool(#[from] heaptoll_callgrind::Error),
    /// A shared object lacks members of the malloc family.
    #[error("{path} does not export {missing}: preloaded, those calls would go to glibc with foreign blocks", path = path.display(), missing = missing.join(", "))]
    Missing {
        /// The object.
        path: PathBuf,
        /// The members it lacks.
        missing: Vec<String>,
    },
    /// A file is not a shared object that can be read.
    #[error("{path} is not a readable ELF shared object: {message}", path = path.display())]
    NotElf {
        /// The file.
        path: PathBuf,
        /// Why.
        message: String,
    },
    /// The built object does not work when preloaded.
    #[error("{path} was built but fails its smoke run: {message}", path = path.display())]
    Smoke {
        /// The object.
        path: PathBuf,
        /// What went wrong.
        message: String,
    },
    /// A file or a folder cannot be read or written.
    #[error("cannot {action} {path}: {source}", path = path.display())]
    File {
        /// A verb: read, write, create...
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A worker ended before a peer was finished.
    #[error("the build of {0} was never finished: a worker panicked; this is a defect of heaptoll-peers")]
    Unfinished(&'static str),
    /// A comparison lacks something it needs.
    #[error("{0}")]
    Fairness(String),
}

/// Adds the file and the verb to an I/O error.
pub trait IoContext<T> {
    /// Turns an I/O error into [`Error::File`].
    fn context(self, action: &'static str, path: &std::path::Path) -> Result<T, Error>;
}

impl<T> IoContext<T> for std::io::Result<T> {
    fn context(self, action: &'static str, path: &std::path::Path) -> Result<T, Error> {
        self.map_err(|source| Error::File { action, path: path.to_path_buf(), source })
    }
}
