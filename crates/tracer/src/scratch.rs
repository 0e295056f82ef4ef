//! The folder of one run's rings and logs: in memory where there is room, locked while the run goes on. What runs left
//! that were killed themselves is removed by the next.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use crate::error::TracerError;
use crate::options::LOGS;

const PREFIX: &str = "heaptoll-rings-";
/// A folder in memory serves for rings when as much is free there: 4 MiB a process.
const IN_MEMORY: u64 = 512 << 20;
/// Younger folders are left alone: they may not be locked yet.
const SETTLED: Duration = Duration::from_secs(60);

/// A folder that goes when it is dropped.
pub struct Scratch {
    folder: TempDir,
    /// Locked, not read.
    _lock: Option<File>,
}

impl Scratch {
    /// Makes it.
    ///
    /// # Errors
    /// No folder can be made.
    pub fn make() -> Result<Scratch, TracerError> {
        let in_memory = PathBuf::from("/dev/shm");
        let elsewhere = std::env::temp_dir();
        for place in [&in_memory, &elsewhere] {
            remove_left(place, SETTLED);
        }
        if free_bytes(&in_memory).is_some_and(|free| free >= IN_MEMORY)
            && let Ok(scratch) = Scratch::make_in(&in_memory)
        {
            return Ok(scratch);
        }
        Scratch::make_in(&elsewhere).map_err(|cause| TracerError::Scratch { folder: elsewhere, cause })
    }

    fn make_in(place: &Path) -> std::io::Result<Scratch> {
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(place)?;
        // Without a lock the worst is that it goes too early, and only a minute after nothing was made in it.
        std::fs::create_dir(folder.path().join(LOGS))?;
        let lock = File::open(folder.path()).ok().filter(|file| file.try_lock().is_ok());
        Ok(Scratch { folder, _lock: lock })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes folders whose runs are gone. Those of other users cannot be, and stay.
fn remove_left(place: &Path, settled: Duration) {
    for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        let age =
            entry.metadata().and_then(|about| about.modified()).map(|at| at.elapsed().unwrap_or_default());
        let is_settled = age.is_ok_and(|age| age >= settled);
        let is_free = || File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok());
        if is_settled && is_free() {
            // What cannot be removed is in nobody's way.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

fn free_bytes(folder: &Path) -> Option<u64> {
    let name = std::ffi::CString::new(folder.as_os_str().as_encoded_bytes()).ok()?;
    // SAFETY: all zeroes is a valid statvfs, which is filled in; the name is a C string.
    let (done, free) = unsafe {
        let mut about: libc::statvfs = std::mem::zeroed();
        let done = libc::statvfs(name.as_ptr(), &mut about);
        (done, about.f_bavail * about.f_frsize)
    };
    (done == 0).then_some(free)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_run_left_is_removed_and_what_one_uses_is_not() {
        let place = tempfile::tempdir().expect("a folder");
        let used = Scratch::make_in(place.path()).expect("makes");
        let left = place.path().join(format!("{PREFIX}left"));
        std::fs::create_dir(&left).expect("makes");
        std::fs::write(left.join("7.0"), "ring").expect("writes");
        std::fs::create_dir(place.path().join("other")).expect("makes");
        remove_left(place.path(), SETTLED);
        assert!(left.is_dir(), "it may be about to be locked");
        remove_left(place.path(), Duration::ZERO);
        assert!(!left.exists() && used.path().is_dir() && place.path().join("other").is_dir());
    }
}
