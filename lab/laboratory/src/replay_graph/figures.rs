//! The figures of a replay of a trace with pointers.

use crate::replay_graph::mmtk::Prepared;
use heaptoll_statistics::Interval;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::misses::{Misses, SimulatedMachine};
use super::plans::{collects, row_name};
use super::request::{HeapBase, HeapSize};
use heaptoll_compare::smallest_heap::Answer;

/// Everything that was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GraphReplayFigures {
    /// The trace's file.
    pub trace: String,
    /// What it holds.
    pub prepared: Prepared,
    /// What heaps are multiples of.
    pub base: HeapBase,
    /// Threads of the collector.
    pub collector_threads: u32,
    /// Timed runs requested.
    pub runs: u32,
    /// Seed of their order.
    pub seed: u64,
    /// Whether a run of each plan in each heap was compared with the trace.
    pub checked: bool,
    /// The machine whose caches were simulated.
    #[serde(default)]
    pub simulated: Option<SimulatedMachine>,
    /// Whether all runs were made.
    pub complete: bool,
    /// The least of the plans' smallest heaps, bytes; none where no heap was requested as a multiple.
    pub least_heap_bytes: Option<u64>,
    /// By plan, as requested; ratios are to the first.
    pub plans: Vec<PlanRow>,
    /// By heap, as requested.
    pub heaps: Vec<Heap>,
    /// Doubts about the trace.
    pub warnings: Vec<String>,
}

/// One plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlanRow {
    /// As `-m` names it.
    pub plan: String,
    /// Whether it ever collects.
    pub collects: bool,
    /// Why it was not run.
    pub refused: Option<String>,
    /// Its smallest heap; none where it was not searched.
    pub smallest: Option<Smallest>,
}

/// The smallest heap of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Smallest {
    /// Over the least one of all plans.
    pub over_least: Option<f64>,
    /// The heap (`heap`), the largest that is too small (`failed_at`), and all that were tried.
    pub search: Answer,
}

impl PlanRow {
    /// Nothing is known of it yet.
    pub fn new(plan: &str) -> PlanRow {
        PlanRow { plan: row_name(plan), collects: collects(plan), refused: None, smallest: None }
    }

    /// Whether it was not run, completes in no heap, or failed twice in one while its smallest was searched.
    pub fn has_trouble(&self) -> bool {
        let failed = |found: &Smallest| found.search.heap.is_none() || found.search.has_others();
        self.refused.is_some() || self.smallest.as_ref().is_some_and(failed)
    }

    /// The heaps in which a replay failed twice while the smallest was searched, and why.
    pub fn failed_in(&self) -> impl Iterator<Item = (u64, &str)> {
        let tried = self.smallest.iter().flat_map(|found| &found.search.tried);
        tried.flat_map(|tried| tried.other.iter().map(|why| (tried.heap, why.as_str())))
    }

    /// Its smallest heap, bytes.
    pub fn smallest_bytes(&self) -> Option<u64> {
        self.smallest.as_ref()?.search.heap
    }
}

/// All plans in heaps of one size, or of one multiple.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Heap {
    /// As requested.
    pub size: HeapSize,
    /// By plan; those that were not run are left out.
    pub rows: Vec<Row>,
}

/// One plan in one heap.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Row {
    /// As `-m` names it.
    pub plan: String,
    /// The heap, bytes; none where nothing is ever collected.
    pub heap_bytes: Option<u64>,
    /// How the runs ended.
    pub ending: Ending,
    /// What went wrong, and how often.
    pub failures: Vec<(String, u32)>,
    /// Medians over the timed runs.
    pub spent: Option<Spent>,
    /// CPU of all threads, to the first plan in its heap.
    pub cpu_ratio: Option<Interval>,
    /// CPU of allocation, barrier and replay, to the first plan in its heap.
    pub mutator_ratio: Option<Interval>,
    /// What the comparison with the trace found.
    pub checked: Option<Checked>,
    /// What simulated caches miss of the program's loads and stores.
    #[serde(default)]
    pub misses: Option<Misses>,
}

impl Row {
    /// What the check found wrong.
    pub fn wrong(&self) -> Option<Wrong<'_>> {
        let checked = self.checked.as_ref()?;
        Wrong::of(checked.violation.as_deref(), checked.damage.as_deref())
    }
}

/// How the runs of a plan in a heap ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Ending {
    /// Every object found memory.
    Fits,
    /// One found none, even after a collection of the whole heap.
    DoesNotFit {
        /// Objects allocated before.
        objects: u64,
        /// Bytes that the program had not freed then.
        live_bytes: u64,
        /// Bytes of objects in the heap then, headers included.
        present_bytes: u64,
    },
    /// No run was made, or each failed.
    Unknown,
}

/// What a replay takes: medians over the timed runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spent {
    /// Runs.
    pub runs: u32,
    /// CPU of all threads, s.
    pub cpu_s: f64,
    /// CPU of the thread that replays: allocation, barrier and the replay's own work, s.
    pub mutator_cpu_s: f64,
    /// CPU of the collector without the replay's bookkeeping, s.
    pub collector_cpu_s: f64,
    /// CPU of the replay's bookkeeping in collections, which is taken off, s.
    pub bookkeeping_s: f64,
    /// From the first operation to the last, s.
    pub elapsed_s: f64,
    /// Collections of the whole heap.
    pub full_collections: f64,
    /// Collections of the nursery alone.
    pub nursery_collections: f64,
    /// Bytes copied, headers included.
    pub copied_bytes: f64,
    /// Median of all pauses of all runs, ns; 0 without collections.
    pub median_pause_ns: f64,
    /// Longest of them, ns.
    pub longest_pause_ns: f64,
    /// Objects that only their last touch ahead kept, over all collections.
    pub hidden: f64,
    /// Most of them at one collection.
    pub most_hidden: f64,
    /// Stores of pointers to objects that had been collected.
    pub lost_edges: f64,
}

/// What the comparison of each collection with the trace found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Checked {
    /// Collections that were compared.
    pub collections: u64,
    /// The first object that was gone or changed.
    pub violation: Option<String>,
    /// The first invariant of the collector's own heap that did not hold: its accounts or its structure.
    #[serde(default)]
    pub damage: Option<String>,
    /// Objects that the trace reaches, over all of them.
    pub reached_objects: u64,
    /// Their bytes.
    pub reached_bytes: u64,
    /// Objects that were in the heap and that the trace does not reach, over all of them.
    pub beyond_objects: u64,
    /// Their bytes.
    pub beyond_bytes: u64,
}

/// What a check found wrong: an object, or the collector's own heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrong<'a> {
    /// An object that the trace reaches was gone or changed.
    Reachability(&'a str),
    /// The collector's accounts or the structure of its heap are damaged; all objects were there.
    Damage(&'a str),
}

impl<'a> Wrong<'a> {
    /// Of what a replay states; the object first.
    pub fn of(violation: Option<&'a str>, damage: Option<&'a str>) -> Option<Wrong<'a>> {
        violation.map(Wrong::Reachability).or(damage.map(Wrong::Damage))
    }

    /// As a verdict.
    pub const fn verdict(self) -> &'static str {
        match self {
            Wrong::Reachability(_) => "reachability is violated",
            Wrong::Damage(_) => "the collector's heap is damaged",
        }
    }

    /// The verdict with what is wrong.
    pub fn text(self) -> String {
        let (Wrong::Reachability(what) | Wrong::Damage(what)) = self;
        format!("{}: {what}", self.verdict())
    }
}
