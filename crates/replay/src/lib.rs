//! Driving any manager with a trace.

pub mod child;
pub mod drift;
pub mod error;
mod facts;
pub mod findings;
pub mod flatten;
pub mod job;
pub mod ledger;
pub mod live_blocks;
mod origins;
pub mod program;
pub mod source;
pub mod start;
pub mod study;
pub mod word;

pub use error::ReplayError;
