//! A collector's heap that an experiment fixes, so that collectors and allocators are compared at equal memory.

use heaptoll_units::kib;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Heaps are whole pages, bytes.
const PAGE: u64 = 4096;

/// A fixed heap, and what it is a multiple of.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HeapLimit {
    /// The stack of the same collector without a limit.
    pub collector: String,
    /// The heap over the smallest one.
    pub factor: f64,
    /// The heap, bytes: whole pages.
    pub bytes: u64,
    /// The smallest heap in which the program completes under the collector, bytes.
    pub smallest_bytes: u64,
}

impl HeapLimit {
    /// A heap of so many times the smallest one, which is rounded up to whole pages.
    pub fn of(collector: &str, factor: f64, smallest_bytes: u64) -> HeapLimit {
        let bytes = (smallest_bytes as f64 * factor).ceil() as u64;
        HeapLimit {
            collector: collector.into(),
            factor,
            bytes: bytes.div_ceil(PAGE).max(1) * PAGE,
            smallest_bytes,
        }
    }

    /// The name of its stack in rows, the same on every program: `tithe-collect@1.5x`.
    pub fn stack(&self) -> String {
        format!("{}@{}x", self.collector, self.factor)
    }

    /// What is stated of a stack that does not complete in it.
    pub fn failure(&self) -> String {
        format!("does not fit in {} KiB", kib(self.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heap_is_a_multiple_in_whole_pages() {
        let limit = HeapLimit::of("tithe-collect", 1.25, 10 * PAGE);
        assert_eq!((limit.bytes, limit.stack().as_str()), (13 * PAGE, "tithe-collect@1.25x"));
        assert_eq!(HeapLimit::of("x", 2.0, 10 * PAGE).stack(), "x@2x");
        assert_eq!(limit.failure(), "does not fit in 52 KiB");
    }
}
