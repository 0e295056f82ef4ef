//! What killed runs have left: found, and removed when it is this user's and no process works in it.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use heaptoll_process::proc_files;

use crate::{PREFIX, UNLOCKED, open_folder, user};

/// A folder without its name that is younger than this may be about to be locked.
const SETTLED: Duration = Duration::from_secs(60);

/// Removes what is left in `above`, at the first call of this process: to read a folder of thousands again before each
/// of hundreds of runs is no use.
pub fn remove_once(above: &Path) {
    static SEEN: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    if SEEN.lock().unwrap_or_else(PoisonError::into_inner).insert(above.to_path_buf()) {
        remove(above, SETTLED);
    }
}

/// Removes what is left in `above`.
pub fn remove(above: &Path, settled: Duration) {
    for entry in fs::read_dir(above).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_named = name.as_bytes().starts_with(PREFIX.as_bytes());
        if !is_named && !name.as_bytes().starts_with(UNLOCKED.as_bytes()) {
            continue;
        }
        let path = entry.path();
        // Locked while it is removed, so that two runs do not do it at once.
        if let Ok(Some(_lock)) = dead(&path, if is_named { Duration::ZERO } else { settled })
            && !is_lived_in(&path)
        {
            // What cannot be removed does no harm.
            crate::remove(&path);
        }
    }
}

/// The folder at `path`, locked, when it is this user's and its owner is gone.
fn dead(path: &Path, settled: Duration) -> io::Result<Option<File>> {
    let folder = open_folder(path)?;
    let about = folder.metadata()?;
    let is_settled = about.modified()?.elapsed().unwrap_or_default() >= settled;
    Ok((about.uid() == user::number() && is_settled && folder.try_lock().is_ok()).then_some(folder))
}

/// Whether a process works in a folder: its command, its environment or its working directory names it. A program that
/// was recorded goes on when heaptoll is killed. Without /proc that is unknown, and everything stays.
fn is_lived_in(folder: &Path) -> bool {
    let Ok(processes) = fs::read_dir("/proc") else { return true };
    let name = folder.as_os_str().as_bytes();
    let mut any = false;
    for process in processes.flatten().map(|entry| entry.path()) {
        if !process.file_name().is_some_and(|name| name.as_bytes().iter().all(u8::is_ascii_digit)) {
            continue;
        }
        any = true;
        let names =
            |file: &str| proc_files::strings(&process.join(file)).is_some_and(|bytes| holds(&bytes, name));
        let is_inside = || fs::read_link(process.join("cwd")).is_ok_and(|at| at.starts_with(folder));
        if names("cmdline") || names("environ") || is_inside() {
            return true;
        }
    }
    !any
}

fn holds(bytes: &[u8], name: &[u8]) -> bool {
    bytes.windows(name.len()).any(|window| window == name)
}
