//! What the command writes. It is read and thrown away through pipes, for some programs do less when they see
//! `/dev/null`; the beginning of standard error is kept for messages.

use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use super::pipe::{read, set_nonblocking};

/// Bytes of standard error that are kept.
const KEPT: usize = 16 * 1024;

/// Standard output and standard error, until their ends.
pub struct Output {
    pipes: [Option<OwnedFd>; 2],
    stderr: Vec<u8>,
}

impl Output {
    pub fn new(stdout: OwnedFd, stderr: OwnedFd) -> Output {
        set_nonblocking(&stdout);
        set_nonblocking(&stderr);
        Output { pipes: [Some(stdout), Some(stderr)], stderr: Vec::new() }
    }

    /// The beginning of standard error.
    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// Reads what the program has written; false when that was nothing.
    pub fn drain(&mut self) -> bool {
        let mut any = false;
        for number in 0..2 {
            let Some(pipe) = &self.pipes[number] else { continue };
            let mut bytes = [0u8; 65536];
            for _ in 0..16 {
                match read(pipe, &mut bytes) {
                    Some(0) => {
                        self.pipes[number] = None;
                        break;
                    }
                    Some(got) => {
                        any = true;
                        if number == 1 {
                            let space = KEPT.saturating_sub(self.stderr.len());
                            self.stderr.extend_from_slice(&bytes[..got.min(space)]);
                        }
                    }
                    None => break,
                }
            }
        }
        any
    }

    /// Sleeps until the program writes something, a millisecond at most: events of the tracer do not wake `poll`.
    pub fn wait(&self) {
        let mut waits: Vec<libc::pollfd> = self
            .pipes
            .iter()
            .flatten()
            .map(|o| libc::pollfd { fd: o.as_raw_fd(), events: libc::POLLIN, revents: 0 })
            .collect();
        if waits.is_empty() {
            std::thread::sleep(Duration::from_micros(500));
            return;
        }
        // SAFETY: `waits` is a local array of pollfd, passed with its length.
        unsafe { libc::poll(waits.as_mut_ptr(), waits.len() as libc::nfds_t, 1) };
    }
}
