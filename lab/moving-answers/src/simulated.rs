//! What a simulated machine misses of a replay's accesses.

use serde::{Deserialize, Serialize};

/// Misses by accessor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ByAccessor {
    /// Of the program's loads and stores.
    pub program: u64,
    /// Of the headers that allocation writes.
    pub allocator: u64,
    /// Of what collections read and copy, as the simulation has it.
    pub collector: u64,
}

/// One way in which a collection leaves the caches.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Caches {
    /// References made.
    pub references: ByAccessor,
    /// Misses of each cache, nearest first.
    pub misses: Vec<ByAccessor>,
    /// Misses of each TLB, nearest first.
    pub tlb_misses: Vec<ByAccessor>,
}

/// A request that the program marked and that ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SimulatedRequest {
    /// Collections that ended before it began.
    pub after: u32,
    /// Whether there was one within it.
    pub interrupted: bool,
    /// Accesses of the program from the last collection's end to its beginning.
    pub since: u64,
    /// Accesses of the program within it.
    pub accesses: u64,
    /// Cycles that they take: one each, and what they wait for caches and memory. By what collections leave behind: what
    /// they touched; nothing.
    pub cycles: [u64; 2],
}

/// Everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Simulated {
    /// Collections load what they mark and copy, and the caches hold that afterwards.
    pub touched: Caches,
    /// The caches are empty after each collection.
    pub emptied: Caches,
    /// Requests, in the order in which they ended.
    pub requests: Vec<SimulatedRequest>,
}
