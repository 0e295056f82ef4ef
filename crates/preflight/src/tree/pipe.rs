//! Pipes between the tracer and the command.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::OFlags;
use rustix::pipe::{PipeFlags, pipe_with};

use crate::refusal::Refusal;

/// A pipe whose ends are closed by exec: (read end, write end).
pub fn pipe() -> Result<(OwnedFd, OwnedFd), Refusal> {
    pipe_with(PipeFlags::CLOEXEC).map_err(|error| Refusal::system("make a pipe", &io::Error::from(error)))
}

/// Lets reads of an empty pipe return at once.
pub fn set_nonblocking(end: &OwnedFd) {
    // Refused for no open descriptor.
    let _ = rustix::fs::fcntl_setfl(end, OFlags::NONBLOCK);
}

/// Reads what is there; `None` when that is nothing yet, 0 at the end.
pub fn read(end: &OwnedFd, bytes: &mut [u8]) -> Option<usize> {
    rustix::io::read(end, bytes).ok()
}
