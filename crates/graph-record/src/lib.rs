//! Makes a trace with pointers of what the tracer records: [`Recorder`] is the sink of one process image.

mod block;
mod calls;
mod copying;
mod keeping;
mod kept;
mod recorder;
mod sites;
mod words;

pub use recorder::{Counts, Recorder};
