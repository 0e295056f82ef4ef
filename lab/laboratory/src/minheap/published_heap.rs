//! The smallest heaps that Sareen and Blackburn (2022, §4) report.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::published::{is_version_of, rows};

/// Its file in `studies/published`.
const TABLE: &str = "sareen2022-minheap.csv";

/// A line of it: how much more heap than the footprint of explicit management a collector needs: geometric means over DaCapo.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SmallestHeap {
    /// The collector, by the paper's name.
    pub collector: String,
    /// The allocator under the mark-sweep that stands for explicit management.
    pub allocator: String,
    /// Its period, bytes allocated.
    pub every_bytes: u64,
    /// Percent over the footprint.
    pub percent: f64,
}

impl SmallestHeap {
    /// As a ratio.
    pub fn ratio(&self) -> f64 {
        1.0 + self.percent / 100.0
    }

    /// Whether an allocator of ours is, in some version, the one of the baseline.
    pub fn is_over(&self, allocator: &str) -> bool {
        is_version_of(&self.allocator, allocator)
    }
}

/// What the paper reports of smallest heaps as numbers (the copying collectors are in figures only).
pub fn smallest_heaps() -> impl Iterator<Item = SmallestHeap> {
    rows(TABLE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::are_all;

    #[test]
    fn every_line_of_the_table_is_read() {
        assert!(are_all(TABLE, smallest_heaps()));
    }

    #[test]
    fn a_collector_needs_more_over_the_allocator_that_needs_less() {
        let of = |allocator: &str| {
            smallest_heaps().find(|one| one.is_over(allocator)).map(|one| one.ratio()).expect(allocator)
        };
        assert!(of("tcmalloc") > of("mimalloc3"));
    }
}
