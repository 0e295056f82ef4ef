//! Errors of building peers: each states what happened, to what, and what to do next.

use std::path::PathBuf;

/// An error of `heaptoll-peers`.
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
    /// There is no compiler, or recipes or folders are not as they must be.
    #[error(transparent)]
    Recipe(#[from] heaptoll_peers::RecipeError),
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
