//! Two builds of a program compared, and one verdict on time, instructions and memory.

pub mod action_benchmark;
pub mod bencher;
pub mod diagnosis;
pub mod differences;
pub mod figures;
pub mod functions;
pub mod history;
pub mod junit;
pub mod limits;
#[cfg(test)]
pub(crate) mod made_up;
pub mod metric;
mod site_sums;
pub mod sites;
pub mod step_summary;
pub mod values;

/// The schema of the figures' JSON.
pub const SCHEMA: &str = "heaptoll-gate/1";
