//! The figures in the JSON file of `heaptoll exact locality` (docs/questions/locality.md).

use heaptoll_locality::simulation::Sampling;
use heaptoll_locality::study::Study;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Everything.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ExactLocalityFigures {
    /// Whether all runs were made.
    pub complete: bool,
    /// Whether randomness was pinned.
    pub pinned: bool,
    /// Source of the machine's caches.
    pub machine_origin: String,
    /// The manager that the others are compared with.
    pub baseline: String,
    /// One a program.
    pub programs: Vec<Program>,
}

/// A program under all managers.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Program {
    /// Its name.
    pub program: String,
    /// Its command.
    pub command: Vec<String>,
    /// How the figures of large fully associative caches were obtained; `None`: all lines were followed.
    pub sampling: Option<SamplingFigures>,
    /// The runs.
    #[serde(flatten)]
    pub study: Study,
}

/// A sample of lines.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
pub struct SamplingFigures {
    /// One line in this many was followed,
    pub one_in: u64,
    /// beyond caches of this many lines.
    pub exact_lines: u32,
}

impl SamplingFigures {
    /// Of a sampling.
    pub fn of(sampling: Sampling) -> SamplingFigures {
        SamplingFigures { one_in: 1 << sampling.shift, exact_lines: sampling.exact_lines }
    }
}
