//! What steps measured, whatever command measured it: cells by program, manager, metric and place.
//!
//! Metrics by kind of step (units are part of the name; `at` where stated):
//! - `run`: `cpu_s` and `wall_s` (start-up taken off, as `heaptoll run` compares them), `cpu_alone_s` (of runs alone,
//!   where `cpu_s` is of runs in lockstep), `user_s`, `system_s`,
//!   `peak_rss_kib`, `heap_high_kib`, `used_high_kib`, `minor_faults`, `major_faults`, `collections`, `pause_total_s`,
//!   `pause_max_s`, `reclaimed_kib`, `collector_cpu_s`, and `figure_NAME` of a load's or program's own figures; with
//!   `--heaps` among the step's options `heap_cpu_ratio`, of a collector over the step's first manager, `at` so many times
//!   its smallest heap. Samples by repetition.
//! - `instructions`: `per_malloc`, `per_free`, `per_block_free` (of blocks only, not of null), `per_realloc`,
//!   `per_object`, `per_plain_object` (a block that is neither cleared nor resized), `percent_of_program` (allocator and collector over the program's), `percent_malloc`, `percent_free`,
//!   `percent_collector` (of all), `instructions`, `program_instructions`, `objects`, `objects_and_resizes` (with calls that resize a
//!   block, as Detlefs, Dosser and Zorn count them), `bytes`, `average_bytes`,
//!   `live_high_objects`, `live_high_bytes`, `heap_high_kib` (mapped), `heap_pages_kib` (pages with blocks),
//!   `expansion`, `collections`; of collectors that announce phases `percent_roots`, `percent_marking` and
//!   `percent_sweeping` of the program's instructions, and `roots_per_collection`, `marking_per_collection`,
//!   `sweeping_per_collection`. Exact.
//! - `locality`: `page_faults` and `fault_rate` (of a million references) at KiB of memory, `tight_faults` at a share of the pages that the program touches under
//!   the step's first manager; `capacity_faults` and `tight_capacity_faults`, the same without first touches;
//!   `miss_percent` at KiB of a direct-mapped cache, `conflict_ratio` of its misses to a fully associative one's, `references`, `lines_touched`,
//!   `pages_touched`, `touched_kib`; at KiB of a direct-mapped cache, misses per 1000 references of the program by their
//!   cause, `placement_misses`, `pollution_misses`, `allocator_misses`, `marking_misses`, `sweeping_misses` and
//!   `collecting_misses` (the last two together), and with `_more_percent` in place of `_misses` the part that each is of
//!   what the manager misses more than the step's first. Exact.
//! - `lifetimes`: `surviving` and `surviving_bytes` (shares) at bytes of age, `surviving_instructions` at instructions of
//!   age, by the rate of the study's `instructions` step; `objects`, `bytes`, `never_freed`,
//!   `never_freed_bytes` (shares). Exact.
//! - `ledger`: of the snapshot at the peak, resident KiB: `rss_kib`, and the parts of its sum: `live_kib`
//!   (as requested), `structures_kib`, `internal_kib`, `external_kib` (free bytes on live pages, and free pages),
//!   `headroom_kib`, `held_kib`, `granularity_kib`, `blacklisted_kib`, `not_heap_kib`; `rest_kib` is what they leave. Single.
//! - `delay`: `time_ratio` and `space_ratio` at bytes of quarantine, over that of one byte; `layer_time_ratio`.
//!   Estimates.
//! - `frequency`: `mutator_wall_ratio`, `mutator_cpu_ratio` at bytes of period, over the shortest; with
//!   `identifying_` and `reclaiming_` before it, of the paper's two other experiments. Estimates.
//! - `proximity`: at collections a run, of means, and with `_median_ratio` of medians: `first_ratio`, `near_ratio`,
//!   `second_ratio`, `last_ratio`, the first hundredth, first tenth, second tenth and last fifth after a collection over
//!   the middle; `near_us`, the first tenth's median distance; `spread_ratio`, the factor by which the stretch that is
//!   farthest from the middle differs from it, whichever way. Estimates.
//! - `minheap`: `heap_ratio_over_MANAGER`: the smallest heap over the footprint of mark-sweep over that allocator; `at`
//!   its period in bytes. `heap_ratio_over_frees_MANAGER`: over the same with the program's frees carried out.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::definition::StepKind;

/// One thing that was measured.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Cell {
    /// Step's id.
    pub step: String,
    /// Program, with its variant: `cfrac:gc`.
    pub program: String,
    /// Manager, as the step names it.
    pub manager: String,
    /// Metric.
    pub metric: String,
    /// Place of a metric that has many.
    pub at: Option<f64>,
    /// Value.
    pub value: Value,
}

/// A value as far as it is known.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Value {
    /// By repetition; none where a run failed. Two cells of a step are paired within a repetition.
    Samples(Vec<Option<f64>>),
    /// Counted, and the same on each run.
    Exact(f64),
    /// With an interval that the command made (95 %, family-wise in its table).
    Estimate {
        /// Value.
        value: f64,
        /// Lower end.
        low: f64,
        /// Upper end.
        high: f64,
    },
    /// One figure without an interval; nothing can be claimed from it.
    Single(f64),
    /// More than this: each run was killed at the time limit.
    AtLeast(f64),
}

/// CPU seconds; those of runs at once where the step ran in lockstep.
pub const AT_ONCE: &str = "cpu_s";
/// CPU seconds of runs alone, there only where there are runs at once.
pub const ALONE: &str = "cpu_alone_s";
/// CPU seconds of a collector in a fixed heap over those of the step's first manager.
pub const HEAP_CPU_RATIO: &str = "heap_cpu_ratio";

/// How many collections were made.
pub const COLLECTIONS: &str = "collections";

/// Metrics of `heaptoll run`, but for those of the program, `figure_NAME`.
const OF_RUNS: [&str; 16] = [
    AT_ONCE,
    ALONE,
    "wall_s",
    "user_s",
    "system_s",
    "peak_rss_kib",
    "heap_high_kib",
    "used_high_kib",
    "minor_faults",
    "major_faults",
    COLLECTIONS,
    "pause_total_s",
    "pause_max_s",
    "reclaimed_kib",
    "collector_cpu_s",
    HEAP_CPU_RATIO,
];

/// Metrics of `heaptoll exact instructions`.
const OF_INSTRUCTIONS: [&str; 28] = [
    "per_malloc",
    "per_free",
    "per_block_free",
    "per_realloc",
    "per_object",
    "per_plain_object",
    "percent_of_program",
    "percent_malloc",
    "percent_free",
    "percent_collector",
    "instructions",
    "program_instructions",
    "objects",
    "objects_and_resizes",
    "bytes",
    "average_bytes",
    "live_high_objects",
    "live_high_bytes",
    "heap_high_kib",
    "heap_pages_kib",
    "expansion",
    COLLECTIONS,
    "percent_roots",
    "percent_marking",
    "percent_sweeping",
    "roots_per_collection",
    "marking_per_collection",
    "sweeping_per_collection",
];

/// Metrics of `heaptoll exact locality`.
const OF_LOCALITY: [&str; 23] = [
    "page_faults",
    "fault_rate",
    "capacity_faults",
    "tight_faults",
    "tight_capacity_faults",
    "miss_percent",
    "conflict_ratio",
    "references",
    "lines_touched",
    "pages_touched",
    "touched_kib",
    "placement_misses",
    "pollution_misses",
    "allocator_misses",
    "marking_misses",
    "sweeping_misses",
    "collecting_misses",
    "placement_more_percent",
    "pollution_more_percent",
    "allocator_more_percent",
    "marking_more_percent",
    "sweeping_more_percent",
    "collecting_more_percent",
];

/// Metrics of `heaptoll trace lifetimes`.
const OF_LIFETIMES: [&str; 7] = [
    "surviving",
    "surviving_bytes",
    "surviving_instructions",
    "objects",
    "bytes",
    "never_freed",
    "never_freed_bytes",
];

/// Metrics of `heaptoll ledger`: the resident set, the causes in which it is, and what no cause has.
pub(super) const OF_LEDGERS: [&str; 11] = [
    "rss_kib",
    "live_kib",
    "structures_kib",
    "internal_kib",
    "external_kib",
    "headroom_kib",
    "held_kib",
    "granularity_kib",
    "blacklisted_kib",
    "not_heap_kib",
    "rest_kib",
];

/// Metrics of `heaptoll lab delay`.
const OF_DELAYS: [&str; 3] = ["time_ratio", "space_ratio", "layer_time_ratio"];

/// Metrics of `heaptoll lab reclamation`, each over the program's own free: CPU, peak memory, page faults, requested bytes alive
/// at their peak and on average.
const OF_RECLAMATION: [&str; 26] = [
    "layer_time_ratio",
    "last_use_time_ratio",
    "last_use_space_ratio",
    "last_use_faults_ratio",
    "last_use_live_peak_ratio",
    "last_use_live_ratio",
    "unreachable_time_ratio",
    "unreachable_space_ratio",
    "unreachable_faults_ratio",
    "unreachable_live_peak_ratio",
    "unreachable_live_ratio",
    "delay_time_ratio",
    "delay_space_ratio",
    "delay_faults_ratio",
    "delay_live_peak_ratio",
    "delay_live_ratio",
    "collect_time_ratio",
    "collect_space_ratio",
    "collect_faults_ratio",
    "collect_live_peak_ratio",
    "collect_live_ratio",
    "never_time_ratio",
    "never_space_ratio",
    "never_faults_ratio",
    "never_live_peak_ratio",
    "never_live_ratio",
];

/// Metrics of `heaptoll lab replay-graph`.
const OF_GRAPHS: [&str; 19] = [
    "first_misses_per_thousand",
    "last_misses_per_thousand",
    "tlb_misses_per_thousand",
    "cycles_per_access",
    "first_cycles_ratio",
    "near_cycles_ratio",
    "second_cycles_ratio",
    "last_cycles_ratio",
    "near_emptied_ratio",
    "second_emptied_ratio",
    "last_emptied_ratio",
    "smallest_heap_kib",
    "smallest_heap_over_live",
    "smallest_heap_ratio",
    "cpu_ratio",
    "mutator_ratio",
    "collector_share",
    "copied_kib",
    "longest_pause_us",
];

/// Metrics of `heaptoll lab frequency`.
const OF_FREQUENCIES: [&str; 6] = [
    "mutator_wall_ratio",
    "mutator_cpu_ratio",
    "identifying_mutator_wall_ratio",
    "identifying_mutator_cpu_ratio",
    "reclaiming_mutator_wall_ratio",
    "reclaiming_mutator_cpu_ratio",
];

/// Metrics of `heaptoll lab proximity`.
const OF_PROXIMITY: [&str; 11] = [
    "first_ratio",
    "first_median_ratio",
    "near_ratio",
    "near_median_ratio",
    "near_us",
    "second_ratio",
    "second_median_ratio",
    "last_ratio",
    "last_median_ratio",
    "spread_ratio",
    "spread_median_ratio",
];

/// Whether steps of a kind give a metric.
pub fn is_metric(kind: StepKind, metric: &str) -> bool {
    let (names, beginning): (&[&str], Option<&str>) = match kind {
        StepKind::Run => (&OF_RUNS, Some("figure_")),
        StepKind::Instructions => (&OF_INSTRUCTIONS, None),
        StepKind::Locality => (&OF_LOCALITY, None),
        StepKind::Lifetimes => (&OF_LIFETIMES, None),
        StepKind::Ledger => (&OF_LEDGERS, None),
        StepKind::Delay => (&OF_DELAYS, None),
        StepKind::Frequency => (&OF_FREQUENCIES, None),
        StepKind::Proximity => (&OF_PROXIMITY, None),
        StepKind::Reclamation => (&OF_RECLAMATION, None),
        StepKind::Graph => (&OF_GRAPHS, None),
        StepKind::Minheap => (&["heap_ratio"], Some("heap_ratio_over_")),
    };
    names.contains(&metric)
        || beginning.is_some_and(|start| metric.strip_prefix(start).is_some_and(|rest| !rest.is_empty()))
}

/// Whether a metric counts pieces or memory, and measures no time.
pub(super) fn is_count(metric: &str) -> bool {
    const IN_NAMES: [&str; 6] = ["_kib", "faults", "space_", "live_", "heap_ratio", "heap_over"];
    let of_counts = [&OF_INSTRUCTIONS[..], &OF_LOCALITY, &OF_LIFETIMES];
    of_counts.iter().any(|names| names.contains(&metric)) || IN_NAMES.iter().any(|part| metric.contains(part))
}

/// All that was measured.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Figures {
    /// In the order of steps.
    pub cells: Vec<Cell>,
}

/// Why there is no figure where one is needed, and whose programs those are that there are. Only the reasons are stored.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Absent {
    /// Of the same figure, the last counts.
    gaps: Vec<Gap>,
    #[serde(skip)]
    thinned: BTreeSet<String>,
    #[serde(skip)]
    of_the_paper: BTreeSet<String>,
}

/// Figures that are missing.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
struct Gap {
    /// Of this step.
    step: String,
    /// Of this program; of all without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    program: Option<String>,
    /// Under this manager; under all without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    manager: Option<String>,
    /// Why.
    why: String,
}

impl Absent {
    /// A step was left out or failed; `why` is what follows a colon: `there was no time for it`.
    pub fn step(&mut self, step: &str, why: &str) {
        self.gaps.push(Gap { step: step.into(), program: None, manager: None, why: why.into() });
    }

    /// A plan chose which programs of a step ran.
    pub fn thin(&mut self, step: &str) {
        self.thinned.insert(step.into());
    }

    /// Whether a plan chose which programs of a step ran.
    pub fn is_thinned(&self, step: &str) -> bool {
        self.thinned.contains(step)
    }

    /// The paper's own programs could run in a step.
    pub fn name_programs(&mut self, step: &str) {
        self.of_the_paper.insert(step.into());
    }

    /// Whether a step names the paper's own programs, so that others are kin.
    pub fn names_programs(&self, step: &str) -> bool {
        self.of_the_paper.contains(step)
    }

    /// A program of a step was left out or refused, under one manager or, with `None`, under all.
    pub fn cell(&mut self, step: &str, program: &str, manager: Option<&str>, why: &str) {
        let (program, manager) = (Some(program.into()), manager.map(str::to_owned));
        self.gaps.push(Gap { step: step.into(), program, manager, why: why.into() });
    }

    /// Why a step has no figures.
    pub fn of_step(&self, step: &str) -> Option<&str> {
        self.of(step, None, None)
    }

    fn of(&self, step: &str, program: Option<&str>, manager: Option<&str>) -> Option<&str> {
        let is = |gap: &&Gap| {
            gap.step == step && gap.program.as_deref() == program && gap.manager.as_deref() == manager
        };
        self.gaps.iter().rev().find(is).map(|gap| gap.why.as_str())
    }

    /// Why a program under a manager has none.
    pub fn of_cell(&self, step: &str, program: &str, manager: &str) -> Option<&str> {
        let of = |manager: Option<&str>| self.of(step, Some(program), manager);
        of(Some(manager)).or_else(|| of(None)).or_else(|| self.of_step(step))
    }

    /// Whether no reason is known.
    pub fn is_empty(&self) -> bool {
        self.gaps.is_empty()
    }

    /// The steps of which something is missing.
    pub fn steps(&self) -> BTreeSet<String> {
        self.gaps.iter().map(|gap| gap.step.clone()).collect()
    }

    /// Leaves out the reasons of other steps.
    pub fn retain_steps(&mut self, stays: impl Fn(&str) -> bool) {
        self.gaps.retain(|gap| stays(&gap.step));
    }

    /// With another's reasons of these steps.
    pub fn extend(&mut self, mut other: Absent, of: impl Fn(&str) -> bool) {
        other.retain_steps(of);
        self.gaps.extend(other.gaps);
    }
}
