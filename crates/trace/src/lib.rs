//! The trace: every allocation of one process, in order, in a compact file that may be cut anywhere.

mod event;
mod header;

pub use event::{Event, Kind};
pub use header::{Ending, Frame, Gap, Header, Sample, Site, Sites};
