//! How to replay, whatever the collector.

use crate::simulate;

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Size of the heap, bytes; whole pages are used.
    pub heap_bytes: u64,
    /// Whether each collection is checked against the trace's own graph.
    pub check: bool,
    /// What is simulated.
    pub simulate: Option<simulate::Settings>,
}
