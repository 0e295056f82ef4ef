//! The table of one program: a row a stack, and what the reader must know of them.

use heaptoll_statistics::Interval;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::exact::ExactTable;
use super::nodes::NodeRatio;
use super::row::Row;
use crate::disturbance::Disturbed;

/// One program's table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramTable {
    /// Program name.
    pub program: String,
    /// Rows sorted by CPU ratio, the cheapest first; stacks without a good row last.
    pub rows: Vec<Row>,
    /// Sentences on the table; first what changes its reading (too short a run, few pairs, orphaned processes, ...).
    pub notes: Vec<String>,
    /// How many of the last notes change nothing about its reading.
    #[serde(skip)]
    pub asides: usize,
    /// Whether its figures include start-up, as a note states.
    #[serde(skip)]
    pub includes_startup: bool,
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
    /// The ratios of each node, where several nodes measured the experiment; by node, in the order of its stacks.
    #[serde(default)]
    pub nodes: Vec<NodeRatio>,
}

impl ProgramTable {
    /// Whether any manager reported a collection.
    pub fn has_collections(&self) -> bool {
        self.rows.iter().any(|row| row.collections.is_some_and(|collections| collections.count > 0.0))
    }
}

/// The company effect on the CPU ratio of the stack that it moves most.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CompanyEffect {
    /// The stack.
    pub stack: String,
    /// Its ratio at once over its ratio alone.
    pub ratio: Interval,
    /// How far from those alone the ratios of all stacks may lie, as a share: the widest side of their intervals.
    pub within: f64,
}
