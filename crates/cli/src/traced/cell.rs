//! One run of a plan, and what came of it.

use heaptoll_lab::experiment::{ProgramInfo, StackInfo};
use heaptoll_lab::observation::{LocalityFigures, Outcome};
use heaptoll_tracer::Traced;
use serde::Serialize;

/// A program under a manager.
#[derive(Debug, Clone)]
pub struct Cell {
    /// The program.
    pub program: ProgramInfo,
    /// The manager, with what preflight proved of it.
    pub stack: StackInfo,
    /// Whether it is the baseline, which comes first of its program.
    pub is_baseline: bool,
    /// What the reader must know of this manager under the tracer, found out before it ran.
    pub cautions: Vec<String>,
}

/// Which process image figures are of, as JSON has it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ImageWords {
    /// Executable, then arguments.
    pub command: Vec<String>,
    /// How it ended.
    pub ended: String,
}

/// A run that was heard.
#[derive(Debug)]
pub struct Heard<S> {
    /// What was heard. Never without an image.
    pub traced: Traced<S>,
    /// How it ended, its output compared with the baseline's.
    pub outcome: Outcome,
    /// What the reader of its figures must know, most important first: that they are not whole, that the output
    /// differs, what Valgrind or the tracer said, what preflight warned of.
    pub remarks: Vec<String>,
}

impl<S> Heard<S> {
    /// Whether the figures are of a whole, good run.
    pub fn is_good(&self) -> bool {
        self.outcome.is_ok() && self.traced.is_whole()
    }
}

/// What a command adds to the stored observation; the rest is the same for all.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Figures {
    /// The most memory the heap had mapped at once, bytes, in the main image.
    pub heap_high_water_bytes: Option<u64>,
    /// What caches and memories would have made of the references.
    pub locality: Option<LocalityFigures>,
}
