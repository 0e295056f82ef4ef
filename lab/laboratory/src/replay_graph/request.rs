//! What to replay under which plans in which heaps.

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::misses::Question;

/// Heaps at most: each is a run under each plan.
pub const MOST_HEAPS: usize = 12;

/// What is requested.
#[derive(Debug, Clone)]
pub struct GraphReplayRequest {
    /// The trace, a file.
    pub trace: PathBuf,
    /// Plans, by `mmtk:NAME`; all that collect without any. Ratios are to the first.
    pub plans: Vec<String>,
    /// Heaps.
    pub heaps: Vec<HeapSize>,
    /// What heaps are multiples of.
    pub base: HeapBase,
    /// A smallest heap may be too large by this share (one page at least).
    pub tolerance: f64,
    /// Whether each collection is compared with the trace, in a run of its own for each plan and heap.
    pub check: bool,
    /// Caches to simulate, in a run of its own for each plan and heap.
    pub misses: Option<Question>,
    /// Timed runs of each plan in each heap.
    pub runs: u32,
    /// Seed of the order of runs; from the clock without one.
    pub seed: Option<u64>,
    /// Threads of the collector.
    pub collector_threads: u32,
    /// Longest that a run may take.
    pub timeout: Duration,
    /// Memory that may be taken to make the trace ready, bytes.
    pub memory_limit_bytes: u64,
}

/// Size of a heap.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HeapSize {
    /// So many bytes.
    Bytes(u64),
    /// So many times a smallest heap.
    Times(f64),
}

/// What heaps are multiples of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HeapBase {
    /// The least of all plans' smallest heaps: collectors are compared at equal memory.
    Least,
    /// The smallest heap of each plan itself.
    Own,
}
