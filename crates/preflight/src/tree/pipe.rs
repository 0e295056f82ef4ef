//! Pipes between the tracer and the command.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::refusal::Refusal;

/// A pipe whose ends are closed by exec: (read end, write end).
pub fn pipe() -> Result<(OwnedFd, OwnedFd), Refusal> {
    let mut ends = [0; 2];
    // SAFETY: `ends` is an array of two ints, which is what pipe2 writes.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(Refusal::system("make a pipe", &io::Error::last_os_error()));
    }
    // SAFETY: pipe2 opened both just now, so nothing else owns them.
    Ok(unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) })
}

/// Lets reads of an empty pipe return at once.
pub fn set_nonblocking(end: &OwnedFd) {
    // SAFETY: fcntl takes plain numbers; `end` owns an open descriptor.
    unsafe { libc::fcntl(end.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
}

/// Reads what is there; `None` when that is nothing yet, 0 at the end.
pub fn read(end: &OwnedFd, bytes: &mut [u8]) -> Option<usize> {
    // SAFETY: `bytes` is a live buffer, passed with its length; `end` owns an open descriptor.
    let got = unsafe { libc::read(end.as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len()) };
    usize::try_from(got).ok()
}
