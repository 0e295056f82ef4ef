//! Runs of programs, prepared and measured: the program and its standard input, what stands between it and its manager,
//! runs under layers and tracers, records and samples.

pub mod cells;
pub mod chosen;
pub mod findings;
#[cfg(feature = "full")]
pub mod graph;
pub mod measurement;
pub mod preparation;
#[cfg(feature = "full")]
pub mod record;
#[cfg(feature = "full")]
pub mod sampled;
#[cfg(feature = "full")]
pub mod siblings;
pub mod standard_input;
pub mod stored_counts;
pub mod studied;
#[cfg(feature = "full")]
pub mod traced;
pub mod workload;
