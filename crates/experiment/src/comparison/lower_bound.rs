//! Lower bounds of what memory management costs; [`crate::lower_bound`] computes them.

use heaptoll_statistics::Interval;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What was attributed of a manager's cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Attributed {
    /// Collections: the time for which the program was stopped, or their processor time.
    pub collections: bool,
    /// Malloc and free, by their share of the instructions of a traced run.
    pub malloc_and_free: bool,
}

/// One manager's bound.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BoundRow {
    /// Stack name.
    pub stack: String,
    /// Median of the good timed rows, s.
    pub total_s: f64,
    /// Median of what was attributed of it, s.
    pub attributed_s: f64,
    /// What that is.
    pub attributed: Attributed,
    /// Total over the baseline's distilled cost: the lower bound of the overhead, as a ratio; `None` with too few pairs,
    /// and for a baseline of which nothing was attributed, whose bound is 1 by definition.
    pub bound: Option<Interval>,
}

/// The bounds of one cost of one program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bounds {
    /// The stack with the smallest distilled cost.
    pub baseline: String,
    /// Median of that cost, s.
    pub baseline_s: f64,
    /// One a stack with good rows, the smallest bound first.
    pub rows: Vec<BoundRow>,
}

/// The bounds of one program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramBounds {
    /// Program name.
    pub program: String,
    /// Elapsed time.
    pub wall: Option<Bounds>,
    /// CPU time.
    pub cpu: Option<Bounds>,
    /// What the reader must know.
    pub notes: Vec<String>,
}

/// One stack over all programs: geometric means of its bounds, intervals over repetitions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OverallBound {
    /// Stack name.
    pub stack: String,
    /// Programs on which it has bounds.
    pub programs: u32,
    /// Elapsed time.
    pub wall: Option<Interval>,
    /// CPU time.
    pub cpu: Option<Interval>,
}

/// The bounds of an experiment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LowerBounds {
    /// One a program with good rows.
    pub programs: Vec<ProgramBounds>,
    /// Over all programs, when there are at least two; the smallest in time first.
    pub overall: Vec<OverallBound>,
}
