//! A process that replays, from the tool's side: in a group of its own, waited for, killed on the user's request or at
//! the time limit.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::error::ReplayError;

/// How often it is polled.
const PACE: Duration = Duration::from_millis(20);
/// Bytes kept of its output.
const TAIL: usize = 2048;

/// How a process ended.
#[derive(Debug, Clone, Copy)]
pub enum End {
    /// By itself.
    Exited(ExitStatus),
    /// The user cancelled it.
    Interrupted,
    /// At the time limit.
    TimedOut,
}

/// Puts a process into a group of its own, so that Ctrl-C reaches us alone, and ends it when we end. It inherits
/// `handed`.
pub fn apart(command: &mut Command, handed: Vec<RawFd>) {
    // SAFETY: the closure calls only setpgid, prctl and fcntl, which are async-signal-safe, and allocates nothing.
    unsafe {
        command.pre_exec(move || {
            libc::setpgid(0, 0);
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            for descriptor in &handed {
                libc::fcntl(*descriptor, libc::F_SETFD, 0);
            }
            Ok(())
        });
    }
}

/// Runs a process to its end.
///
/// # Errors
/// The system gives no process.
pub fn run(command: &mut Command, interrupt: &AtomicBool, timeout: Duration) -> Result<End, ReplayError> {
    let mut child = command.spawn().map_err(ReplayError::system("start the driver"))?;
    let end = end_of(child.id());
    let begun = Instant::now();
    let mut stopped = None;
    loop {
        if let Some(status) = child.try_wait().map_err(ReplayError::system("wait for the driver"))? {
            return Ok(stopped.unwrap_or(End::Exited(status)));
        }
        if stopped.is_none() {
            stopped = if interrupt.load(Ordering::Relaxed) {
                Some(End::Interrupted)
            } else {
                (begun.elapsed() > timeout).then_some(End::TimedOut)
            };
            if stopped.is_some() {
                child.kill().map_err(ReplayError::system("kill the driver"))?;
            }
        }
        wait_for(end.as_ref(), PACE);
    }
}

/// Why one failed that was over the time limit.
pub fn over_time(timeout: Duration) -> String {
    format!("killed after {} s (--timeout)", timeout.as_secs_f64())
}

/// Why one failed that ended like this, with the end of what it wrote.
pub fn why(status: ExitStatus, output: File) -> String {
    format!("{}{}", how(status), tail(output))
}

/// A descriptor that can be read when the child has ended; none before Linux 5.3.
fn end_of(child: u32) -> Option<OwnedFd> {
    // SAFETY: pidfd_open takes plain numbers; the child has not been waited for, so the number is still its own.
    let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, child, 0) };
    // SAFETY: pidfd_open returned this descriptor just now, so nothing else owns it.
    (descriptor >= 0).then(|| unsafe { OwnedFd::from_raw_fd(descriptor as RawFd) })
}

/// Sleeps until the driver has ended or the time is over.
fn wait_for(end: Option<&OwnedFd>, longest: Duration) {
    let Some(end) = end else { return std::thread::sleep(longest) };
    let mut poll = libc::pollfd { fd: end.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: `poll` is one live local pollfd, and the count is 1.
    unsafe { libc::poll(&mut poll, 1, longest.as_millis() as i32) };
}

fn how(status: std::process::ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("killed by signal {signal}"),
        (None, Some(code)) => format!("the driver ended with status {code} before it was done"),
        (None, None) => "the driver ended before it was done".into(),
    }
}

/// The end of the output, without surrounding white space.
fn tail(mut output: File) -> String {
    let mut text = Vec::new();
    let length = output.seek(SeekFrom::End(0)).unwrap_or(0);
    let read = output
        .seek(SeekFrom::Start(length.saturating_sub(TAIL as u64)))
        .and_then(|_| output.take(TAIL as u64).read_to_end(&mut text));
    let text = String::from_utf8_lossy(&text);
    match (read, text.trim()) {
        (Err(_), _) | (_, "") => String::new(),
        (Ok(_), text) => format!("; it wrote: {text}"),
    }
}
