//! Runs of programs, prepared and measured: the program and its standard input, what stands between it and its manager,
//! runs under layers and tracers, records and samples.

pub mod cells;
pub mod chosen;
pub mod findings;
pub mod graph;
pub mod measurement;
pub mod preparation;
pub mod record;
pub mod sampled;
pub mod siblings;
pub mod standard_input;
pub mod studied;
pub mod traced;
pub mod workload;
