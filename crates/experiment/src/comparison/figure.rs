//! A metric with its ratio: what every table consists of.

use heaptoll_statistics::Interval;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One metric of one stack on one program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figure {
    /// Median over good timed rows, in the metric's unit.
    pub median: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
    /// Ratio to the baseline; `None` for the baseline itself or when there are too few pairs.
    pub ratio: Option<Interval>,
}

/// The metrics that are compared, in the order of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// User + system seconds less the stack's own start-up (servers: CPU from ready to the end of the load).
    Cpu,
    /// Elapsed seconds less start-up (servers: the load's elapsed seconds).
    Wall,
    /// Peak resident memory, KiB.
    PeakRss,
    /// Instructions retired; only where the machine counts them.
    Instructions,
}

impl Metric {
    /// Short label for a column.
    pub fn label(self) -> &'static str {
        match self {
            Metric::Cpu => "CPU",
            Metric::Wall => "wall",
            Metric::PeakRss => "peak RSS",
            Metric::Instructions => "instructions",
        }
    }
}
