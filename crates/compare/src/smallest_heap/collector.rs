//! A collector's smallest heap, as JSON has it.

use heaptoll_experiment::manager::Manager;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::search::Answer;

/// A collector's smallest heap.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Collector {
    /// The stack, without the heap.
    pub stack: String,
    /// Pages that hold a live block, the most at once, in a run without a limit, bytes; `None` where it does not report
    /// them.
    pub unlimited_used_high_bytes: Option<u64>,
    /// What the search found; `None` where it could not begin.
    pub search: Option<Answer>,
    /// Runs that completed although a call had been refused: the program managed with less.
    pub completed_although_refused: u32,
    /// Collections in the last run that completed in the smallest heap.
    pub collections: u64,
    /// Why the search could not begin.
    pub failure: Option<String>,
}

impl Collector {
    /// A stack that is not searched yet.
    pub fn of(stack: &Manager) -> Collector {
        Collector {
            stack: stack.name.clone(),
            unlimited_used_high_bytes: None,
            search: None,
            completed_although_refused: 0,
            collections: 0,
            failure: None,
        }
    }

    /// The smallest heap and the largest that failed, where the search found them.
    pub fn edge(&self) -> Option<(u64, u64)> {
        let answer = self.search.as_ref()?;
        Some((answer.heap?, answer.failed_at))
    }
}
