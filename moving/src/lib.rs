//! Traces with pointers replayed under collectors that move objects, those of MMTk: [`prepare::prepare`] makes a program
//! of a trace, [`replay::replay`] runs it under one plan.
//!
//! The mutator does what the trace states: allocates, stores references through the plan's barrier, and has as roots
//! what the trace's root points found and what was touched or allocated since. An object is kept to its last touch
//! whatever the graph states. docs/method/moving.md has the reasons.

mod binding;
mod check;
pub mod error;
mod header;
mod mutator;
pub mod plan;
pub mod prepare;
pub mod program;
pub mod replay;
mod table;
mod vm;
mod world;
