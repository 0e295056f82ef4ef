//! Two builds of a program compared, and one verdict on time, instructions and memory.

pub mod figures;
pub mod limits;
pub mod metric;

/// The schema of the figures' JSON.
pub const SCHEMA: &str = "heaptoll-gate/1";
