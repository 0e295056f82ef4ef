//! What becomes of an event's line: a call in the trace, one that does not fit, or a defect of the line.

use heaptoll_trace::{Allocation, EventKind, TraceError};

use crate::heaptrack::budget::Exceeded;

/// Events that did not fit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Frees of objects that the recording does not know.
    pub unknown_frees: u64,
    /// Objects whose address was allocated again, so they had been freed unseen.
    pub unseen_frees: u64,
}

/// What is wrong with a line.
#[derive(Debug)]
pub enum Defect {
    /// It is not as heaptrack writes it.
    Line(&'static str),
    Memory(Exceeded),
    Trace(TraceError),
}

impl From<Exceeded> for Defect {
    fn from(exceeded: Exceeded) -> Defect {
        Defect::Memory(exceeded)
    }
}

impl From<TraceError> for Defect {
    fn from(error: TraceError) -> Defect {
        Defect::Trace(error)
    }
}

/// A call of the only kind that there is.
pub fn call(size: u64, site: u32) -> Allocation {
    Allocation { kind: EventKind::Malloc, thread: 0, size, usable: 0, align_log2: 0, site, latency_ns: 0 }
}
