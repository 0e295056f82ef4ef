//! The folder of one run's rings and logs: in memory if there is enough.

use std::path::{Path, PathBuf};

use heaptoll_scratch::Scratch;

use crate::error::TracerError;
use crate::options::LOGS;

/// Free bytes from which a folder in memory serves for rings: they take 4 MiB a process.
const IN_MEMORY: u64 = 512 << 20;

/// Makes the folder.
///
/// # Errors
/// No folder can be made.
pub fn make() -> Result<Scratch, TracerError> {
    let in_memory = PathBuf::from("/dev/shm");
    let elsewhere = std::env::temp_dir();
    // Folders left by killed runs may be why too little is free.
    heaptoll_scratch::remove_left(&in_memory);
    if free_bytes(&in_memory).is_some_and(|free| free >= IN_MEMORY)
        && let Ok(scratch) = make_in(&in_memory)
    {
        return Ok(scratch);
    }
    make_in(&elsewhere).map_err(|cause| TracerError::Scratch { folder: elsewhere, cause })
}

fn make_in(folder: &Path) -> std::io::Result<Scratch> {
    let scratch = Scratch::make_in(folder)?;
    std::fs::create_dir(scratch.path().join(LOGS))?;
    Ok(scratch)
}

fn free_bytes(folder: &Path) -> Option<u64> {
    let about = rustix::fs::statvfs(folder).ok()?;
    Some(about.f_bavail * about.f_frsize)
}
