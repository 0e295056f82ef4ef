//! Driving any manager with a trace.

pub mod error;
pub mod flatten;
pub mod job;
pub mod program;
pub mod source;
pub mod start;
pub mod word;

pub use error::ReplayError;
