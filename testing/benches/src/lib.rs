//! Benches: heaptoll measured by itself, and what it is compared with; a command each. [`adversary`] and [`fastpath`]
//! have integration tests.

pub mod adversary;
mod child;
mod choosing;
mod collectors;
mod command;
mod compile;
mod error;
mod exact;
mod experiment;
mod fairness;
pub mod fastpath;
mod installation;
mod layers;
mod own;
mod profilers;
mod recording;
mod table;

pub use command::main;
pub use error::Error;
pub use experiment::{NoProgress, Stack};
