//! The file: made for a run, read after it, cleared for the next.

use std::borrow::ToOwned;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::vec;
use std::vec::Vec;

use heaptoll_process::tsc::Pair;

use super::error::EventsError;
use super::read::{self, Lost, ProcessEvents, half, word};
use crate::layout::{CHUNKS_AT, COUNTER, CPU, HEADER_BYTES, MAGIC, VERSION, file_bytes};

/// Bytes whose memory is reserved before the program starts. Pages that the system has to find while the program runs
/// cost more than the records on them: 2.5 us each on a virtual machine.
const READY_BYTES: u64 = 32 << 20;

/// A file of events. It stays when this is dropped; it belongs in a temporary directory.
#[derive(Debug)]
pub struct EventsFile {
    path: PathBuf,
    file: File,
    /// The number of chunks when it was made: the header may be overwritten later.
    chunks: u32,
    /// Whether this process made it: then the current reading of its clock applies to the file.
    made_here: bool,
}

impl EventsFile {
    /// Makes a file of at most `limit` bytes at `path`, readable and writable by this user only. After its first 32 MiB
    /// it is sparse: unused parts take no memory. A request takes 32 bytes, a collection 40, and each thread that has
    /// requests at least 64 KiB while it runs.
    ///
    /// Collectors leave mappings of a file out of their roots whose name begins with `heaptoll-` and ends in
    /// `.events`.
    ///
    /// # Errors
    /// [`EventsError::Io`] when the file cannot be made, for example because it exists; [`EventsError::TooSmall`] when
    /// `limit` is smaller than a file of one chunk.
    pub fn create(path: &Path, limit: u64) -> Result<EventsFile, EventsError> {
        EventsFile::make(path, limit, 0)
    }

    /// As [`EventsFile::create`]; the layer records the processor time of each request as well, which takes two system
    /// calls a request.
    ///
    /// # Errors
    /// As [`EventsFile::create`].
    pub fn create_with_cpu(path: &Path, limit: u64) -> Result<EventsFile, EventsError> {
        EventsFile::make(path, limit, CPU)
    }

    fn make(path: &Path, limit: u64, flags: u32) -> Result<EventsFile, EventsError> {
        let chunk = file_bytes(1) - file_bytes(0);
        let chunks = u32::try_from(limit.saturating_sub(file_bytes(0)) / chunk).unwrap_or(u32::MAX);
        if chunks == 0 {
            return Err(EventsError::TooSmall { limit, least: file_bytes(1) });
        }
        let failed = |error| EventsError::Io { path: path.to_owned(), error };
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .map_err(failed)?;
        let filled = file
            .set_len(file_bytes(chunks))
            .and_then(|()| write_zeroes(&file, 0, file_bytes(chunks).min(READY_BYTES)))
            .and_then(|()| file.write_all_at(&header(chunks, flags), 0));
        if let Err(error) = filled {
            // On a full disk, half a file is removed.
            let _ = std::fs::remove_file(path);
            return Err(failed(error));
        }
        Ok(EventsFile { path: path.to_owned(), file, chunks, made_here: true })
    }

    /// Opens a file that another process made.
    ///
    /// # Errors
    /// [`EventsError::Io`], [`EventsError::Foreign`], [`EventsError::Truncated`].
    pub fn open(path: &Path) -> Result<EventsFile, EventsError> {
        let failed = |error| EventsError::Io { path: path.to_owned(), error };
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(failed)?;
        let mut events = EventsFile { path: path.to_owned(), file, chunks: 0, made_here: false };
        events.chunks = events.stored_chunks()?;
        events.check()?;
        Ok(events)
    }

    /// The file's path, for `HEAPTOLL_EVENTS`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The events of each process so far, in the order in which the processes claimed their entries. Running processes
    /// keep writing.
    ///
    /// # Errors
    /// [`EventsError`] when the file cannot be read, or something other than the layer changed it.
    pub fn read(&self) -> Result<Vec<ProcessEvents>, EventsError> {
        self.check()?;
        let claimed = half(&self.bytes(0, HEADER_BYTES)?, 20).min(self.chunks);
        let beginning = self.bytes(0, CHUNKS_AT)?;
        let now =
            self.made_here.then(heaptoll_process::tsc::pair).filter(|_| heaptoll_process::tsc::is_counter());
        read::processes(&beginning, claimed, now, |at, bytes| self.bytes(at, bytes)).map_err(|error| {
            match error {
                read::ReadError::File(error) => error,
                read::ReadError::Damaged(what) => EventsError::Damaged { path: self.path.clone(), what },
            }
        })
    }

    /// Counts of what was not recorded: the file was full, or its disk.
    ///
    /// # Errors
    /// As [`EventsFile::read`].
    pub fn lost(&self) -> Result<Lost, EventsError> {
        self.check()?;
        Ok(read::lost(&self.bytes(0, HEADER_BYTES)?))
    }

    /// Clears the file, for the next run. No process of the last run may be running: it would keep writing to a chunk
    /// that is claimed again.
    ///
    /// # Errors
    /// As [`EventsFile::read`].
    pub fn clear(&self) -> Result<(), EventsError> {
        let failed = |error| EventsError::Io { path: self.path.clone(), error };
        self.check()?;
        let chunks = self.chunks;
        let before = self.bytes(0, HEADER_BYTES)?;
        let (claimed, flags) = (half(&before, 20).min(chunks), half(&before, 40) & CPU);
        // The memory after the part that is always reserved is released.
        let ready = file_bytes(chunks).min(READY_BYTES);
        self.file.set_len(ready).and_then(|()| self.file.set_len(file_bytes(chunks))).map_err(failed)?;
        write_zeroes(&self.file, 0, file_bytes(claimed).min(ready)).map_err(failed)?;
        self.file.write_all_at(&header(chunks, flags), 0).map_err(failed)
    }

    /// The number of chunks that the header states; checks whether this is an events file.
    fn stored_chunks(&self) -> Result<u32, EventsError> {
        let foreign = || EventsError::Foreign { path: self.path.clone() };
        let mut header = [0u8; 16];
        self.file.read_exact_at(&mut header, 0).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => foreign(),
            _ => EventsError::Io { path: self.path.clone(), error },
        })?;
        if word(&header, 0) != MAGIC || half(&header, 8) != VERSION {
            return Err(foreign());
        }
        Ok(half(&header, 12))
    }

    /// Checks whether this is still the file that was made or opened, with its full length.
    fn check(&self) -> Result<(), EventsError> {
        if self.stored_chunks()? != self.chunks {
            return Err(EventsError::Foreign { path: self.path.clone() });
        }
        let about =
            self.file.metadata().map_err(|error| EventsError::Io { path: self.path.clone(), error })?;
        let (expected, found) = (file_bytes(self.chunks), about.len());
        if expected != found {
            return Err(EventsError::Truncated { path: self.path.clone(), expected, found });
        }
        Ok(())
    }

    fn bytes(&self, at: usize, length: usize) -> Result<Vec<u8>, EventsError> {
        let mut bytes = vec![0; length];
        self.file
            .read_exact_at(&mut bytes, at as u64)
            .map_err(|error| EventsError::Io { path: self.path.clone(), error })?;
        Ok(bytes)
    }
}

fn write_zeroes(file: &File, from: u64, to: u64) -> io::Result<()> {
    let zeroes = vec![0; 1 << 20];
    let mut at = from;
    while at < to {
        let length = (to - at).min(zeroes.len() as u64);
        file.write_all_at(&zeroes[..length as usize], at)?;
        at += length;
    }
    Ok(())
}

/// The header of an empty file, with `flags` but for [`COUNTER`].
fn header(chunks: u32, flags: u32) -> [u8; 56] {
    heaptoll_process::tsc::choose();
    let Pair { ticks, ns } = heaptoll_process::tsc::pair();
    let mut header = [0u8; 56];
    header[0..8].copy_from_slice(&MAGIC.to_ne_bytes());
    header[8..12].copy_from_slice(&VERSION.to_ne_bytes());
    header[12..16].copy_from_slice(&chunks.to_ne_bytes());
    header[24..32].copy_from_slice(&ticks.to_ne_bytes());
    header[32..40].copy_from_slice(&ns.to_ne_bytes());
    let flags = flags | if heaptoll_process::tsc::is_counter() { COUNTER } else { 0 };
    header[40..44].copy_from_slice(&flags.to_ne_bytes());
    header
}
