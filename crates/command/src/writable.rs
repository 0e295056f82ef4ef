//! Whether a file can be written, before time is spent on what shall be in it.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Links that are followed one after the other, as many as the kernel follows.
const LINKS: usize = 40;

/// Whether a file can be written there; if not, why.
pub fn check(path: &Path) -> Result<(), String> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    if path.is_dir() {
        return Err("it is a folder".into());
    }
    if path.exists() && !path.is_file() {
        return Ok(());
    }
    // Only an attempt decides: permission bits mean nothing to root, on read-only disks and in /proc.
    match tempfile::Builder::new().prefix(".heaptoll-").tempfile_in(folder) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            Err(format!("no permission to write in {}; check its permissions", folder.display()))
        }
        Err(error) if error.kind() == ErrorKind::NotFound && folder.is_dir() => {
            Err(format!("cannot make a file in {}; name another folder", folder.display()))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err(format!("there is no folder {}; create it, or name another", folder.display()))
        }
        Err(error) => Err(error.to_string()),
    }
}

/// The file to which a path leads, there or not, symbolic links followed: what may be replaced by another of its name.
///
/// # Errors
/// It is a folder, a device, a pipe or a socket, which no file may take the place of; the links do not end.
pub fn regular(path: &Path) -> Result<PathBuf, String> {
    let mut end = path.to_path_buf();
    for _ in 0..LINKS {
        match end.symlink_metadata() {
            Ok(found) if found.is_symlink() => {
                let next = std::fs::read_link(&end).map_err(|error| error.to_string())?;
                end = end.parent().unwrap_or(Path::new("")).join(next);
            }
            Ok(found) if found.is_file() => return Ok(end),
            Ok(found) if found.is_dir() => return Err("it is a folder".into()),
            Ok(_) => return Err("it is a device, a pipe or a socket, not a file".into()),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(end),
            Err(error) => return Err(error.to_string()),
        }
    }
    Err("its symbolic links lead in a circle".into())
}

/// Whether two paths lead to the same file, be it there or not. What is no regular file is the same as nothing: a device
/// may be written twice.
pub fn are_same(one: &Path, other: &Path) -> bool {
    match (one.metadata(), other.metadata()) {
        (Ok(one), Ok(other)) => one.is_file() && (one.dev(), one.ino()) == (other.dev(), other.ino()),
        (Err(_), Err(_)) => place(one).is_some_and(|at| Some(at) == place(other)),
        _ => false,
    }
}

/// Where a file would be made.
fn place(path: &Path) -> Option<PathBuf> {
    let end = regular(path).ok()?;
    let name = end.file_name()?.to_owned();
    let folder = end.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Some(folder.canonicalize().ok()?.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_in_which_the_kernel_makes_no_file_is_not_called_missing() {
        assert_eq!(
            check(Path::new("/proc/x")),
            Err("cannot make a file in /proc; name another folder".into())
        );
        assert!(check(Path::new("/no/such/x")).unwrap_err().contains("there is no folder /no/such"));
    }

    #[test]
    fn only_a_regular_file_may_be_replaced_and_links_are_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("file"), "x").expect("writes");
        for (link, end) in [("link", "file"), ("twice", "link"), ("dangling", "new"), ("circle", "circle")] {
            std::os::unix::fs::symlink(end, at(link)).expect("links");
        }
        assert_eq!(regular(&at("twice")), Ok(at("file")));
        assert_eq!(regular(&at("dangling")), Ok(at("new")));
        assert_eq!(regular(&at("new")), Ok(at("new")));
        for refused in [at("circle"), folder.path().into(), "/dev/zero".into(), at("file/in")] {
            assert!(regular(&refused).is_err(), "{}", refused.display());
        }
        assert!(are_same(&at("twice"), &at("./file")) && are_same(&at("dangling"), &at("new")));
        assert!(
            !are_same(&at("file"), &at("new")) && !are_same(Path::new("/dev/zero"), Path::new("/dev/zero"))
        );
    }
}
