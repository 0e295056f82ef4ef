//! A row of a table: the figures of one stack on one program, and a verdict.

use std::collections::BTreeMap;

use heaptoll_statistics::Interval;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::figure::{Figure, Metric};

/// One stack on one program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Row {
    /// Stack name.
    pub stack: String,
    /// Good timed rows.
    pub good: u32,
    /// What went wrong in the others, e.g. `3x killed by signal 11`; empty when nothing did.
    pub marks: Vec<String>,
    /// The metrics, by kind; missing where there is no good row.
    pub figures: BTreeMap<Metric, Figure>,
    /// Median start-up CPU seconds of this program under this stack (loader, relocations, constructors).
    pub startup_cpu_s: Option<f64>,
    /// Median minor faults.
    pub minor_faults: f64,
    /// Median of involuntary context switches a second of the run's CPU time: how often a time slice was cut off or ended.
    #[serde(default)]
    pub involuntary_switches_per_cpu_s: Option<f64>,
    /// Median heap high-water, bytes, from managers that report it.
    pub heap_high_water_bytes: Option<f64>,
    /// Garbage collections: medians over the good timed rows, from managers that report them.
    #[serde(default)]
    pub collections: Option<CollectionFigures>,
    /// Figures of a server's load, or the program's own, by name: median.
    pub load_figures: BTreeMap<String, f64>,
    /// Ratios of these figures to the baseline's, by name, paired within a repetition. The intervals of one name hold together.
    #[serde(default)]
    pub load_ratios: BTreeMap<String, Interval>,
    /// The verdict in words, e.g. `14 % less CPU, 1.5x the memory` or `no difference seen`.
    pub verdict: String,
    /// Whether no other stack is both cheaper in CPU and in memory (by median).
    pub on_frontier: bool,
}

/// What a manager's collector did on a program; medians.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CollectionFigures {
    /// Collections of a run.
    pub count: f64,
    /// Seconds for which a run was stopped.
    pub pause_total_s: f64,
    /// Longest pause of a run, seconds.
    pub pause_max_s: f64,
    /// Bytes that they reclaimed in a run.
    pub reclaimed_bytes: f64,
}
