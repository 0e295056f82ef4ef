//! Costs over heap sizes; [`crate::heap_curves`] computes them.

use heaptoll_statistics::Interval;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What one stack costs on one program, or on all.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Costs {
    /// Stack name.
    pub stack: String,
    /// Median of its CPU time, s; `None` over programs and where no run ended well.
    pub cpu_s: Option<f64>,
    /// CPU time over the baseline's.
    pub cpu: Option<Interval>,
    /// Median of its peak resident memory, KiB; `None` over programs and where no run ended well.
    pub peak_rss_kib: Option<f64>,
    /// Peak resident memory over the baseline's.
    pub peak_rss: Option<Interval>,
    /// The lower bound of its overhead in CPU time: its cost over the least distilled cost of any stack.
    pub overhead: Option<Interval>,
    /// Whether the least distilled cost is its whole cost, so that its bound is 1.
    pub is_least: bool,
}

/// A collector in a heap of one size.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HeapPoint {
    /// The heap over the smallest one.
    pub factor: f64,
    /// The heap, bytes; `None` over programs, each of which has its own.
    pub heap_bytes: Option<u64>,
    /// Whether every run completed in it, on every program.
    pub fits: bool,
    /// Programs with a ratio.
    pub programs: u32,
    /// What it costs there.
    pub costs: Costs,
}

/// A collector over heap sizes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HeapCurve {
    /// The stack without a limit.
    pub collector: String,
    /// The smallest heap in which the program completes, bytes; `None` over programs.
    pub smallest_bytes: Option<u64>,
    /// By factor, the smallest first.
    pub heaps: Vec<HeapPoint>,
    /// The least factor from which on it is in no heap seen to use more CPU than the baseline.
    pub no_more_cpu_from: Option<f64>,
    /// The least factor from which on it uses less CPU than the baseline in every heap.
    pub less_cpu_from: Option<f64>,
}

/// The collectors and the other stacks of one program.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramHeaps {
    /// Program name.
    pub program: String,
    /// Collectors whose heap was fixed.
    pub curves: Vec<HeapCurve>,
    /// Stacks without a fixed heap, each at its own peak memory.
    pub points: Vec<Costs>,
}

/// Costs over heap sizes; empty where no heap was fixed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HeapCurves {
    /// One a program with a collector whose heap was fixed.
    pub programs: Vec<ProgramHeaps>,
    /// Geometric means over programs, when there are at least two.
    pub overall: Vec<HeapCurve>,
}
