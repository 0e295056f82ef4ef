//! Traces with pointers replayed under a collector: one of MMTk, of which the binding is here, or one of our own.
//! docs/method/moving.md has the reasons.

mod binding;
pub mod collector;
mod mutator;
pub mod plan;
mod statics;
mod vm;
