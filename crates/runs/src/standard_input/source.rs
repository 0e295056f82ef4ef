//! What standard input is connected to, by what a second run could read of it.

use std::fs::File;
use std::io::{self, IsTerminal, Seek};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// A standard input.
pub enum Source {
    /// A user's terminal.
    Terminal,
    /// `/dev/null`.
    Nothing,
    /// A file or a device that each run can open for itself.
    Path(PathBuf),
    /// What can be read once, or not from where it stands.
    Once(Once),
}

/// What has to be copied before the first run.
pub enum Once {
    /// A file that has no name any more, or is read from an offset on. Its offset stays where it is.
    File { file: File, offset: u64 },
    /// A pipe or a socket.
    Pipe(File),
}

impl Source {
    /// What this descriptor is.
    ///
    /// # Errors
    /// It cannot be looked at.
    pub fn of(mut file: File) -> io::Result<Source> {
        if file.is_terminal() {
            return Ok(Source::Terminal);
        }
        let kind = file.metadata()?.file_type();
        let offset = if kind.is_file() { file.stream_position()? } else { 0 };
        let path = if offset == 0 { reopened(&file)? } else { None };
        Ok(match path {
            Some(path) if path == Path::new("/dev/null") => Source::Nothing,
            Some(path) => Source::Path(path),
            None if kind.is_file() => Source::Once(Once::File { file, offset }),
            None => Source::Once(Once::Pipe(file)),
        })
    }
}

/// The path that opens the same file or device again. It has to be text, as experiments store it.
fn reopened(file: &File) -> io::Result<Option<PathBuf>> {
    let here = file.metadata()?;
    if !here.is_file() && !here.file_type().is_char_device() {
        return Ok(None);
    }
    let Ok(path) = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())) else { return Ok(None) };
    let again = File::options().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(&path);
    let is_same = again
        .and_then(|again| again.metadata())
        .is_ok_and(|there| (there.dev(), there.ino()) == (here.dev(), here.ino()));
    Ok(path.to_str().filter(|_| is_same).map(PathBuf::from))
}

impl Once {
    /// Reads the bytes after the first `done`; none at its end.
    ///
    /// # Errors
    /// The system's.
    pub fn read(&mut self, into: &mut [u8], done: u64) -> io::Result<usize> {
        match self {
            Once::File { file, offset } => file.read_at(into, *offset + done),
            Once::Pipe(pipe) => io::Read::read(pipe, into),
        }
    }
}

impl AsFd for Once {
    fn as_fd(&self) -> BorrowedFd<'_> {
        let (Once::File { file, .. } | Once::Pipe(file)) = self;
        file.as_fd()
    }
}
