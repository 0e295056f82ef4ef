//! The results of a simulation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::distance::curve::Curve;
use crate::forest::Associative;
use crate::split::Split;

/// Misses and faults of one stream of references, for every size of memory.
///
/// A reference that touches several lines (or pages) is one reference and misses at most once: if any of them is
/// missing. That is cachegrind's rule too. An access of the kernel to a range counts as one reference for each line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// Bytes of a line.
    pub line_bytes: u64,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// References made.
    pub references: Split<u64>,
    /// References among them that touched more than one line.
    pub straddling: Split<u64>,
    /// Fully associative caches of every size; an entry is a line.
    pub lines: Option<Curve>,
    /// Memories of every size under LRU, and TLBs of every number of entries; an entry is a page.
    pub pages: Option<Curve>,
    /// Associative caches, by set count, then ways.
    pub associative: Vec<Associative>,
    /// Why the end of the run is missing; `None` if it is not.
    pub partial: Option<Partial>,
    /// Memory of the simulators, bytes.
    pub memory_bytes: u64,
}

/// A simulation that did not cover the whole run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Partial {
    /// The simulators needed more than this limit, bytes; later references were only counted.
    Memory {
        /// The limit, bytes.
        limit: u64,
        /// References that were not simulated.
        #[serde(rename = "unheard")]
        unsimulated: u64,
    },
}

impl Profile {
    /// Misses of one associative cache, if it was simulated.
    pub fn associative(&self, sets: u64, ways: u32) -> Option<&Associative> {
        self.associative.iter().find(|cache| cache.sets == sets && cache.ways == ways)
    }
}
