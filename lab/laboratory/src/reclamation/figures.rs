//! The figures of `heaptoll lab reclamation`: ratios by point of reclamation.

use heaptoll_experiment::comparison::Ratios;
use heaptoll_oracle::{FreePoint, Live};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Medians of one stack.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Medians {
    /// CPU, s, less start-up.
    pub cpu_s: f64,
    /// Peak resident memory, KiB.
    pub peak_rss_kib: f64,
    /// Page faults that needed no disk.
    pub minor_faults: f64,
}

/// Objects freed at one point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Row {
    /// When.
    pub point: FreePoint,
    /// Good runs.
    pub good: u32,
    /// Medians; `None` without a good run.
    pub medians: Option<Medians>,
    /// Over the program's own free; all `None` for that one itself.
    pub over_free: Ratios,
}

/// One program over one manager.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Curve {
    /// Program.
    pub program: String,
    /// Manager that has the blocks.
    pub manager: String,
    /// The manager without the oracle.
    pub plain: Option<Medians>,
    /// The oracle that frees as the program does over the manager alone: what the layer itself costs.
    pub layer: Ratios,
    /// By point, from early to late.
    pub rows: Vec<Row>,
}

/// Geometric means over programs of one manager at one point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Mean {
    /// Manager.
    pub manager: String,
    /// When; `None` for the layer itself over no layer.
    pub point: Option<FreePoint>,
    /// Programs in it: those with enough good pairs for each metric.
    pub programs: u32,
    /// Over the program's own free (for the layer itself: over no layer).
    pub ratios: Ratios,
}

/// Requested bytes alive, of one program at one point: exact, the same over every manager.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Alive {
    /// Program.
    pub program: String,
    /// When objects are freed.
    pub point: FreePoint,
    /// Requested bytes.
    pub live: Live,
}

/// The study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reclamation {
    /// Points, from early to late.
    pub points: Vec<FreePoint>,
    /// Managers in the order requested.
    pub managers: Vec<String>,
    /// By program, then manager. The intervals of one program hold together.
    pub curves: Vec<Curve>,
    /// By manager, then point, where there are at least two programs. All hold together.
    pub means: Vec<Mean>,
    /// Requested bytes alive, by program and point, where the recording is still there.
    pub alive: Vec<Alive>,
}
