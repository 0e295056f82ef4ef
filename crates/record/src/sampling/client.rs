//! The client's side of the socket.

use std::io;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::protocol::{Answer, Command, read_answer, write_command};

/// Why a client gets no answer.
#[derive(Debug, Error)]
pub enum ClientError {
    /// There is no such file.
    #[error("{} does not exist: `heaptoll record --sample SIZE --socket PATH -- PROGRAM` makes it while the program \
    runs", .0.display())]
    NotThere(PathBuf),
    /// It is another kind of file.
    #[error("{} is not a socket: name the one given to `heaptoll record --socket`", .0.display())]
    NoSocket(PathBuf),
    /// The system refuses the connection.
    #[error("cannot connect to {}: {source}; only the user that runs the program may", .path.display())]
    Connect {
        /// The socket.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Nothing listens.
    #[error("nothing listens at {}: its heaptoll was killed; remove the socket", .0.display())]
    Left(PathBuf),
    /// The connection broke.
    #[error("{} gave no answer: {source}; the program may have ended", .path.display())]
    Broken {
        /// The socket.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The other side refuses.
    #[error("{}: {why}", .path.display())]
    Refused {
        /// The socket.
        path: PathBuf,
        /// Its reason.
        why: String,
    },
}

/// Whether a path is a socket; `None` when there is nothing.
fn is_socket(path: &Path) -> Option<bool> {
    let about = std::fs::metadata(path).ok()?;
    Some(about.file_type().is_socket())
}

/// Requests something through a socket, and waits for the answer.
///
/// # Errors
/// See [`ClientError`].
pub fn exchange(path: &Path, command: Command) -> Result<Answer, ClientError> {
    match is_socket(path) {
        None => return Err(ClientError::NotThere(path.to_owned())),
        Some(false) => return Err(ClientError::NoSocket(path.to_owned())),
        Some(true) => {}
    }
    let mut stream = UnixStream::connect(path).map_err(|source| match source.kind() {
        io::ErrorKind::ConnectionRefused => ClientError::Left(path.to_owned()),
        _ => ClientError::Connect { path: path.to_owned(), source },
    })?;
    let broken = |source| ClientError::Broken { path: path.to_owned(), source };
    write_command(command, &mut stream).map_err(broken)?;
    read_answer(&mut stream)
        .map_err(broken)?
        .map_err(|why| ClientError::Refused { path: path.to_owned(), why })
}
