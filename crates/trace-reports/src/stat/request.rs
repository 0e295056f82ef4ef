//! What is requested of a trace that is summed up.

use heaptoll_trace::MEMORY_LIMIT;

/// What is requested of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatRequest {
    /// Frames of the program's own code that distinguish call stacks.
    pub frames: usize,
    /// Memory that the objects of the trace may take, bytes.
    pub memory_limit_bytes: u64,
    /// Whether the whole call stacks are summed up, where the trace has some.
    pub stacks: bool,
}

impl Default for StatRequest {
    fn default() -> StatRequest {
        StatRequest { frames: heaptoll_callsites::FRAMES, memory_limit_bytes: MEMORY_LIMIT, stacks: false }
    }
}
