//! What a writer of traces with pointers is given: allocations, edges, roots and accesses.

use super::event::{AllocationKind, RootKind};

/// A call that made an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allocation {
    /// Bytes requested.
    pub size: u64,
    /// The call stack; kept when the header has `sites` set.
    pub site: u32,
    /// The calling thread, an index.
    pub thread: u32,
    /// How.
    pub kind: AllocationKind,
    /// Binary logarithm of the alignment; kept of [`AllocationKind::Aligned`].
    pub align_log2: u8,
}

/// A word of an object that holds a pointer: see [`Event::Edge`](super::Event::Edge).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Edge {
    /// The object that contains the word.
    pub from: u64,
    /// The word's offset in it, bytes.
    pub offset: u64,
    /// The object that the pointer leads to.
    pub to: u64,
    /// Offset of that in it, bytes.
    pub to_offset: u64,
}

/// A root: see [`Event::Root`](super::Event::Root).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Root {
    /// The object.
    pub object: u64,
    /// Where the word lies.
    pub kind: RootKind,
    /// Lowest offset in the object, bytes.
    pub offset: u64,
}

/// A load or store: see [`Event::Access`](super::Event::Access).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Access {
    /// The object.
    pub object: u64,
    /// First byte in it.
    pub offset: u64,
    /// Bytes.
    pub size: u64,
    /// A store.
    pub store: bool,
    /// The thread, an index.
    pub thread: u32,
}
