//! What collections do: how many, their pauses, what they keep.

use serde::{Deserialize, Serialize};

/// Collections of a replay.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Collections {
    /// Collections of the whole heap.
    pub full: u64,
    /// Collections of the nursery alone; under `counting`, reconciliations of the zero count table.
    pub nursery: u64,
    /// Of all, those that MMTk began because one before had not freed enough.
    pub emergency: u64,
    /// How long the mutator waited for each, ns, without the replay's own bookkeeping.
    pub pauses_ns: Vec<u64>,
    /// Time of bookkeeping in collections: the replay's table in place of stacks and static data, ns.
    pub bookkeeping_ns: u64,
    /// CPU time of it, ns: a part of the collector's.
    #[serde(default)]
    pub bookkeeping_cpu_ns: u64,
    /// Time of checks after collections, ns.
    pub check_ns: u64,
    /// Objects that only their last touch ahead kept, over all collections: the program reaches them by pointers that
    /// the trace does not have.
    pub hidden: u64,
    /// Most of them at one collection.
    pub most_hidden: u64,
    /// Most pages in use when a collection began.
    pub most_pages: u64,
    /// Objects in the heap after collections that the trace does not reach, over all that were checked.
    pub beyond_objects: u64,
    /// Their bytes.
    pub beyond_bytes: u64,
    /// Objects that the trace reaches, over the same collections.
    pub reached_objects: u64,
    /// Their bytes.
    pub reached_bytes: u64,
    /// Collections that were checked.
    pub checked: u64,
    /// Bytes that the trace reached at the last collection that was checked.
    pub last_reached_bytes: u64,
    /// The first object that was gone or changed.
    pub violation: Option<String>,
    /// The first invariant of the collector's own heap that did not hold: its accounts or its structure.
    #[serde(default)]
    pub damage: Option<String>,
}

impl Collections {
    /// Whether a check has found the collector wrong.
    pub fn is_wrong(&self) -> bool {
        self.violation.is_some() || self.damage.is_some()
    }
}
