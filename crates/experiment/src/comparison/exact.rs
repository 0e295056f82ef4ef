//! Exact counts of one program: what one traced run of each stack counted.

use heaptoll_statistics::Interval;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A figure that was counted once.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Counted {
    /// How many.
    pub count: u64,
    /// Over the baseline's; `None` for the baseline itself, and where that has none.
    pub ratio: Option<f64>,
}

/// Misses of one cache of a simulated machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CacheCounted {
    /// The cache, its bytes and ways: `32K/8`.
    pub cache: String,
    /// Its misses.
    pub misses: Counted,
}

/// One stack on one program, as one traced run counted it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExactTable {
    /// Whether start-up is taken off instructions.
    pub less_startup: bool,
    /// The baseline, then the others by CPU ratio; empty where the baseline was not counted.
    pub rows: Vec<ExactRow>,
    /// Sentences the reader must see: what was left out and why, other work of the program.
    pub notes: Vec<String>,
}
