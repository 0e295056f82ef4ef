//! Replays of traces with pointers: [`prepare::prepare`] makes a program of a trace, [`replay::replay`] runs it over a
//! [`heap::Heap`], whose collections are checked against the trace's own graph. [`collectors`] are heaps of our own.
//!
//! The mutator does what the trace states: allocates, stores references through the heap's barrier, and has as roots
//! what the trace's root points found and what was touched or allocated since. An object is kept to its last touch
//! whatever the graph states. docs/method/moving.md has the reasons.

pub mod check;
pub mod clock;
pub mod collectors;
pub mod error;
pub mod header;
pub mod heap;
pub mod prepare;
pub mod program;
pub mod replay;
pub mod settings;
pub mod simulate;
pub mod table;
pub mod world;
