//! The files of a recording: their names, and which are refused before anything runs.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use heaptoll_trace::{Output, Stream, TraceError, TraceFile};

use crate::error::RecordError;

/// Where a trace goes.
#[derive(Debug)]
pub enum Destination {
    /// A file of its own.
    File(TraceFile),
    /// A named pipe or a device that was there.
    Stream(Stream<File>, PathBuf),
}

impl Output for Destination {
    fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Destination::File(file) => file.add(bytes),
            Destination::Stream(stream, _) => stream.add(bytes),
        }
    }

    fn conclude(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Destination::File(file) => file.conclude(bytes),
            Destination::Stream(stream, _) => stream.conclude(bytes),
        }
    }

    fn name(&self) -> String {
        match self {
            Destination::File(file) => file.name(),
            Destination::Stream(_, path) => path.display().to_string(),
        }
    }
}

/// Makes the first trace's file. An existing file that is not regular (a named pipe, a device) is written to as it is.
///
/// # Errors
/// It exists, is a folder, or the system refuses it.
pub fn make_first(path: &Path, force: bool) -> Result<Destination, RecordError> {
    if path == Path::new("-") {
        return Err(RecordError::StandardOutput);
    }
    match path.metadata() {
        Ok(found) if found.is_dir() => return Err(RecordError::IsFolder { path: path.to_path_buf() }),
        Ok(found) if !found.is_file() => {
            let stream = open_stream(path)
                .map_err(|source| RecordError::Output { path: path.to_path_buf(), source })?;
            return Ok(Destination::Stream(Stream(stream), path.to_path_buf()));
        }
        _ => {}
    }
    match TraceFile::create(path, force) {
        Ok(file) => {
            if force {
                forget_others(path);
            }
            Ok(Destination::File(file))
        }
        Err(TraceError::Exists { .. }) => Err(RecordError::Exists { path: path.to_path_buf() }),
        Err(TraceError::System { source, .. }) => {
            Err(RecordError::Output { path: path.to_path_buf(), source })
        }
        Err(source) => Err(RecordError::Trace { path: path.to_path_buf(), source }),
    }
}

/// Opens a file that is not regular. A pipe without a reader is an error rather than a wait that Ctrl-C could not end.
fn open_stream(path: &Path) -> io::Result<File> {
    let file =
        OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(path).map_err(
            |error| match error.raw_os_error() {
                Some(libc::ENXIO) => io::Error::other("nothing reads this pipe yet"),
                _ => error,
            },
        )?;
    // Writes block again from here on.
    let flags = rustix::fs::fcntl_getfl(&file)?;
    rustix::fs::fcntl_setfl(&file, flags - rustix::fs::OFlags::NONBLOCK)?;
    Ok(file)
}

/// The folder of the traces of other process images than the first.
pub fn folder_of_others(first: &Path) -> PathBuf {
    let mut name = first.as_os_str().to_os_string();
    name.push(".children");
    name.into()
}

/// The traces of other process images than the first, in no order.
pub fn others(first: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder_of_others(first)).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| is_name_of_other(path)).collect()
}

/// Whether a file's name is one that [`make_next`] gives.
fn is_name_of_other(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()?.strip_suffix(END));
    name.is_some_and(|name| name.split('.').all(|part| part == UNNUMBERED || part.parse::<u32>().is_ok()))
}

/// Removes the other traces of a recording whose first one is overwritten.
fn forget_others(first: &Path) {
    for path in others(first) {
        // Names of files that stay are skipped by `make_next`.
        let _ = std::fs::remove_file(path);
    }
    let _ = std::fs::remove_dir(folder_of_others(first));
}

const END: &str = ".heaptoll";
/// In place of a process number that is not known.
const UNNUMBERED: &str = "unknown";

/// Makes the file of another process image: `FILE.children/PID.heaptoll`, and `PID.2.heaptoll` and so on when that is
/// taken; `unknown.heaptoll` where the process number is 0.
///
/// # Errors
/// The system's.
pub fn make_next(first: &Path, pid: i32) -> Result<(PathBuf, Destination), TraceError> {
    let folder = folder_of_others(first);
    let process = if pid > 0 { pid.to_string() } else { UNNUMBERED.to_owned() };
    // A failure shows when the file is made.
    let _ = std::fs::create_dir(&folder);
    let mut number = 1;
    loop {
        let name = if number == 1 { format!("{process}{END}") } else { format!("{process}.{number}{END}") };
        let path = folder.join(name);
        match TraceFile::create(&path, false) {
            Ok(file) => return Ok((path, Destination::File(file))),
            Err(TraceError::Exists { .. }) => number += 1,
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_taken_are_refused_or_skipped() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = folder.path().join("x.heaptoll");
        drop(make_first(&first, false).expect("makes"));
        assert!(matches!(make_first(&first, false), Err(RecordError::Exists { .. })));
        std::fs::write(&first, "old").expect("writes");
        drop(make_first(&first, true).expect("makes"));
        assert_eq!(std::fs::read(&first).expect("reads"), b"");
        assert!(matches!(make_first(folder.path(), true), Err(RecordError::IsFolder { .. })));
        assert!(matches!(make_first(Path::new("-"), true), Err(RecordError::StandardOutput)));
        assert!(matches!(make_first(Path::new("/no/such/x"), false), Err(RecordError::Output { .. })));
        let names: Vec<_> = (0..3).map(|_| make_next(&first, 7).expect("makes").0).collect();
        let children = folder.path().join("x.heaptoll.children");
        let wanted = ["7.heaptoll", "7.2.heaptoll", "7.3.heaptoll"].map(|name| children.join(name));
        assert_eq!(names, wanted);
        // The number of a process of another namespace may be unknown.
        let unknown: Vec<_> = (0..2).map(|_| make_next(&first, 0).expect("makes").0).collect();
        assert_eq!(unknown, ["unknown.heaptoll", "unknown.2.heaptoll"].map(|name| children.join(name)));
        assert_eq!(others(&first).len(), 5);
        // Overwriting it takes its other traces with it, and nothing else.
        std::fs::write(children.join("notes"), "mine").expect("writes");
        drop(make_first(&first, true).expect("makes"));
        assert!(others(&first).is_empty() && children.join("notes").exists());
        std::fs::remove_file(children.join("notes")).expect("removes");
        drop(make_first(&first, true).expect("makes"));
        assert!(!children.exists());
    }

    #[test]
    fn a_pipe_without_a_reader_is_refused_at_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let pipe = folder.path().join("pipe");
        let name = std::ffi::CString::new(pipe.as_os_str().as_encoded_bytes()).expect("no NUL");
        // SAFETY: mkfifo reads `name`, a C string that outlives the call.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        let error = make_first(&pipe, false).expect_err("no reader").to_string();
        assert!(error.contains("nothing reads this pipe"), "{error}");
        let reader = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&pipe).expect("opens");
        let mut written = make_first(&pipe, false).expect("a reader");
        written.add(b"words").expect("appends");
        drop(reader);
        assert!(written.add(b"words").is_err());
    }
}
