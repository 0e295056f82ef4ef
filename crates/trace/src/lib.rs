//! The trace: every allocation of one process, in order, in a compact file that may be cut anywhere.
//!
//! [`Writer`] makes one, [`Reader`] reads it as a stream, [`tables`] reads all but the events.
//! [`graph`] has the same for traces with pointers.
//! docs/reference/trace-format.md is the specification.

mod chunks;
mod column;
mod decoder;
mod encoder;
mod error;
mod event;
mod event_reader;
mod event_writer;
mod file_head;
mod file_kind;
mod format;
mod frame;
pub mod graph;
mod header;
mod last_frees;
mod live;
mod malformed;
mod memory;
mod output;
mod packed;
mod sites;
mod slots;
mod sniff;
mod tables;
mod text;
mod writer;

pub use error::TraceError;
pub use event::{Event, EventKind};
pub use event_writer::Settings;
pub use format::VERSION;
pub use header::{
    Ending, Exit, Frame, Gap, GraphSettings, Header, Imported, Sample, Site, Sites, SitesSoFar,
};
pub use last_frees::LastFrees;
pub use memory::{MEMORY_LIMIT, Memory};
pub use output::{Output, Stream, TraceFile};
pub use sniff::seems;
pub use tables::{Tables, tables};
pub use writer::Allocation;

/// Events in order.
pub type Batch = event_reader::EventBatch<Event>;
/// Reads one trace.
pub type Reader<R> = event_reader::EventReader<R, decoder::Decoder>;
/// Writes one trace.
pub type Writer<W> = event_writer::EventWriter<W, encoder::Encoder>;
