//! Keeps what can be read once: reads it to its end, into a file in a scratch folder.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use heaptoll_experiment::kept_input;
use heaptoll_scratch::Scratch;
use heaptoll_units::whole_bytes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sha2::{Digest, Sha256};

use super::error::StandardInputError;
use super::source::Once;
use heaptoll_command::context::Context;
use heaptoll_command::failure::Failure;

/// The most that is kept.
const MOST_BYTES: u64 = 1 << 30;
/// How long nothing may come. A service that runs commands may leave a pipe open that nothing writes to.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long it is waited for without a word.
const SILENT: Duration = Duration::from_secs(2);
/// How often Ctrl-C is looked for.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// Bytes of one read.
const PIECE: usize = 1 << 16;

/// How much is kept, and how long it is waited for.
pub struct Keeper<'a> {
    /// Messages and Ctrl-C.
    pub context: &'a Context<'a>,
    /// The most that is kept.
    pub most_bytes: u64,
    /// How long nothing may come.
    pub patience: Duration,
}

/// A standard input that cannot be read.
pub fn unreadable(cause: io::Error) -> Failure {
    refused(StandardInputError::Read(cause))
}

fn refused(error: StandardInputError) -> Failure {
    Failure::Refused(Box::new(error))
}

impl<'a> Keeper<'a> {
    /// The usual one.
    pub fn new(context: &'a Context<'a>) -> Keeper<'a> {
        Keeper { context, most_bytes: MOST_BYTES, patience: PATIENCE }
    }

    /// Reads it to its end. Gives the folder and the file; none where there was nothing in it.
    ///
    /// # Errors
    /// Nothing comes for too long, there is too much, it cannot be read or written, or Ctrl-C.
    pub fn keep(&self, mut from: Once) -> Result<Option<(Scratch, PathBuf)>, Failure> {
        let failed = |cause| refused(StandardInputError::Keep { folder: std::env::temp_dir(), cause });
        let scratch = Scratch::make().map_err(failed)?;
        let growing = scratch.path().join("standard-input");
        let mut copy = File::create_new(&growing).map_err(failed)?;
        let (mut hasher, mut bytes, mut piece) = (Sha256::new(), 0, vec![0; PIECE]);
        let mut waiting = Waiting::new();
        loop {
            self.wait(&from, bytes, &mut waiting)?;
            let read = match from.read(&mut piece, bytes) {
                Ok(0) => break,
                Ok(read) => read,
                // Another reader of the same pipe may have been faster.
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) =>
                {
                    continue;
                }
                Err(error) => return Err(unreadable(error)),
            };
            bytes += read as u64;
            if bytes > self.most_bytes {
                return Err(refused(StandardInputError::TooMuch { most_bytes: self.most_bytes }));
            }
            hasher.update(&piece[..read]);
            copy.write_all(&piece[..read]).map_err(failed)?;
            waiting.last = Instant::now();
        }
        if bytes == 0 {
            return Ok(None);
        }
        let path = scratch.path().join(kept_input::name(&format!("{:x}", hasher.finalize())));
        std::fs::rename(&growing, &path).map_err(failed)?;
        Ok(Some((scratch, path)))
    }

    /// Waits until something can be read, or it has ended.
    fn wait(&self, from: &Once, bytes: u64, waiting: &mut Waiting) -> Result<(), Failure> {
        loop {
            if self.context.interrupt.is_set() {
                return Err(Failure::Interrupted);
            }
            let mut watched = [PollFd::new(from, PollFlags::IN)];
            match poll(&mut watched, Some(&TICK)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(unreadable(error.into())),
            }
            let silence = waiting.last.elapsed();
            if silence >= self.patience {
                return Err(refused(StandardInputError::Silent { silence: self.patience, bytes }));
            }
            if waiting.begun.elapsed() >= SILENT && !std::mem::replace(&mut waiting.is_announced, true) {
                self.context.messages.note(&format!(
                    "standard input is a pipe, read to its end first: {} so far; use `< /dev/null` if the program \
                     reads nothing",
                    whole_bytes(bytes)
                ));
            }
        }
    }
}

/// Since when it is waited.
struct Waiting {
    begun: Instant,
    last: Instant,
    is_announced: bool,
}

impl Waiting {
    fn new() -> Waiting {
        let now = Instant::now();
        Waiting { begun: now, last: now, is_announced: false }
    }
}
