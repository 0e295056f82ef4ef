//! Traces with pointers: the objects of one process image, which of them point to which, and from where the program
//! could reach them.
//!
//! [`Writer`] makes one, [`Reader`] reads it as a stream. docs/reference/graph-format.md is the specification.

mod decoder;
mod encoder;
mod event;
mod format;
mod live;
mod reader;
mod writer;

pub use event::{AllocationKind, Event, FreeCause, LastTouch, RootKind};
pub use reader::{Batch, Reader};
pub use writer::{Access, Allocation, Edge, Root, Writer};

pub(crate) use format::FILE_MAGIC;

/// Whether a file that begins with these bytes, at least eight, is a trace with pointers.
pub fn is_graph(first: &[u8]) -> bool {
    first.starts_with(&FILE_MAGIC)
}
