//! A trace made ready for replays.

use serde::{Deserialize, Serialize};

/// What a trace holds, as far as replays of it need to know.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Prepared {
    /// Program and arguments that were recorded.
    pub command: Vec<String>,
    /// Objects.
    pub objects: u64,
    /// Sum of their sizes, bytes.
    pub allocated_bytes: u64,
    /// Most requested bytes that the program had not freed at once.
    pub most_live_bytes: u64,
    /// Words that pointers were stored into.
    pub edges: u64,
    /// Words that pointed to an object when the program freed it: cleared there, as the trace defines.
    pub dangling: u64,
    /// Root points.
    pub root_points: u64,
    /// Root points of which the scan was not complete: the roots before them stay roots.
    pub partial_root_points: u64,
    /// Threads whose events are in the trace; one thread replays them in order.
    pub threads: u64,
    /// Objects of which the trace does not have the end (it was cut): kept to the end of the replay.
    pub endless: u64,
    /// Loads and stores of the program; 0 where the trace was recorded without `--references`.
    #[serde(default)]
    pub accesses: u64,
    /// Of these, to objects of no bytes: not replayed.
    #[serde(default)]
    pub accesses_beyond: u64,
    /// Ends of requests that the program marked.
    #[serde(default)]
    pub requests: u64,
    /// What the reader of the trace warns of.
    pub warnings: Vec<String>,
}
