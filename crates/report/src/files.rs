//! The one way in which a file is written: whole or not at all.
//!
//! A measurement may have taken hours, so an output that exists is never replaced by half of a new one: the bytes go
//! to a temporary file in the same folder, are forced to the disk, and the file then takes its name in one step.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::ReportError;

/// Writes a file whole or not at all: on an error nothing is left and an older file keeps its contents. Devices, pipes
/// and sockets (`/dev/stdout`, a FIFO) are written directly, and a symbolic link stays one.
///
/// # Errors
/// `File`, which names the path, when the system refuses; whatever `write` returns when it fails by itself.
pub fn write_atomically(
    path: &Path,
    write: impl FnOnce(&mut (dyn Write + Send)) -> Result<(), ReportError>,
) -> Result<(), ReportError> {
    let at_path = |source| ReportError::file(path, source);
    match Target::of(path).map_err(at_path)? {
        Target::Output => through(path, io::stdout(), write).map(drop),
        Target::Errors => through(path, io::stderr(), write).map(drop),
        Target::Direct => {
            // Appending harms no pipe and does not cut a file that `/dev/fd/N` leads to.
            let file = OpenOptions::new().append(true).open(path).map_err(at_path)?;
            through(path, file, write).map(drop)
        }
        Target::File(target) => replace(path, &target, write),
    }
}

/// What a path leads to.
enum Target {
    /// Our own standard output: through it, so that its position moves for what is printed afterwards.
    Output,
    /// Our own standard error.
    Errors,
    /// Something that is written in place.
    Direct,
    /// A regular file, there or not, symbolic links followed.
    File(PathBuf),
}

impl Target {
    fn of(path: &Path) -> io::Result<Target> {
        match path.to_str() {
            Some("/dev/stdout" | "/dev/fd/1" | "/proc/self/fd/1") => return Ok(Target::Output),
            Some("/dev/stderr" | "/dev/fd/2" | "/proc/self/fd/2") => return Ok(Target::Errors),
            Some(name) if name.starts_with("/dev/fd/") || name.starts_with("/proc/self/fd/") => {
                return Ok(Target::Direct);
            }
            _ => {}
        }
        match std::fs::metadata(path) {
            Ok(found) if found.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
            Ok(found) if found.is_file() => path.canonicalize().map(Target::File),
            Ok(found) => {
                let kind = found.file_type();
                debug_assert!(
                    kind.is_char_device() || kind.is_block_device() || kind.is_fifo() || kind.is_socket()
                );
                Ok(Target::Direct)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // A dangling link would be replaced by the file; its end is what was meant.
                Ok(Target::File(std::fs::read_link(path).map_or_else(
                    |_| path.to_path_buf(),
                    |end| path.parent().unwrap_or(Path::new("")).join(end),
                )))
            }
            Err(error) => Err(error),
        }
    }
}

fn replace(
    path: &Path,
    target: &Path,
    write: impl FnOnce(&mut (dyn Write + Send)) -> Result<(), ReportError>,
) -> Result<(), ReportError> {
    let at_path = |source| ReportError::file(path, source);
    let folder = match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    // The mode the file has, or what a plain `open` would give it; tempfile's own is for the owner alone.
    let old = std::fs::metadata(target).ok().map(|found| found.permissions());
    let permissions = old.clone().unwrap_or_else(|| Permissions::from_mode(0o666));
    let temporary = tempfile::Builder::new()
        .prefix(".heaptoll-")
        .suffix(".part")
        .permissions(permissions)
        .tempfile_in(folder)
        .map_err(|error| at_path(plain(error)))?;
    if let Some(old) = old {
        // The mask of this process took bits from the new file that the old one has.
        temporary.as_file().set_permissions(old).map_err(at_path)?;
    }
    // Dropped on every early return, the temporary file goes away by itself.
    through(path, temporary.as_file(), write)?.sync_all().map_err(at_path)?;
    temporary.persist(target).map_err(|error| at_path(error.error))?;
    // The new name reaches the disk with the folder. A file system that cannot do this has still taken the file.
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
    Ok(())
}

/// Runs `write` over `sink` and names the file in any error of the sink, however the encoder in between wrapped it.
fn through<W: Write + Send>(
    path: &Path,
    sink: W,
    write: impl FnOnce(&mut (dyn Write + Send)) -> Result<(), ReportError>,
) -> Result<W, ReportError> {
    let mut recording = Recording { sink: io::BufWriter::with_capacity(1 << 16, sink), first_error: None };
    let written = write(&mut recording);
    // Also when `write` reported success: an encoder that swallowed an error must not make it one.
    let written = written
        .and_then(|()| recording.flush().map_err(|source| ReportError::Stream { form: "file", source }));
    match (recording.first_error, written) {
        (Some(source), _) => {
            // What is still buffered is lost with the file; writing it on drop would only fail again.
            let _ = recording.sink.into_parts();
            Err(ReportError::file(path, source))
        }
        (None, Err(error)) => Err(error),
        (None, Ok(())) => {
            recording.sink.into_inner().map_err(|error| ReportError::file(path, error.into_error()))
        }
    }
}

/// A sink that remembers its first error.
struct Recording<W: Write> {
    sink: io::BufWriter<W>,
    first_error: Option<io::Error>,
}

impl<W: Write> Recording<W> {
    fn note<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &result
            && error.kind() != io::ErrorKind::Interrupted
            && self.first_error.is_none()
        {
            self.first_error = Some(match error.raw_os_error() {
                Some(code) => io::Error::from_raw_os_error(code),
                None => io::Error::new(error.kind(), error.to_string()),
            });
        }
        result
    }
}

impl<W: Write> Write for Recording<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.sink.write(bytes);
        self.note(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.sink.flush();
        self.note(flushed)
    }
}

/// tempfile adds its own path to an error; ours is the one the user gave.
fn plain(error: io::Error) -> io::Error {
    let inner = error.get_ref().and_then(|inner| inner.source()).and_then(|s| s.downcast_ref::<io::Error>());
    match inner.and_then(io::Error::raw_os_error) {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(error.kind(), error.kind().to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write_text(path: &Path, text: &str) -> Result<(), ReportError> {
        write_atomically(path, |out| {
            out.write_all(text.as_bytes()).map_err(|source| ReportError::Stream { form: "test", source })
        })
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn writes_and_replaces() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.json");
        write_text(&path, "one").unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        write_text(&path, "two").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(names(folder.path()), ["out.json"]);
    }

    #[test]
    fn a_failing_writer_leaves_the_old_file_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.json");
        write_text(&path, "old").unwrap();
        let failed = write_atomically(&path, |out| {
            out.write_all(b"half of the n").unwrap();
            Err(ReportError::Encode { form: "JSON", detail: "no".into() })
        });
        assert!(matches!(failed, Err(ReportError::Encode { .. })));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(names(folder.path()), ["out.json"]);
    }

    #[test]
    fn errors_name_the_file_and_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a-file");
        write_text(&file, "x").unwrap();
        for (path, word) in [
            (folder.path().join("none/out.json"), "folder does not exist"),
            (folder.path().to_path_buf(), "name a file inside"),
            (file.join("out.json"), "part of the path is a file"),
            (PathBuf::from("/dev/full"), "free some space"),
            (folder.path().join("n".repeat(300)), "shorter name"),
        ] {
            let error = write_text(&path, "text").unwrap_err();
            let text = error.to_string();
            assert!(matches!(error, ReportError::File { .. }), "{text}");
            assert!(text.contains(path.to_str().unwrap()) && text.contains(word), "{text}");
            assert!(!text.contains(".part"), "{text}");
        }
    }

    #[test]
    fn a_folder_that_may_not_be_written_is_refused_with_advice() {
        // Refused to root too, with one of three errors that depend on how /sys is mounted.
        let text = write_text(Path::new("/sys/kernel/out.json"), "text").unwrap_err().to_string();
        assert!(text.contains("/sys/kernel/out.json") && text.contains("choose a"), "{text}");
    }

    #[test]
    fn an_encoder_that_hides_the_disk_s_error_is_seen_through() {
        let path = Path::new("/dev/full");
        let hidden = write_atomically(path, |out| {
            let _ = out.write_all(&[0; 1 << 20]);
            Ok(())
        });
        assert!(matches!(hidden, Err(ReportError::File { .. })));
    }

    #[test]
    fn links_and_pipes_stay_what_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        std::os::unix::fs::symlink("real", &link).unwrap();
        for text in ["dangling", "found"] {
            write_text(&link, text).unwrap();
            assert_eq!(std::fs::read_to_string(&real).unwrap(), text);
            assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        }
        let (reader, writer) = io::pipe().unwrap();
        let path = PathBuf::from(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&writer)));
        write_text(&path, "through the pipe").unwrap();
        drop(writer);
        assert_eq!(io::read_to_string(reader).unwrap(), "through the pipe");
    }
}
