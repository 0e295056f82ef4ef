//! `heaptoll export`: a trace in the formats of other tools, events as Parquet or call stacks for a viewer of profiles; an
//! experiment as a data set.

pub mod dataset;
pub mod parquet;
pub mod profile;
mod target;
mod tracks;
