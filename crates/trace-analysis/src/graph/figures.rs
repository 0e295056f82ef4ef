//! Figures of a trace with pointers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::sites::GraphSite;

/// Roots by kind, summed over all root points.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RootCounts {
    /// In registers.
    pub register: u64,
    /// On stacks.
    pub stack: u64,
    /// In data of the program and its libraries.
    #[serde(rename = "static")]
    pub in_static: u64,
    /// In other mappings.
    pub mapping: u64,
}

/// The heap at a root point.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RootPoint {
    /// Bytes allocated until then.
    pub clock_bytes: u64,
    /// Bytes of objects that are not freed.
    pub live_bytes: u64,
    /// Of these, what can be reached from the roots.
    pub reachable_bytes: u64,
    /// Of these, what the program still touches.
    pub used_bytes: u64,
}

/// Objects that were not reachable at a root point and touched later.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HiddenPointers {
    /// Objects.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Objects at root points: one that is hidden at several counts at each.
    pub at_points: u64,
}

/// How far the bounds of objects' lifetimes are apart: the last touch, and the free. Space-time is bytes times bytes
/// allocated. Objects that are never freed are left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeathBounds {
    /// Objects freed, and their bytes.
    pub objects: u64,
    /// See `objects`.
    pub bytes: u64,
    /// Space-time of them from the allocation to the free.
    pub lifetime: u128,
    /// The part of it from the last touch (or the allocation) to the free.
    pub unused: u128,
    /// Objects that could not be reached any more at a root point before their free, and their bytes.
    pub unreachable_before_free: u64,
    /// See `unreachable_before_free`.
    pub unreachable_before_free_bytes: u64,
    /// The part of `lifetime` from that root point to the free.
    pub unreachable: u128,
    /// Objects that lived at a root point and were reachable at the last one before their free: a collector would have
    /// kept them at least that long. And their bytes.
    pub reachable_at_last_point: u64,
    /// See `reachable_at_last_point`.
    pub reachable_at_last_point_bytes: u64,
    /// Objects that lived at no root point.
    pub between_points: u64,
}

schemars::labelled!(GraphFigures, "heaptoll-graph/1");

/// All figures.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GraphFigures {
    /// The command, as it was recorded.
    pub command: Vec<String>,
    /// The manager.
    pub manager: String,
    /// Whether every load and store is in the trace.
    pub references: bool,
    /// Whether something of the trace is damaged or missing.
    #[serde(skip)]
    pub is_damaged: bool,
    /// How the program ended; none when the trace is cut.
    pub ended: Option<String>,
    /// Events, and the bytes that they take before compression.
    pub events: u64,
    /// See `events`.
    pub plain_bytes: u64,
    /// Objects, and their bytes.
    pub objects: u64,
    /// See `objects`.
    pub bytes: u64,
    /// Most bytes alive.
    pub max_live_bytes: u64,
    /// Edges stored.
    pub edges_stored: u64,
    /// Edges overwritten by something else than a pointer.
    pub edges_cleared: u64,
    /// Most edges at once, between live objects.
    pub max_edges: u64,
    /// Bytes alive when there were most edges; their words are 8 bytes each.
    pub bytes_at_max_edges: u64,
    /// First touches since a root point.
    pub touches: u64,
    /// Loads and stores, where they were recorded.
    pub accesses: u64,
    /// Of these, stores.
    pub stores: u64,
    /// Requests that the program marked and that ended, where loads and stores were recorded.
    pub requests: u64,
    /// Loads and stores in them.
    pub request_accesses: u64,
    /// Roots.
    pub roots: RootCounts,
    /// Root points, in order.
    pub points: Vec<RootPoint>,
    /// Objects touched although nothing led to them.
    pub hidden: HiddenPointers,
    /// Bounds of lifetimes.
    pub bounds: DeathBounds,
    /// By call site, the most bytes first; empty where call stacks were not recorded.
    #[serde(default)]
    pub call_sites: Vec<GraphSite>,
    /// Damage and omissions.
    pub warnings: Vec<String>,
}
