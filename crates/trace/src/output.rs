//! Outputs of a trace: memory, a pipe, or a file with space reserved for its last chunks.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{FallocateFlags, fallocate};

use crate::TraceError;

/// Bytes reserved after the end of a file: a gap and an ending fit in.
pub(crate) const RESERVE: usize = 64 << 10;

/// An output of a writer.
pub trait Output {
    /// Appends whole chunks: all of it or, on an error, nothing.
    ///
    /// # Errors
    /// Those of the system.
    fn add(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Appends the last chunk, if need be into the space reserved for it (64 KiB), and ends the output.
    ///
    /// # Errors
    /// Those of the system.
    fn conclude(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Its name in error messages.
    fn name(&self) -> String;
}

impl Output for Vec<u8> {
    fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.extend_from_slice(bytes);
        Ok(())
    }

    fn conclude(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.add(bytes)
    }

    fn name(&self) -> String {
        "the trace in memory".to_string()
    }
}

/// A pipe, a socket or anything else to which bytes can be written. What was written before an error stays: readers
/// resynchronise.
#[derive(Debug)]
pub struct Stream<W>(pub W);

impl<W: Write> Output for Stream<W> {
    fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)?;
        self.0.flush()
    }

    fn conclude(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.add(bytes)
    }

    fn name(&self) -> String {
        "the stream".to_string()
    }
}

/// A trace's file. It ends with a whole chunk at any time, and space is reserved after its end, so that even on a full
/// disk its ending can be written.
#[derive(Debug)]
pub struct TraceFile {
    file: File,
    name: String,
    /// Bytes that hold whole chunks.
    length: u64,
    /// Whether the file system can reserve space.
    reserves: bool,
}

impl TraceFile {
    /// Makes the file (mode 0600: a trace shows what a program did).
    ///
    /// # Errors
    /// It exists and `replace` is false; the system refuses.
    pub fn create(path: &Path, replace: bool) -> Result<TraceFile, TraceError> {
        let name = path.display().to_string();
        let mut options = OpenOptions::new();
        options.write(true).mode(0o600);
        // A file of that name may belong to another recording, which goes on: it keeps its file, and only loses the
        // name.
        let is_file = path.symlink_metadata().is_ok_and(|found| found.is_file());
        if replace && !(is_file && std::fs::remove_file(path).is_ok()) {
            options.create(true).truncate(true);
        } else {
            options.create_new(true);
        }
        match options.open(path) {
            Ok(file) => {
                let mut this = TraceFile { file, name, length: 0, reserves: true };
                // A file system that cannot reserve is no reason not to record; a full one shows at the first chunk.
                let _ = this.reserve(0);
                Ok(this)
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(TraceError::Exists { name }),
            Err(error) => Err(TraceError::system("make", &name, error)),
        }
    }

    /// Reserves space for `bytes` more, and [`RESERVE`] after it.
    fn reserve(&mut self, bytes: usize) -> io::Result<()> {
        if !self.reserves {
            return Ok(());
        }
        let length = (bytes + RESERVE) as u64;
        if let Err(error) = fallocate(&self.file, FallocateFlags::KEEP_SIZE, self.length, length) {
            let error = io::Error::from(error);
            if is_full(&error) {
                return Err(error);
            }
            // Not supported here: written without a reserve from now on.
            self.reserves = false;
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self.file.write_all_at(bytes, self.length) {
            Ok(()) => {
                self.length += bytes.len() as u64;
                Ok(())
            }
            Err(error) => {
                // A part may have been written: the file is cut to whole chunks again. If that fails too, a reader
                // treats the part as damage.
                let _ = self.file.set_len(self.length);
                Err(error)
            }
        }
    }
}

impl Output for TraceFile {
    fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
        // Nothing is written before there is space for all of it: the reserve after the end stays as it is.
        self.reserve(bytes.len())?;
        self.write(bytes)
    }

    fn conclude(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write(bytes)?;
        // Releases what was reserved.
        self.file.set_len(self.length)
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}

/// Whether an error means that no space is left: disk, quota or limit of file sizes.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG))
}
