//! The figures of `heaptoll lab tailor`: what was learned and what is made of it.

use heaptoll_tailor::plan::{Class, Plan};
use heaptoll_tailor::profile::Profile;
use heaptoll_trace_analysis::subject::Subject;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An allocator and what it was made from.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TailorFigures {
    /// The recorded process.
    pub subject: Subject,
    /// Events of the trace.
    pub events: u64,
    /// Allocations.
    pub allocations: u64,
    /// Requests: allocations and reallocs.
    pub requests: u64,
    /// Requests for more than 16 bytes of alignment.
    pub aligned: u64,
    /// Threads that allocated.
    pub threads: u32,
    /// Most live bytes, each block rounded up to 16 bytes.
    pub peak_bytes: u64,
    /// Most live bytes, as requested.
    pub peak_requested_bytes: u64,
    /// Largest request, bytes.
    pub largest_bytes: u64,
    /// Requests for sizes that have a class of their own.
    pub exact_requests: u64,
    /// Requests that a class serves.
    pub class_requests: u64,
    /// Requests that the general heap serves.
    pub general_requests: u64,
    /// Requests that get a mapping of their own.
    pub mapped_requests: u64,
    /// Blocks of class sizes that were freed, or resized, before 32 KiB were allocated after them.
    pub short_lives: u64,
    /// The classes, by rising size.
    pub classes: Vec<ClassFigures>,
    /// Units of which chunks are made, bytes.
    pub unit_bytes: u64,
    /// Requests of so many bytes have mappings of their own.
    pub map_from_bytes: u64,
    /// So many free bytes in one piece go back to the system.
    pub give_back_bytes: u64,
    /// The source that was written.
    pub source: String,
    /// Its lines.
    pub source_lines: u64,
    /// The shared object; none where only the source was requested.
    pub object: Option<String>,
    /// The C compiler that made it.
    pub compiler: Option<String>,
}

/// A class: blocks of one size.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClassFigures {
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Requests of the trace that it serves.
    pub requests: u64,
    /// Of these, requests for its own size, rounded up to 16 bytes.
    pub exact_requests: u64,
    /// Of these, blocks that were freed, or resized, before 32 KiB were allocated after them.
    pub short_lives: u64,
    /// Most blocks of its own size that were live at once.
    pub peak_blocks: u64,
    /// Bytes of a chunk, from which blocks are cut.
    pub chunk_bytes: u64,
    /// Bytes whose pages are requested from the system together; 0 where each is when it is touched.
    pub populate_bytes: u64,
}

impl ClassFigures {
    fn new(class: &Class, unit_bytes: u64) -> ClassFigures {
        ClassFigures {
            block_bytes: class.block_bytes,
            requests: class.requests,
            exact_requests: class.exact_requests,
            short_lives: class.short_lives,
            peak_blocks: class.peak_blocks,
            chunk_bytes: class.chunk_units * unit_bytes,
            populate_bytes: class.populate_bytes,
        }
    }
}

impl TailorFigures {
    /// Figures of a plan, before files are written.
    pub fn new(subject: Subject, profile: &Profile, plan: &Plan) -> TailorFigures {
        let sum = |column: fn(&Class) -> u64| plan.classes.iter().map(column).sum();
        TailorFigures {
            subject,
            events: profile.events,
            allocations: profile.allocations,
            requests: profile.requests,
            aligned: profile.aligned,
            threads: profile.threads,
            peak_bytes: profile.peak_bytes,
            peak_requested_bytes: profile.peak_requested_bytes,
            largest_bytes: profile.largest_bytes,
            exact_requests: sum(|class| class.exact_requests),
            class_requests: sum(|class| class.requests),
            general_requests: plan.general_requests,
            mapped_requests: plan.mapped_requests,
            short_lives: sum(|class| class.short_lives),
            classes: plan.classes.iter().map(|class| ClassFigures::new(class, plan.unit_bytes)).collect(),
            unit_bytes: plan.unit_bytes,
            map_from_bytes: plan.map_from_bytes,
            give_back_bytes: plan.give_back_bytes,
            ..TailorFigures::default()
        }
    }
}
