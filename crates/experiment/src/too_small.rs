//! Heaps that were fixed and turned out to be too small for the program: a result and no error.

use crate::comparison::{ProgramTable, Row};
use crate::experiment::Experiment;
use crate::heap_limit::HeapLimit;
use crate::observation::Outcome;
use crate::varied::Varied;

impl Experiment {
    /// The heap that is fixed for a stack on a program, if one is.
    pub fn heap_limit(&self, program: &str, stack: &str) -> Option<&HeapLimit> {
        self.stack(program, stack)?.heap.as_ref()
    }

    /// The varied setting of a stack on a program, if it has one.
    pub fn varied(&self, program: &str, stack: &str) -> Option<&Varied> {
        self.stack(program, stack)?.varied.as_ref()
    }

    /// The heap that is fixed for a stack, where its runs did not complete in it: that is a result and no error. Wrong
    /// output is an error in any heap.
    pub fn does_not_fit(&self, program: &str, stack: &str) -> Option<&HeapLimit> {
        let limit = self.heap_limit(program, stack)?;
        let mut failed = false;
        for row in self.rows(program, stack).filter(|row| row.phase.is_measured()) {
            match row.outcome {
                Outcome::Exit(_) | Outcome::Signal(_) | Outcome::Timeout(_) => failed = true,
                Outcome::Ok | Outcome::Interrupted => {}
                Outcome::NotStarted(_) | Outcome::WrongOutput | Outcome::ServeFailed(_) => return None,
            }
        }
        failed.then_some(limit)
    }

    /// The rows of a table that are not good, but for those of heaps that are too small.
    pub fn failed_rows<'a>(&self, table: &'a ProgramTable) -> impl Iterator<Item = &'a Row> {
        let marked = table.rows.iter().filter(|row| !row.marks.is_empty());
        marked.filter(|row| self.does_not_fit(&table.program, &row.stack).is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{experiment, row};

    #[test]
    fn a_run_that_fails_in_a_fixed_heap_does_not_fit_and_wrong_output_is_wrong() {
        let mut made = experiment(&["glibc", "c@1x"]);
        made.stacks[1].heap = Some(HeapLimit::of("c", 1.0, 4096));
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
