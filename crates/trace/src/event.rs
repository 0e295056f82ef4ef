//! Events of the heap, one call at a time.
//!
//! Objects are named by *slots*: small numbers that are reused when an object is freed, the last freed first. So a
//! reader keeps what it needs to know of live objects in a plain array, and a replay drives a manager from one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[repr(u8)]
pub enum EventKind {
    /// `malloc`, and `realloc` of nothing: a new object.
    Malloc,
    /// `calloc`: a new object, zeroed.
    Calloc,
    /// `memalign`, `aligned_alloc`, `posix_memalign`, `valloc`, `pvalloc`: a new object.
    Aligned,
    /// `operator new`, aligned or not: a new object.
    New,
    /// `realloc` and `reallocarray` of an object: it keeps its slot, and everything but its size.
    Realloc,
    /// `free`: the object's slot is free from here on.
    Free,
    /// `operator delete`.
    Delete,
    /// `realloc` of an object to size 0 that returned null: frees it.
    ReallocFree,
    /// A call for a new object or a resize that returned null. No slot: nothing changed.
    Failed,
    /// `free`, `delete` or `realloc` of a block that this trace does not know (allocated before it began, inherited
    /// over a fork, or allocated past the layer). No slot. A realloc that returned a block is followed by a `Malloc` of
    /// it.
    Foreign,
    /// An object that was freed past the layer: its address was allocated again. Frees the slot.
    Lost,
}

impl EventKind {
    /// Makes a new object.
    #[inline(always)]
    pub fn allocates(self) -> bool {
        matches!(self, EventKind::Malloc | EventKind::Calloc | EventKind::Aligned | EventKind::New)
    }

    /// Ends an object.
    #[inline(always)]
    pub fn frees(self) -> bool {
        matches!(self, EventKind::Free | EventKind::Delete | EventKind::ReallocFree | EventKind::Lost)
    }
}

/// One event, in the order in which they happened in the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// The call.
    pub kind: EventKind,
    /// Realloc: whether the block moved.
    pub moved: bool,
    /// Aligned, and New with an alignment: its binary logarithm; otherwise 0.
    pub align_log2: u8,
    /// The calling thread: an index into the trace's threads, in order of their first event.
    pub thread: u32,
    /// The object. Meaningless for Failed and Foreign (0).
    pub slot: u32,
    /// The call stack: an index into the trace's sites; 0 is "not recorded".
    pub site: u32,
    /// Bytes requested: of allocations, reallocs and failures. 0 for frees.
    pub size: u64,
    /// Bytes usable, by `malloc_usable_size`: of allocations and reallocs. 0 where unknown.
    pub usable: u64,
    /// ns from the beginning of the trace: of the last stamp at or before this event.
    pub time_ns: u64,
    /// ns that the call took; 0 when the trace has no latencies.
    pub latency_ns: u32,
}
