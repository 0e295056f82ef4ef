//! What the manager says of its heap, told inside the process at the pause.

use serde::{Deserialize, Serialize};

/// `struct heaptoll_census` of include/heaptoll.h, and what else a manager tells. All in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Census {
    /// Who tells.
    pub source: Source,
    /// All other threads stood still.
    pub exact: bool,
    /// Address space held for the heap.
    pub mapped_bytes: u64,
    /// In blocks that the program holds; of a collector, that no collection has reclaimed.
    pub live_bytes: u64,
    /// In blocks ready to be handed out, caches included.
    pub free_bytes: u64,
    /// Headers, tables, bitmaps.
    pub metadata_bytes: u64,
    /// Freed by the program, not reusable yet.
    pub quarantined_bytes: u64,
    /// Mapped, never carved into blocks.
    pub unused_bytes: u64,
    /// Of unused: avoided because words look like addresses in it (`tithe_stats`), where told.
    pub blacklisted_bytes: Option<u64>,
    /// The same after a full collection that was asked for at this pause, where one was: `live_bytes` of it.
    pub live_after_collection_bytes: Option<u64>,
    /// What each sort of root holds alone, live and dead (`tithe_held`), where told.
    pub held: Option<Held>,
}

/// Who told a census.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// A manager that has the control symbol.
    #[default]
    Control,
    /// glibc's mallinfo2: mapped is `arena + hblkhd`, live `uordblks + hblkhd` (headers and thread caches included), free
    /// `fordblks`, unused `keepcost` (which is part of free).
    Mallinfo,
}

/// Bytes that would go if the words of one sort of root were gone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Held {
    /// Of the threads.
    pub stacks: u64,
    /// Data of the program and its libraries.
    pub statics: u64,
    /// Other memory.
    pub mappings: u64,
    /// Of stopped threads.
    pub registers: u64,
}
