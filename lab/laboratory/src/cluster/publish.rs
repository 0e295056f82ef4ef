//! A measured shard put where it belongs: whole under its name, or not there.

use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Whether a file got its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Published {
    /// It did.
    New,
    /// Another had the name first, and keeps it.
    WasThere,
}

/// Copies `from`, which is whole and closed, into `folder` under `name`. It gets the name in one step, after its bytes are
/// on the disk; until then it has one that begins with a dot and is random. A file that has the name already stays.
///
/// # Errors
/// The system's: a full disk, no permission. Nothing is left then under the name.
pub fn publish(from: &Path, folder: &Path, name: &str) -> io::Result<Published> {
    let mut part = tempfile::Builder::new()
        .prefix(&format!(".{name}-"))
        .suffix(".part")
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
        .tempfile_in(folder)?;
    io::copy(&mut File::open(from)?, part.as_file_mut())?;
    part.as_file().sync_all()?;
    let target = folder.join(name);
    let published = match fs::hard_link(part.path(), &target) {
        Ok(()) => Published::New,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Published::WasThere,
        // A file system without links: two that come at once both rename, and the last one stays, whole as well.
        Err(_) if target.exists() => Published::WasThere,
        Err(_) => {
            part.persist(&target).map_err(|error| error.error)?;
            Published::New
        }
    };
    // The new name reaches the disk with the folder. A file system that cannot do this has still taken the file.
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
    Ok(published)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder").flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn a_file_gets_its_name_once_and_nothing_else_is_left() {
        let folder = tempfile::tempdir().expect("a folder");
        let from = folder.path().join("from");
        let target = folder.path().join("target");
        fs::create_dir(&target).expect("makes");
        for (text, expected) in [("first", Published::New), ("second", Published::WasThere)] {
            fs::write(&from, text).expect("writes");
            assert_eq!(publish(&from, &target, "s.db").expect("is published"), expected);
            assert_eq!(fs::read_to_string(target.join("s.db")).expect("is there"), "first");
            assert_eq!(names(&target), ["s.db"]);
        }
    }

    #[test]
    fn what_cannot_be_read_or_written_leaves_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(publish(Path::new("/no/such/file"), folder.path(), "s.db").is_err());
        assert!(names(folder.path()).is_empty());
        assert!(publish(Path::new("/etc/passwd"), Path::new("/no/such/folder"), "s.db").is_err());
    }
}
