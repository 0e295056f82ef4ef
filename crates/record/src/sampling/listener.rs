//! The socket through which a client wakes the layers and gets profiles. It belongs to this process, not to the program:
//! what the program forks or executes does not have it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::Mode;

use super::error::SamplingError;
use super::protocol::{Answer, Command, read_command, write_answer};

/// A client that neither sends nor reads anything for so long is left.
const PATIENCE: Duration = Duration::from_secs(5);

/// The socket, which goes with this.
#[derive(Debug)]
pub struct Listener {
    socket: UnixListener,
    path: PathBuf,
}

impl Drop for Listener {
    fn drop(&mut self) {
        // It may have been removed already.
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Listener {
    /// Makes the socket, which only this user may connect to.
    ///
    /// # Errors
    /// It exists, or cannot be made.
    pub fn bind(path: &Path) -> Result<Listener, SamplingError> {
        let failed = |source: io::Error| SamplingError::Socket { path: path.to_owned(), source };
        let address = rustix::net::SocketAddrUnix::new(path).map_err(|error| failed(error.into()))?;
        let socket = rustix::net::socket_with(
            rustix::net::AddressFamily::UNIX,
            rustix::net::SocketType::STREAM,
            rustix::net::SocketFlags::CLOEXEC | rustix::net::SocketFlags::NONBLOCK,
            None,
        )
        .map_err(|error| failed(error.into()))?;
        // The socket's file gets the mode that the socket has before: there is no time at which others may connect.
        rustix::fs::fchmod(&socket, Mode::RUSR | Mode::WUSR).map_err(|error| failed(error.into()))?;
        match rustix::net::bind(&socket, &address) {
            Ok(()) => {}
            Err(rustix::io::Errno::ADDRINUSE) => {
                let listens = UnixStream::connect(path).is_ok();
                return Err(SamplingError::SocketExists { path: path.to_owned(), listens });
            }
            Err(error) => return Err(failed(error.into())),
        }
        let listener = Listener { socket: UnixListener::from(socket), path: path.to_owned() };
        rustix::net::listen(&listener.socket, 16).map_err(|error| failed(error.into()))?;
        Ok(listener)
    }

    /// Serves a client, if one waits.
    pub fn serve(&self, answer: &mut dyn FnMut(Command) -> Result<Answer, String>) {
        let Ok((mut client, _)) = self.socket.accept() else { return };
        // A client that hangs or has gone does not concern the program.
        let _ = serve_one(&mut client, answer);
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn serve_one(
    client: &mut UnixStream,
    answer: &mut dyn FnMut(Command) -> Result<Answer, String>,
) -> io::Result<()> {
    client.set_nonblocking(false)?;
    client.set_read_timeout(Some(PATIENCE))?;
    client.set_write_timeout(Some(PATIENCE))?;
    // Read in any case: a connection that is closed before breaks on the other side, without the answer.
    let command = read_command(client)?;
    let peer = rustix::net::sockopt::socket_peercred(&*client)?.uid;
    if peer != rustix::process::geteuid() && !peer.is_root() {
        return write_answer(Err("another user samples this program"), client);
    }
    match command {
        Some(command) => {
            let answer = answer(command);
            write_answer(answer.as_ref().map_err(String::as_str), client)
        }
        None => {
            write_answer(Err("unknown request: both sides must have the same version of heaptoll"), client)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::sampling::client::exchange;

    #[test]
    fn a_name_that_is_taken_is_refused_and_the_socket_goes() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("s");
        let listener = Listener::bind(&path).expect("binds");
        assert_eq!(path.metadata().expect("there").permissions().mode() & 0o777, 0o600);
        assert!(matches!(Listener::bind(&path), Err(SamplingError::SocketExists { listens: true, .. })));
        drop(listener);
        assert!(!path.exists());
        std::fs::write(&path, "mine").expect("writes");
        assert!(matches!(Listener::bind(&path), Err(SamplingError::SocketExists { listens: false, .. })));
        assert_eq!(std::fs::read_to_string(&path).expect("reads"), "mine");
        assert!(matches!(Listener::bind(Path::new("/no/such/s")), Err(SamplingError::Socket { .. })));
        let long = folder.path().join("n".repeat(200));
        assert!(matches!(Listener::bind(&long), Err(SamplingError::Socket { .. })));
    }

    #[test]
    fn a_client_gets_its_answer() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("s");
        let listener = Listener::bind(&path).expect("binds");
        listener.serve(&mut |_| panic!("no client"));
        let client = std::thread::spawn({
            let path = path.clone();
            move || (exchange(&path, Command::Dump), exchange(&path, Command::Stop))
        });
        let mut left = 2;
        while left > 0 {
            listener.serve(&mut |command| {
                left -= 1;
                match command {
                    Command::Dump => Ok(Answer { text: "all".into(), profile: vec![1; 100_000] }),
                    _ => Err("no".into()),
                }
            });
        }
        let (dump, stop) = client.join().expect("ends");
        assert_eq!(dump.expect("an answer").profile.len(), 100_000);
        assert!(stop.expect_err("refused").to_string().contains("no"));
    }
}
