//! A collector's heap that an experiment fixes, so that collectors and allocators are compared at equal memory.

use heaptoll_units::kib;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::experiment::{Experiment, StackInfo};
use crate::observation::{Observation, Outcome};

/// Heaps are whole pages, bytes.
const PAGE: u64 = 4096;

/// A fixed heap, and what it is a multiple of.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HeapLimit {
    /// The stack of the same collector without a limit.
    pub collector: String,
    /// The heap over the smallest one.
    pub factor: f64,
    /// The heap, bytes: whole pages.
    pub bytes: u64,
    /// The smallest heap in which the program completes under the collector, bytes.
    pub smallest_bytes: u64,
}

impl HeapLimit {
    /// A heap of so many times the smallest one, which is rounded up to whole pages.
    pub fn of(collector: &str, factor: f64, smallest_bytes: u64) -> HeapLimit {
        let bytes = (smallest_bytes as f64 * factor).ceil() as u64;
        HeapLimit {
            collector: collector.into(),
            factor,
            bytes: bytes.div_ceil(PAGE).max(1) * PAGE,
            smallest_bytes,
        }
    }

    /// The name of its stack in rows, the same on every program: `tithe-collect@1.5x`.
    pub fn stack(&self) -> String {
        format!("{}@{}x", self.collector, self.factor)
    }

    /// What is stated of a stack that does not complete in it.
    pub fn failure(&self) -> String {
        format!("does not fit in {} KiB", kib(self.bytes))
    }
}

impl Experiment {
    /// The stack of this name on a program.
    fn stack(&self, program: &str, stack: &str) -> Option<&StackInfo> {
        self.stacks.iter().find(|info| info.program == program && info.name == stack)
    }

    /// The heap that is fixed for a stack on a program, if one is.
    pub fn heap_limit(&self, program: &str, stack: &str) -> Option<&HeapLimit> {
        self.stack(program, stack)?.heap.as_ref()
    }

    /// The heap that is fixed for a stack, where its runs did not complete in it: that is a result and no error. Wrong
    /// output is an error in any heap.
    pub fn does_not_fit(&self, program: &str, stack: &str) -> Option<&HeapLimit> {
        let limit = self.heap_limit(program, stack)?;
        let of_it = |row: &&Observation| row.program == program && row.stack == stack;
        let rows = self.observations.iter().filter(of_it).filter(|row| row.phase.is_measured());
        let mut failed = false;
        for row in rows {
            match row.outcome {
                Outcome::Exit(_) | Outcome::Signal(_) | Outcome::Timeout(_) => failed = true,
                Outcome::Ok | Outcome::Interrupted => {}
                Outcome::NotStarted(_) | Outcome::WrongOutput | Outcome::ServeFailed(_) => return None,
            }
        }
        failed.then_some(limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{experiment, row};

    #[test]
    fn a_heap_is_a_multiple_in_whole_pages() {
        let limit = HeapLimit::of("tithe-collect", 1.25, 10 * PAGE);
        assert_eq!((limit.bytes, limit.stack().as_str()), (13 * PAGE, "tithe-collect@1.25x"));
        assert_eq!(HeapLimit::of("x", 2.0, 10 * PAGE).stack(), "x@2x");
        assert_eq!(limit.failure(), "does not fit in 52 KiB");
    }

    #[test]
    fn a_run_that_fails_in_a_fixed_heap_does_not_fit_and_wrong_output_is_wrong() {
        let mut made = experiment(&["glibc", "c@1x"]);
        made.stacks[1].heap = Some(HeapLimit::of("c", 1.0, PAGE));
        let with = |outcome: Outcome, stack: &str| {
            let mut made = made.clone();
            made.observations = vec![row(stack, 0, 1.0, 1)];
            made.observations[0].outcome = outcome;
            made.does_not_fit("prog", stack).is_some()
        };
        assert!(with(Outcome::Exit(1), "c@1x") && with(Outcome::Timeout(1.0), "c@1x"));
        assert!(!with(Outcome::Ok, "c@1x") && !with(Outcome::WrongOutput, "c@1x"));
        assert!(!with(Outcome::Exit(1), "glibc"), "it has no limit");
    }
}
