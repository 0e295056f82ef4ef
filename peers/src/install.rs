//! How a finished file gets to its place: objects, notes and licences are replaced whole, since the installed ones may
//! be in use.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::error::{Error, IoContext};

/// Writes a temporary file in the target's folder and renames it, so that a reader sees the old file or the new one and
/// never a partial one.
pub fn put_in_place(bytes: &[u8], target: &Path) -> Result<(), Error> {
    let dir = target.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(dir).context("create a file in", dir)?;
    file.write_all(bytes).context("write", target)?;
    let mode = if target.extension().is_some_and(|e| e == "so") { 0o755 } else { 0o644 };
    file.as_file()
        .set_permissions(std::fs::Permissions::from_mode(mode))
        .context("set the mode of", target)?;
    file.persist(target).map_err(|e| e.error).context("write", target).map(drop)
}
