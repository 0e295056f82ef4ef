//! The arrival of a process image, as the tool reports it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use crate::atomic::{AtomicU8, AtomicU32, Ordering};

/// A process image that has registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrival {
    /// Its entry: for [`Tap::new`](crate::Tap::new).
    pub index: usize,
    /// Counts arrivals; the entry's number may be used again, this is not.
    pub image: u32,
    /// Process number, as the tool sees it. 0 for a process of another namespace that has ended already.
    pub pid: i32,
    /// Its parent's; 0 where that is not known.
    pub parent_pid: i32,
    /// Whether it was forked from an image that had registered: it has what that allocated.
    pub forked: bool,
    /// The executable, or the end of its path.
    pub exe: PathBuf,
    /// The object that its `malloc` is bound to, or the end of its path; empty when the layer does not state it.
    pub manager: PathBuf,
    /// ns since the file was made.
    pub started_ns: u64,
    /// Whether the process existed when it arrived. One that did not may have ended, or never have existed.
    pub was_there: bool,
}

/// A path that a process wrote into its entry.
pub(crate) fn path(place: &[AtomicU8], length: &AtomicU32) -> PathBuf {
    let length = length.load(Ordering::Relaxed) as usize;
    let bytes: Vec<u8> = place.iter().take(length).map(|byte| byte.load(Ordering::Relaxed)).collect();
    PathBuf::from(OsStr::from_bytes(&bytes))
}
