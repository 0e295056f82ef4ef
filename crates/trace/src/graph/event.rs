//! Events of a trace with pointers.
//!
//! Objects are named by the number of their allocation, from 0: every successful call of the malloc family makes one,
//! `realloc` too, which frees the object it was given. Numbers are never used again.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How an object was allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum AllocationKind {
    /// `malloc`, `operator new`, and `realloc` of nothing.
    Plain,
    /// `calloc`.
    Zeroed,
    /// With an alignment: `memalign`, `aligned_alloc`, `posix_memalign`, `valloc`, `operator new` with one.
    Aligned,
    /// `realloc` and `reallocarray` of an object, in place or not. Edges that were copied follow as
    /// [`Event::Edge`]s, then the [`Event::Free`] of the old object.
    Resized,
}

/// Why an object ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum FreeCause {
    /// `free`, `operator delete`.
    Free,
    /// `realloc`, which made another object of it; also one to size 0 that returned null.
    Resized,
    /// Not seen: its memory was allocated again, or was unmapped.
    Lost,
}

/// Where a root lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum RootKind {
    /// A register of a thread, also those that it left in the frame of a signal.
    Register,
    /// A thread's stack, from the red zone below its stack pointer up.
    Stack,
    /// Writable data of a program or library.
    Static,
    /// Other writable memory that is not the manager's: mappings of the program, a stack's dead part is none.
    Mapping,
}

/// The last reference of the program to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LastTouch {
    /// It happened before the event of this number, and after the one before that. A reader that keeps an object until
    /// it has read this many events keeps it to its last touch.
    pub event: u64,
    /// Bytes allocated until then.
    pub clock_bytes: u64,
}

/// One event, in the order in which they happened in the process image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A new object; no word of it is an edge.
    Allocate {
        /// Its number: the number of allocations before it.
        object: u64,
        /// Bytes requested.
        size: u64,
        /// The call stack: an index into the trace's sites; 0 is "not recorded".
        site: u32,
        /// The calling thread, an index.
        thread: u32,
        /// How.
        kind: AllocationKind,
        /// [`AllocationKind::Aligned`]: binary logarithm of the alignment; otherwise 0.
        align_log2: u8,
    },
    /// The object's end by the program. Edges from it and to it end with it, without a [`Event::Clear`].
    Free {
        /// The object.
        object: u64,
        /// The calling thread, an index.
        thread: u32,
        /// Why.
        cause: FreeCause,
        /// Its last touch; none when the program never touched it.
        last_touch: Option<LastTouch>,
    },
    /// At the end of the trace: an object that was never freed.
    Kept {
        /// The object.
        object: u64,
        /// Its last touch; none when the program never touched it.
        last_touch: Option<LastTouch>,
    },
    /// A word of an object holds a pointer from here on, whatever it held before.
    Edge {
        /// The object that contains the word.
        from: u64,
        /// The word's offset in it, bytes. The word's address is a multiple of 8.
        offset: u64,
        /// The object that the pointer leads to, perhaps `from`.
        to: u64,
        /// Offset of that in it, bytes; 0 at its start.
        to_offset: u64,
    },
    /// A word of an object that held an edge does not hold it any more: it was overwritten, wholly or in part.
    Clear {
        /// The object.
        from: u64,
        /// The word's offset in it, bytes.
        offset: u64,
    },
    /// The program touched an object for the first time since the last root point. Objects allocated since then have no
    /// such event.
    Touch {
        /// The object.
        object: u64,
    },
    /// A root point begins: what can be reached without going through another object, by a conservative scan. The
    /// [`Event::Root`]s follow at once, then [`Event::RootsEnd`].
    RootsBegin {
        /// Bytes allocated so far.
        clock_bytes: u64,
    },
    /// A root: each pair of object and kind is there once.
    Root {
        /// The object.
        object: u64,
        /// The lowest offset in it, bytes, of the words found there: 0 if one leads to its start.
        offset: u64,
        /// Where the word lies.
        kind: RootKind,
    },
    /// A root point ends.
    RootsEnd {
        /// Whether all of it was read: if not, objects may have other roots.
        whole: bool,
    },
    /// With references only: the program loads from or stores into an object.
    Access {
        /// The object.
        object: u64,
        /// First byte in it.
        offset: u64,
        /// Bytes.
        size: u64,
        /// A store.
        store: bool,
        /// The thread, an index.
        thread: u32,
    },
    /// With references only: a request that the program marks begins.
    RequestBegin {
        /// The thread, an index.
        thread: u32,
    },
    /// With references only: a request ends.
    RequestEnd {
        /// The thread, an index.
        thread: u32,
    },
}
