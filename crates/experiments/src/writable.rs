//! Whether a file can be written, before time is spent on what shall be in it.

use std::io::ErrorKind;
use std::path::Path;

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
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err(format!("there is no folder {}; create it, or name another", folder.display()))
        }
        Err(error) => Err(error.to_string()),
    }
}
