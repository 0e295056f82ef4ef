//! The smallest heap of one program under one collector after the other, for experiments that fix heaps by it.

mod collector;
mod expected;
mod option;
mod runs;
mod search;

use heaptoll_experiment::experiment::{ProgramInfo, StackInfo};
use heaptoll_experiment::manager::Manager;
use heaptoll_experiment::observation::Observation;

use heaptoll_command::collector_options;
use heaptoll_command::context::Progress;
use heaptoll_command::failure::Failure;
use heaptoll_runs::chosen::{Rows, ending};
use heaptoll_runs::preparation::derived::proved_as;

pub use collector::Collector;
pub use expected::ExpectedResult;
pub use option::{has_heap, is_searched, sets_heap};
pub use runs::run;
pub use search::{Answer, End, Outcome, Question, Search, Step, Tried};

/// Heaps are whole pages.
const PAGE: u64 = 4096;
/// Java's virtual machine rounds heaps up to units of its own; this is the smallest unit.
const JAVA_STEP: u64 = 1 << 20;
/// The largest heap that is tried: this multiple of what the program used without a limit, or this many bytes if they are more.
const CEILING: (u64, u64) = (16, 256 << 20);
/// Runs of one search, at most.
const MOST_RUNS: u32 = 120;

/// How closely a heap is searched.
#[derive(Debug, Clone, Copy)]
pub struct Closeness {
    /// It may be too large by this share.
    pub tolerance: f64,
    /// Runs at either side of the edge.
    pub repeats: u32,
}

/// Enough where heaps of a multiple are compared, and not the heap itself.
const CLOSENESS: Closeness = Closeness { tolerance: 0.02, repeats: 3 };

/// The searches on one program.
pub struct SmallestHeaps<'a> {
    /// The program.
    pub program: &'a ProgramInfo,
    /// What it gives when it completes.
    pub expected: ExpectedResult,
    /// How closely each is searched.
    pub closeness: Closeness,
    known: &'a [Manager],
    progress: &'a dyn Progress,
}

impl<'a> SmallestHeaps<'a> {
    /// Runs the program under glibc, to know its right result.
    ///
    /// # Errors
    /// See [`ExpectedResult::of`].
    pub fn of(
        program: &'a ProgramInfo,
        known: &'a [Manager],
        rows: &mut Rows,
        progress: &'a dyn Progress,
    ) -> Result<SmallestHeaps<'a>, Failure> {
        let expected = ExpectedResult::of(program, rows)?;
        Ok(SmallestHeaps { program, expected, closeness: CLOSENESS, known, progress })
    }

    /// Searches the smallest heap under a stack that was proved to serve the program.
    ///
    /// # Errors
    /// Ctrl-C, or heaptoll's own machinery failed.
    pub fn searched(
        &self,
        stack: &Manager,
        proved: &StackInfo,
        rows: &mut Rows,
    ) -> Result<Collector, Failure> {
        let expected = &self.expected;
        let mut row = Collector::of(stack);
        let unlimited = run(rows, proved, 0)?;
        if !expected.is(&unlimited) {
            row.failure = Some(match expected.judge(&unlimited) {
                Outcome::Other(why) => format!("without a limit: {why}"),
                _ => format!("without a limit: {}", ending(&unlimited)),
            });
            return Ok(row);
        }
        row.unlimited_used_high_bytes = unlimited.used_high_bytes.filter(|used| *used > 0);
        let mut search = Search::new(self.question(stack, &unlimited));
        let mut completed: Vec<(u64, u64)> = Vec::new();
        let answer = loop {
            let heap = match search.next() {
                Step::End(answer) => break answer,
                Step::Try(heap) => heap,
            };
            self.progress.set_text(&format!(
                "{} under {}, a heap of {} KiB",
                self.program.name,
                stack.name,
                heap / 1024
            ));
            let limited = collector_options::with(self.known, stack, &format!("heap={heap}"))?;
            let tried = proved_as(proved, &limited, &limited.name, "without a limit");
            let tried = run(rows, &tried, search.runs_in(heap))?;
            let outcome = expected.judge(&tried);
            if outcome == Outcome::Done {
                row.completed_although_refused += u32::from(tried.refused_calls.is_some_and(|n| n > 0));
                completed.push((heap, tried.collections.map_or(0, |collections| collections.count)));
            }
            search.record(heap, outcome);
        };
        let last = completed.iter().rev().find(|(heap, _)| Some(*heap) == answer.heap);
        row.collections = last.map_or(0, |(_, collections)| *collections);
        row.search = Some(answer);
        Ok(row)
    }

    /// What to search, by a run without a limit.
    fn question(&self, stack: &Manager, unlimited: &Observation) -> Question {
        let reported = |bytes: Option<u64>| bytes.unwrap_or(0);
        let (used, mapped) = (reported(unlimited.used_high_bytes), reported(unlimited.heap_high_water_bytes));
        let step = if stack.is_java() { JAVA_STEP } else { PAGE };
        let sizes = [used, mapped, unlimited.peak_rss_kib * 1024];
        let start = sizes.into_iter().find(|bytes| *bytes > 0).unwrap_or(step);
        Question {
            start,
            ceiling: (start.max(mapped) * CEILING.0).max(CEILING.1),
            least: collector_options::least_heap(stack),
            step,
            tolerance: self.closeness.tolerance,
            repeats: self.closeness.repeats,
            most_runs: MOST_RUNS,
        }
    }

    /// The smallest heap under a collector that was proved to serve the program, bytes; the inner error states why
    /// there is none.
    ///
    /// # Errors
    /// Ctrl-C, or heaptoll's own machinery failed.
    pub fn smallest(
        &self,
        collector: &Manager,
        proved: &StackInfo,
        rows: &mut Rows,
    ) -> Result<Result<u64, String>, Failure> {
        Ok(smallest(&self.searched(collector, proved, rows)?))
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
