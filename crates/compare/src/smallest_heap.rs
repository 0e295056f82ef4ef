//! The smallest heap of one program under one collector after the other, for experiments that fix heaps by it.

use heaptoll_experiment::experiment::{ProgramInfo, StackInfo};
use heaptoll_experiment::manager::Manager;

use super::figures::Collector;
use super::measure::{ExpectedResult, Plan};
use heaptoll_command::context::Progress;
use heaptoll_command::failure::Failure;
use heaptoll_runs::attempt::{Runs, Set};

/// A heap may be too large by this share: heaps of a multiple of it are compared, and not the heap itself.
const TOLERANCE: f64 = 0.02;
/// Runs at either side of the edge.
const REPEATS: u32 = 3;

/// The searches on one program.
pub struct SmallestHeaps<'a> {
    plan: Plan<'a>,
    program: &'a ProgramInfo,
    expected: ExpectedResult,
}

impl<'a> SmallestHeaps<'a> {
    /// Runs the program under glibc, to know its right result.
    ///
    /// # Errors
    /// Ctrl-C, the program does not complete under glibc (`NothingToCompare`), or heaptoll's own machinery failed.
    pub fn of(
        program: &'a ProgramInfo,
        known: &'a [Manager],
        runs: Runs<'a>,
        progress: &'a dyn Progress,
    ) -> Result<SmallestHeaps<'a>, Failure> {
        let plan = Plan {
            runs,
            known,
            collectors: &[],
            allocators: &[],
            every: &[],
            tolerance: TOLERANCE,
            repeats: REPEATS,
            progress,
        };
        let expected = plan.expected(program)?;
        Ok(SmallestHeaps { plan, program, expected })
    }

    /// The smallest heap under a collector that was proved to serve the program, bytes; the inner error states why
    /// there is none.
    ///
    /// # Errors
    /// Ctrl-C, or heaptoll's own machinery failed.
    pub fn smallest(&self, collector: &Manager, proved: &StackInfo) -> Result<Result<u64, String>, Failure> {
        let set = Set {
            preload: proved.preload.iter().map(Into::into).collect(),
            environment: proved.environment.clone(),
        };
        let found = self.plan.searched(self.program, &self.expected, collector, &set)?;
        Ok(smallest(&found))
    }
}

fn smallest(found: &Collector) -> Result<u64, String> {
    match (found.edge(), &found.failure, &found.search) {
        (Some((heap, _)), ..) => Ok(heap),
        (None, Some(why), _) => Err(format!("its smallest heap was not searched: {why}")),
        (None, None, Some(answer)) => Err(format!(
            "no smallest heap was found: it did not complete in {} KiB either{}",
            heaptoll_units::kib(answer.failed_at),
            answer.failed_otherwise.first().map(|why| format!(" ({why})")).unwrap_or_default()
        )),
        (None, None, None) => Err("its smallest heap was not searched".into()),
    }
}

#[cfg(test)]
mod tests {
    use heaptoll_experiment::manager::glibc;

    use super::super::search::{Answer, End};
    use super::*;

    #[test]
    fn a_search_without_an_answer_states_why() {
        let failing = Collector { failure: Some("exit status 3".into()), ..Collector::of(&glibc()) };
        assert_eq!(smallest(&failing), Err("its smallest heap was not searched: exit status 3".into()));
        let answer = |heap: Option<u64>| Answer {
            end: if heap.is_some() { End::Found } else { End::NeverDone },
            heap,
            failed_at: 1 << 20,
            sometimes_from: None,
            failed_otherwise: vec!["killed by signal 11".into()],
            tried: vec![],
        };
        let with = |heap| smallest(&Collector { search: Some(answer(heap)), ..Collector::of(&glibc()) });
        assert_eq!(with(Some(2 << 20)), Ok(2 << 20));
        assert!(with(None).is_err_and(|why| why.contains("1024 KiB") && why.contains("signal 11")));
    }
}
