//! Traces with pointers: the objects of one process image, which of them point to which, and from where the program
//! could reach them.
//!
//! [`Writer`] makes one, [`Reader`] reads it as a stream. docs/reference/graph-format.md is the specification.

mod call;
mod decoder;
mod encoder;
mod event;
mod format;
mod live;
mod writer;

pub use call::{Access, Allocation, Edge, Root};
pub use event::{AllocationKind, Event, FreeCause, LastTouch, RootKind};

use crate::event_reader::{EventBatch, EventReader};
use crate::event_writer::EventWriter;

/// Events in order.
pub type Batch = EventBatch<Event>;
/// Reads one trace with pointers.
pub type Reader<R> = EventReader<R, decoder::Decoder>;
/// Writes one trace with pointers. The header's `graph` states what was recorded.
pub type Writer<W> = EventWriter<W, encoder::Encoder>;

impl<R> EventReader<R, decoder::Decoder> {
    /// Bytes of the events before compression, so far.
    pub fn plain_bytes(&self) -> u64 {
        self.decoder.plain_bytes()
    }
}

/// Whether a file that begins with these bytes, at least eight, is a trace with pointers.
pub fn is_graph(first: &[u8]) -> bool {
    first.starts_with(&crate::format::GRAPH_MAGIC)
}
