//! The arrival of a process image, as the tool reports it.

use std::path::PathBuf;

/// A process image that has registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrival {
    /// Its entry: for [`Tap::new`](crate::Tap::new).
    pub index: usize,
    /// Counts arrivals; the entry's number may be used again, this is not.
    pub image: u32,
    /// Process number, as the tool sees it. 0 for a process of another namespace that has ended already.
    pub pid: i32,
    /// Its parent's.
    pub parent_pid: i32,
    /// The executable, or the end of its path.
    pub exe: PathBuf,
    /// ns since the file was made.
    pub started_ns: u64,
    /// Whether the process existed when it arrived. One that did not may have ended, or never have existed.
    pub was_there: bool,
}
