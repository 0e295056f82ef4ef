//! The progress of a collection: what its phases record for those after them, and for the log.

use crate::generations::Generation;
use crate::log::Reason;

/// Why there was no collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotCollected {
    /// The mode is `explicit`.
    Mode,
    /// A thread did not stop, the system did not give what is needed, or a collection is running already.
    Abandoned,
}

/// The times of a collection, ns.
#[derive(Debug, Clone, Copy, Default)]
pub struct Times {
    pub started: u64,
    pub stopped: u64,
    pub marked: u64,
    pub swept: u64,
    pub resumed: u64,
}

/// What is known of a collection from its start on.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    pub number: u64,
    pub reason: Reason,
    pub times: Times,
    /// How long the program ran since the last one, ns.
    pub mutator_ns: u64,
    /// Bytes allocated since the last one, less those freed.
    pub allocated: isize,
    /// Bytes in blocks.
    pub before: usize,
    /// Threads of the process.
    pub threads: usize,
    /// What is not marked is reclaimed.
    pub reclaims: bool,
}

/// What marking has found.
#[derive(Debug, Clone, Copy)]
pub struct Found {
    /// Bytes in blocks that are reachable or in caches.
    pub live: usize,
    /// Bytes of roots.
    pub roots: usize,
    /// Threads that marked.
    pub markers: usize,
    /// What was read.
    pub generation: Generation,
    /// Bytes in old blocks, and of them those that were read since they may have been written.
    pub old: usize,
    pub reread: usize,
    /// Bytes of pages whose first write since the last collection was recorded.
    pub written: usize,
    /// Mode `guard`: what became of freed blocks.
    pub guarded: Option<Guarded>,
}

/// What a collection in mode `guard` has found of freed blocks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Guarded {
    /// Bytes of blocks in caches.
    pub cached: usize,
    /// Bytes of freed blocks that waited, and of those of them that a word leads to, which are kept, and their number.
    pub waiting: usize,
    pub kept: usize,
    pub kept_blocks: usize,
    /// Bytes of these that count against the bound of freed blocks.
    pub bounded: usize,
    /// Of those, bytes of the oldest that became available, as more waited than may.
    pub released: usize,
}

impl Guarded {
    /// Nothing.
    pub const NONE: Guarded =
        Guarded { cached: 0, waiting: 0, kept: 0, kept_blocks: 0, bounded: 0, released: 0 };
}
