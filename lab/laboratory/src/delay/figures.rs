//! The figures of `heaptoll lab delay`: ratios over the size of a quarantine.

use heaptoll_experiment::comparison::Ratios;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Medians of one stack.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Medians {
    /// CPU, s, less start-up.
    pub cpu_s: f64,
    /// Elapsed, s, less start-up.
    pub wall_s: f64,
    /// Peak resident memory, KiB.
    pub peak_rss_kib: f64,
    /// The most that the quarantine held, bytes, in blocks' usable sizes; `None` without one.
    pub held_high_bytes: Option<f64>,
}

/// One size of the quarantine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// Bytes that the quarantine may hold.
    pub size_bytes: u64,
    /// Good runs.
    pub good: u32,
    /// Medians; `None` without a good run.
    pub medians: Option<Medians>,
    /// Over the quarantine of one byte; all `None` for that one itself.
    pub over_no_delay: Ratios,
}

/// One program under one manager.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Curve {
    /// Program.
    pub program: String,
    /// Manager that the quarantine forwards to.
    pub manager: String,
    /// The manager without a quarantine, where it was run.
    pub plain: Option<Medians>,
    /// The quarantine of one byte over the manager without one: what the layer itself costs.
    pub layer: Ratios,
    /// By size.
    pub points: Vec<Point>,
}

/// Geometric means over programs of one manager at one size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Mean {
    /// Manager.
    pub manager: String,
    /// Bytes that the quarantine may hold; `None` for the layer itself over no layer.
    pub size_bytes: Option<u64>,
    /// Programs in it: those with enough good pairs for each metric.
    pub programs: u32,
    /// Over the quarantine of one byte (for the layer itself: over no layer). Intervals are over repetitions: of these
    /// programs only.
    pub ratios: Ratios,
    /// The same with intervals over programs (Student's t on their logarithms, each by itself): what other programs of
    /// this kind would show. `pairs` is the number of programs; null below three.
    #[serde(default)]
    pub between_programs: Ratios,
}

/// The study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Delay {
    /// Bytes, ascending.
    pub sizes_bytes: Vec<u64>,
    /// Managers in the order requested.
    pub managers: Vec<String>,
    /// By program, then manager. The intervals of one program hold together.
    pub curves: Vec<Curve>,
    /// By manager, then size, where there are at least two programs. All hold together.
    pub means: Vec<Mean>,
}
