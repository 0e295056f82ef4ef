//! One replay under one plan.

use serde::{Deserialize, Serialize};

use crate::{Collections, Simulated};

/// What a replay found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Replayed {
    /// The plan.
    pub plan: String,
    /// Size of the heap, bytes.
    pub heap_bytes: u64,
    /// Whether every object found memory; otherwise the replay ended at the first that did not.
    pub fits: bool,
    /// Objects allocated.
    pub objects: u64,
    /// Bytes that the program had not freed at the end, rounded up to words: of the replay or where it did not fit.
    pub live_bytes: u64,
    /// Bytes of objects in the heap at the end, headers included. Where it did not fit, what the last collection of the
    /// whole heap kept, and what was allocated since.
    pub present_bytes: u64,
    /// Stores of pointers to objects that had been collected, their last touches being over: the words hold none.
    pub lost_edges: u64,
    /// Bytes that collections copied, headers included.
    pub copied_bytes: u64,
    /// Copies of objects.
    pub copied_objects: u64,
    /// Time from the first operation to the last, ns.
    pub replay_ns: u64,
    /// CPU time of the thread that replays, ns.
    pub mutator_cpu_ns: u64,
    /// CPU time of the collector, ns; with checks, theirs too.
    pub collector_cpu_ns: u64,
    /// Loads and stores of the program that were made.
    #[serde(default)]
    pub accesses: u64,
    /// Loads and stores to objects that had been collected: none, unless the trace is damaged.
    #[serde(default)]
    pub lost_accesses: u64,
    /// What caches would miss of them, in the run in which they are simulated.
    #[serde(default)]
    pub simulated: Option<Simulated>,
    /// Its collections.
    pub collections: Collections,
}
