//! Why nothing was sampled: each message states what happened, to what, and what to do next.

use std::io;
use std::path::PathBuf;

use heaptoll_units::limits;
use thiserror::Error;

use crate::error::RecordError;

/// A sampled run that could not begin.
#[derive(Debug, Error)]
pub enum SamplingError {
    /// As recordings.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The files that the layer shares with us cannot be made.
    #[error(
        "cannot make the files of the samples in {}: {source}; {}",
        .folder.display(),
        limits::advice_or(.source, "set TMPDIR to a folder with space")
    )]
    Folder {
        /// Where.
        folder: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Something has the socket's name.
    #[error("{} exists, and {}; name another socket with --socket", .path.display(), if *.listens { "something \
    listens there" } else { "nothing listens there: remove it if its run was killed" })]
    SocketExists {
        /// The socket.
        path: PathBuf,
        /// Whether a connection is accepted.
        listens: bool,
    },
    /// The socket cannot be made.
    #[error("cannot make the socket {}: {source}; name another one with --socket", .path.display())]
    Socket {
        /// The socket.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}
