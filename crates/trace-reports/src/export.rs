//! `heaptoll trace export`: a trace in the formats of other tools, events as Parquet or call stacks for a viewer of profiles; an
//! experiment as a data set.

pub mod dataset;
pub mod page;
pub mod parquet;
pub mod profile;
pub(crate) mod target;
mod tracks;
