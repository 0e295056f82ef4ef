//! `heaptoll trace bound`: the smallest heap that a trace could have been served from.

use std::path::Path;

use heaptoll_trace::{Memory, Reader};
pub use heaptoll_trace_analysis::bound::BoundFigures as Figures;
use heaptoll_trace_analysis::bound::{self, BoundError, EACH_OBJECT, Options};

pub use document::document;
use heaptoll_command::failure::Failure;
use heaptoll_command::trace_source;

mod document;

/// What is requested of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BoundRequest {
    /// Blocks of at most 8 bytes take 8, instead of 16.
    pub small_blocks_of_8: bool,
    /// Memory that the objects of the trace may take, bytes.
    pub memory_limit_bytes: u64,
}

/// Computes the bounds of a trace, which is read several times. Damage is a warning among the figures.
///
/// # Errors
/// It is no file, no trace, or cannot be read; it changes meanwhile, or needs more memory; there is no space for
/// temporary files.
pub fn measure(trace: &Path, request: BoundRequest) -> Result<Figures, Failure> {
    if trace_source::is_stream(trace) {
        return Err(Failure::Usage(format!(
            "{} cannot be read twice: give a file, because bound reads the trace several times",
            trace.display()
        )));
    }
    let memory = Memory { limit_bytes: request.memory_limit_bytes, each_object_bytes: EACH_OBJECT as u64 };
    let open = || {
        let mut reader = Reader::open(trace)?;
        reader.limit(memory);
        Ok(reader)
    };
    let options = Options { small_blocks_of_8: request.small_blocks_of_8 };
    bound::bound(&open, options).map_err(|error| match error {
        error @ BoundError::Scratch { .. } => Failure::Trouble(Box::new(error)),
        BoundError::Trace(error) => trace_source::refused(error),
        error => Failure::Refused(Box::new(error)),
    })
}
