//! One run of a plan, and its result.

use heaptoll_experiment::experiment::{ProgramInfo, StackInfo};
use heaptoll_experiment::observation::{LocalityFigures, Outcome};
use heaptoll_reftrace_host::{Traced, TracedImage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::own::Follow;

/// A program under a manager.
#[derive(Debug, Clone)]
pub struct Cell {
    /// The program.
    pub program: ProgramInfo,
    /// The manager, with what preflight proved of it.
    pub stack: StackInfo,
    /// Whether it is the baseline, which comes first of its program.
    pub is_baseline: bool,
    /// Warnings about this manager under the tracer, found before it ran.
    pub cautions: Vec<String>,
    /// Routines that are followed besides those of C.
    pub follow: Follow,
}

impl Cell {
    /// Of a run that is not compared: nothing is known of its manager, and only routines of C are followed.
    pub fn alone(program: &ProgramInfo, stack: StackInfo) -> Cell {
        let (program, follow) = (program.clone(), Follow::default());
        Cell { program, stack, is_baseline: true, cautions: vec![], follow }
    }
}

/// The process image that figures are of, as in the JSON.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImageSummary {
    /// Executable, then arguments.
    pub command: Vec<String>,
    /// How it ended.
    pub ended: String,
}

/// A traced run with its outcome.
#[derive(Debug)]
pub struct JudgedRun<S> {
    /// The trace. Never without an image.
    pub traced: Traced<S>,
    /// Index of the process image that figures are of: the one with the most instructions.
    pub main: usize,
    /// How it ended, its output compared with the baseline's.
    pub outcome: Outcome,
    /// Warnings about its figures, most important first: that they are not whole, that the output differs, messages of
    /// Valgrind or the tracer, warnings of preflight.
    pub remarks: Vec<String>,
}

impl<S> JudgedRun<S> {
    /// The process image that figures are of.
    pub fn main_image(&self) -> &TracedImage<S> {
        &self.traced.images[self.main]
    }

    /// It, as in the JSON.
    pub fn image(&self) -> ImageSummary {
        let image = self.main_image();
        ImageSummary { command: image.image.command.clone(), ended: image.ending.to_string() }
    }

    /// Whether the figures are of a whole, good run.
    pub fn is_good(&self) -> bool {
        self.outcome.is_ok() && self.traced.is_whole()
    }

    /// Why they are not.
    pub fn problem(&self) -> Option<String> {
        let first = || self.remarks.first().cloned().unwrap_or_else(|| "its trace is incomplete".into());
        (!self.is_good()).then(first)
    }
}

/// What a command adds to the stored observation; the rest is the same for all.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Figures {
    /// The most memory the heap had mapped at once, bytes, in the main image.
    pub heap_high_water_bytes: Option<u64>,
    /// Misses of simulated caches and memories.
    pub locality: Option<LocalityFigures>,
}
