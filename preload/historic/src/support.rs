//! What the historic collectors share around their heaps: the program as a collector sees it, tables outside of the heap,
//! and the option of a limit.

mod buffer;
mod limit;
mod mutators;
mod world;

pub use buffer::Buffer;
pub use limit::limit_from;
pub use mutators::{Aborted, CollectionOutcome, Collector, Mutators, Visitor, status};
