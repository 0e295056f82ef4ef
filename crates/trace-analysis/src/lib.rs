//! The figures of a trace: counts, lifetimes, bounds, leaks.
//!
//! Every analysis consumes the events of a trace one at a time, in order, and keeps an array of the live objects and
//! sums: its memory does not grow with the length of the trace. It computes; text and tables are made by the caller.

pub mod bound;
pub mod by_object;
pub mod feed;
pub mod graph;
pub mod leaks;
pub mod lifetimes;
pub mod objects;
pub mod profile;
mod share;
mod site_sums;
pub mod stacks;
pub mod stat;
pub mod subject;
