//! Every table of an experiment, and means over its programs.

use heaptoll_statistics::Interval;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::heaps::HeapCurves;
use super::lower_bound::LowerBounds;
use super::table::ProgramTable;
use super::varied::VariedCurve;

/// Every table of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// Baseline stack.
    pub baseline: String,
    /// Family-wise level, 0.05.
    pub alpha: f64,
    /// One a program.
    pub tables: Vec<ProgramTable>,
    /// Over all programs, when there are at least two; sorted by CPU.
    pub overall: Vec<OverallRow>,
    /// What memory management costs at least, under each stack.
    #[serde(default)]
    pub lower_bounds: LowerBounds,
    /// Collectors over the size of their heap (`heaptoll run --heaps`).
    #[serde(default)]
    pub heaps: HeapCurves,
    /// Managers over the values of a setting, the means over programs last; left out without `heaptoll run --vary`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub varied: Vec<VariedCurve>,
}

/// One stack over all programs: the geometric mean of its ratios, interval over repetitions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OverallRow {
    /// Stack name.
    pub stack: String,
    /// Programs it has ratios on.
    pub programs: u32,
    /// Geometric mean of CPU ratios over programs.
    pub cpu: Option<Interval>,
    /// Geometric mean of peak-RSS ratios over programs.
    pub peak_rss: Option<Interval>,
}
