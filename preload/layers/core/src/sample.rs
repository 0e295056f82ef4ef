//! The parts of the sampling layer, without the names that it exports.
//!
//! A [`Sampler`] is a process's state. The layer decides which allocation is sampled (`heaptoll_sampling::Random`) and
//! passes it here with its call stack; each free checks the [`Filter`] by one load, and only what passes it is searched
//! for among the [`live`] samples. Sums by call stack go to the process's [`file`], which the tool reads.
//!
//! Nothing here takes a lock or allocates on the heap, so that signal handlers and children of fork may do anything at any
//! point. A child of fork finds the state wiped: it begins a file of its own at its first sample, and does not know the
//! samples of its parent.

mod control;
pub mod file;
pub mod filter;
pub mod live;
mod observer;
mod sampler;
mod system;

pub use control::RunControl;
pub use filter::Filter;
pub use observer::Observer;
pub use sampler::{Sampler, Taken};
