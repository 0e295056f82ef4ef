//! What `compare` finds: ratios to the baseline with simultaneous intervals, and a verdict in words. Values only;
//! the report crate formats them.

use heaptoll_statistics::Interval;
use serde::{Deserialize, Serialize};

use crate::disturbance::Disturbed;
use crate::lower_bound::LowerBounds;

/// One metric of one stack on one program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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

/// What a manager's collector did on a program; medians.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
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

/// One stack on one program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Stack name.
    pub stack: String,
    /// Good timed rows.
    pub good: u32,
    /// What went wrong in the others, e.g. `3x killed by signal 11`; empty when nothing did.
    pub marks: Vec<String>,
    /// The metrics, by kind; missing where there is no good row.
    pub figures: std::collections::BTreeMap<Metric, Figure>,
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
    pub load_figures: std::collections::BTreeMap<String, f64>,
    /// The verdict in words, e.g. `14 % less CPU, 1.5x the memory` or `no difference seen`.
    pub verdict: String,
    /// Whether no other stack is both cheaper in CPU and in memory (by median).
    pub on_frontier: bool,
}

/// One program's table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProgramTable {
    /// Program name.
    pub program: String,
    /// Rows sorted by CPU ratio, the cheapest first; stacks without a good row last.
    pub rows: Vec<Row>,
    /// Sentences the reader must see (too short a run, few pairs, orphaned processes, ...).
    pub notes: Vec<String>,
    /// The smallest CPU difference, as a ratio above 1, that this data would have shown (median half width).
    pub detectable_cpu_ratio: Option<f64>,
    /// The company effect on the CPU ratios of runs in lockstep. `None` where there is no lockstep, or too few pairs.
    #[serde(default)]
    pub company: Option<CompanyEffect>,
    /// What else the machine did during the timed runs: the blocks, where those ran in lockstep.
    #[serde(default)]
    pub disturbance: Option<Disturbed>,
    /// Exact counts next to the measured ratio, where a traced run counted.
    #[serde(default)]
    pub exact: Option<ExactTable>,
}

/// The company effect on the CPU ratio of the stack that it moves most.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CompanyEffect {
    /// The stack.
    pub stack: String,
    /// Its ratio at once over its ratio alone.
    pub ratio: Interval,
    /// How far from those alone the ratios of all stacks may lie, as a share: the widest side of their intervals.
    pub within: f64,
}

/// A figure that was counted once.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Counted {
    /// How many.
    pub count: u64,
    /// Over the baseline's; `None` for the baseline itself, and where that has none.
    pub ratio: Option<f64>,
}

/// Misses of one cache of a simulated machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CacheCounted {
    /// The cache, its bytes and ways: `32K/8`.
    pub cache: String,
    /// Its misses.
    pub misses: Counted,
}

/// One stack on one program, as one traced run counted it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExactRow {
    /// Stack name.
    pub stack: String,
    /// Instructions in user mode, of all processes, without start-up where the CPU ratio is without.
    pub instructions: Counted,
    /// Misses of each data cache of the machine, nearest first; empty where none was simulated.
    pub misses: Vec<CacheCounted>,
    /// Different pages referred to: page faults if nothing were given back. `None` where that was not simulated.
    pub pages: Option<Counted>,
    /// Page faults of the measured runs, median; `None` where there is no good one.
    pub faults: Option<Counted>,
    /// The measured CPU ratio.
    pub cpu: Option<Interval>,
    /// Where exact counts and the measured ratio disagree: what that means. Empty where they do not.
    pub words: String,
}

/// One program's exact counts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ExactTable {
    /// Whether start-up is taken off instructions.
    pub less_startup: bool,
    /// The baseline, then the others by CPU ratio; empty where the baseline was not counted.
    pub rows: Vec<ExactRow>,
    /// Sentences the reader must see: what was left out and why, other work of the program.
    pub notes: Vec<String>,
}

/// One stack over all programs: the geometric mean of its ratios, interval over repetitions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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

/// Every table of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
}
