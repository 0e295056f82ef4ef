//! One experiment on many machines: cut into shards, measured shard by shard wherever there is a machine of its class,
//! and merged.
//!
//! Nothing here schedules. A shard is a process that writes one file; Slurm, GNU parallel or a shell starts it.

pub mod cutting;
pub mod digests;
mod error;
pub mod format;
pub mod machine_class;
pub mod merge;
pub mod plan;
pub mod planning;
mod publish;
pub mod role;
pub mod work;

pub use error::ClusterError;
pub use machine_class::MachineClass;
pub use plan::Plan;

schemars::labelled!(Plan, "heaptoll-plan/1");
