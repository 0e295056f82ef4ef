//! The runs of one program: its right result, each collector's smallest heap, the baselines' footprints.

use std::ffi::OsString;
use std::time::Instant;

use heaptoll_experiment::experiment::ProgramInfo;
use heaptoll_experiment::java;
use heaptoll_experiment::manager::Manager;
use heaptoll_launcher::Ended;
use heaptoll_preflight::inspect_program;

use super::figures::{Baseline, Collector, Program};
use super::search::{Outcome, Question, Search, Step};
use super::selection;
use heaptoll_command::collector_options;
use heaptoll_command::context::Progress;
use heaptoll_command::failure::Failure;
use heaptoll_runs::attempt::{Attempt, Runs, Set};
use heaptoll_runs::preparation::estimate::Estimate;

/// Heaps are whole pages.
const PAGE: u64 = 4096;
/// Those of Java's virtual machine: it rounds heaps up to units of its own, of which this is the smallest.
const JAVA_STEP: u64 = 1 << 20;
/// No heap beyond so many times what the program used without a limit, and beyond this many bytes, is tried.
const CEILING: (u64, u64) = (16, 256 << 20);
/// Runs under glibc that determine the right result.
const RIGHT_RUNS: u32 = 2;
/// Heaps that a search tries, about, in addition to the runs at either side of the edge.
const HEAPS_TRIED: usize = 12;
/// How much longer runs take under a collector in a small heap, about.
const COLLECTED: f64 = 2.0;
/// Runs of one search, at most.
const MOST_RUNS: u32 = 120;
/// Messages of managers without a count of refused calls when their heap is full.
const OWN_WORDS: [&str; 2] = ["GC Warning: Out of Memory", "GC Warning: Failed to expand heap"];

/// The measurements of each program.
pub struct Plan<'a> {
    /// How runs are made.
    pub runs: Runs<'a>,
    /// Managers by name.
    pub known: &'a [Manager],
    /// Searched.
    pub collectors: &'a [Manager],
    /// Under the baselines' layer.
    pub allocators: &'a [Manager],
    /// Periods of the baselines, bytes.
    pub every: &'a [u64],
    /// As [`Question`] has it.
    pub tolerance: f64,
    /// Runs at either side of an edge and of each baseline.
    pub repeats: u32,
    /// Progress.
    pub progress: &'a dyn Progress,
}

/// What a run must give to have completed.
pub(super) struct ExpectedResult {
    status: i32,
    /// `None`: the output varies by itself.
    digest: Option<String>,
}

impl ExpectedResult {
    fn is(&self, attempt: &Attempt) -> bool {
        attempt.finished.ended == Ended::Exit(self.status)
            && self.digest.as_ref().is_none_or(|digest| *digest == attempt.finished.digest)
    }

    /// The three outcomes. Lack of memory counts when the manager reports it: an exit status or a signal alone may
    /// come from anything.
    fn judge(&self, attempt: &Attempt, timeout_s: f64) -> Outcome {
        if self.is(attempt) {
            return Outcome::Done;
        }
        let last_line = |words: &str| attempt.finished.error_tail.contains(words);
        let output = String::from_utf8_lossy(&attempt.finished.output_head);
        let java = java::is_out_of_memory(&attempt.finished.error_tail) || java::is_out_of_memory(&output);
        if attempt.sum(|slot| slot.refused_calls) > 0 || OWN_WORDS.into_iter().any(last_line) || java {
            return Outcome::OutOfMemory;
        }
        Outcome::Other(match attempt.finished.ended {
            Ended::Exit(status) if status == self.status => "wrong output".into(),
            _ => attempt.ending(timeout_s),
        })
    }
}

/// Refuses a program that no manager can be put into, before any run.
fn reachable(program: &ProgramInfo) -> Result<(), Failure> {
    let command: Vec<OsString> = program.command_as_stored();
    let own = program.environment.iter().map(|(name, value)| (name.into(), value.into()));
    let environment: Vec<(OsString, OsString)> = std::env::vars_os().chain(own).collect();
    let found = inspect_program(&command, &environment, None);
    found.map(drop).map_err(|refusal| Failure::NothingToCompare(refusal.to_string()))
}

impl Plan<'_> {
    /// Makes all measurements of one program. What was measured until Ctrl-C is in `into`.
    ///
    /// # Errors
    /// Ctrl-C, the program does not work without any limit, or heaptoll's own machinery failed.
    pub fn measure(&self, program: &ProgramInfo, into: &mut Program) -> Result<(), Failure> {
        reachable(program)?;
        let begun = Instant::now();
        let expected = self.expected(program)?;
        self.announce(program, begun.elapsed().as_secs_f64() / f64::from(RIGHT_RUNS));
        into.steady_output = expected.digest.is_some();
        for collector in self.collectors {
            let row = self.collector(program, &expected, collector)?;
            into.collectors.push(row);
            self.progress.advance(1);
        }
        for allocator in self.allocators {
            let explicit = self.every.iter().min().map(|every| (*every, true));
            for (every, honour) in self.every.iter().map(|every| (*every, false)).chain(explicit) {
                let row = self.baseline(program, &expected, allocator, every, honour)?;
                into.baselines.push(row);
                self.progress.advance(1);
            }
        }
        Ok(())
    }

    /// Announces how long the program will take, where that is long; `run_s` is what a run under glibc took.
    fn announce(&self, program: &ProgramInfo, run_s: f64) {
        let searches = self.collectors.len() * (1 + HEAPS_TRIED + 2 * self.repeats as usize);
        let baselines = self.allocators.len() * (self.every.len() + 1) * self.repeats as usize;
        let runs = searches + baselines;
        let estimate = Estimate {
            what: format!("{}: some {runs} runs to make", program.name),
            seconds: runs as f64 * run_s * COLLECTED,
            at_least: false,
            provided: "a run under a collector takes twice as long as one under glibc".into(),
        };
        if let Some(words) = estimate.sentence() {
            self.runs.context.messages.note(&words);
        }
    }

    /// Runs the program twice under the C library's own malloc.
    pub(super) fn expected(&self, program: &ProgramInfo) -> Result<ExpectedResult, Failure> {
        let mut expected = ExpectedResult { status: self.runs.protocol.expect_status, digest: None };
        let mut digests = Vec::new();
        for _ in 0..RIGHT_RUNS {
            let attempt = self.runs.attempt(program, &Set::default())?;
            if !expected.is(&attempt) {
                return Err(Failure::NothingToCompare(format!(
                    "{} does not complete under glibc and without a limit: {}; pass --expect-status if another exit status is a good one",
                    program.name,
                    attempt.ending(self.runs.protocol.timeout_s)
                )));
            }
            digests.push(attempt.finished.digest);
        }
        digests.dedup();
        expected.digest = (digests.len() == 1).then(|| digests.remove(0));
        Ok(expected)
    }

    fn collector(
        &self,
        program: &ProgramInfo,
        expected: &ExpectedResult,
        stack: &Manager,
    ) -> Result<Collector, Failure> {
        self.progress.set_text(&format!("{} under {}", program.name, stack.name));
        match self.runs.proven(program, stack)? {
            Ok(set) => self.searched(program, expected, stack, &set),
            Err(why) => Ok(Collector { failure: Some(why), ..Collector::of(stack) }),
        }
    }

    /// Searches the smallest heap under a stack that was proved to serve the program with this preloaded.
    pub(super) fn searched(
        &self,
        program: &ProgramInfo,
        expected: &ExpectedResult,
        stack: &Manager,
        set: &Set,
    ) -> Result<Collector, Failure> {
        let mut row = Collector::of(stack);
        let unlimited = self.runs.attempt(program, set)?;
        if !expected.is(&unlimited) {
            let why = expected.judge(&unlimited, self.runs.protocol.timeout_s);
            row.failure = Some(match why {
                Outcome::Other(why) => format!("without a limit: {why}"),
                _ => format!("without a limit: {}", unlimited.ending(self.runs.protocol.timeout_s)),
            });
            return Ok(row);
        }
        let used = unlimited.most(|slot| slot.used_high_bytes);
        row.unlimited_used_high_bytes = Some(used).filter(|used| *used > 0);
        let mapped = unlimited.most(|slot| slot.mapped_high_bytes);
        let resident = unlimited.finished.usage.peak_rss_kib * 1024;
        let step = if java::is_java(stack) { JAVA_STEP } else { PAGE };
        let start = [used, mapped, resident].into_iter().find(|bytes| *bytes > 0).unwrap_or(step);
        let mut search = Search::new(Question {
            start,
            ceiling: (start.max(mapped) * CEILING.0).max(CEILING.1),
            least: collector_options::least_heap(stack),
            step,
            tolerance: self.tolerance,
            repeats: self.repeats,
            most_runs: MOST_RUNS,
        });
        let mut completed: Vec<(u64, u64)> = Vec::new();
        let answer = loop {
            let heap = match search.next() {
                Step::End(answer) => break answer,
                Step::Try(heap) => heap,
            };
            self.progress.set_text(&format!(
                "{} under {}, a heap of {} KiB",
                program.name,
                stack.name,
                heap / 1024
            ));
            let limited = collector_options::with(self.known, stack, &format!("heap={heap}"))?;
            let set = Set { preload: set.preload.clone(), environment: limited.environment };
            let attempt = self.runs.attempt(program, &set)?;
            let outcome = expected.judge(&attempt, self.runs.protocol.timeout_s);
            if outcome == Outcome::Done {
                row.completed_although_refused += u32::from(attempt.sum(|slot| slot.refused_calls) > 0);
                completed.push((heap, attempt.sum(|slot| slot.collections)));
            }
            search.record(heap, outcome);
        };
        let last = completed.iter().rev().find(|(heap, _)| Some(*heap) == answer.heap);
        row.collections = last.map_or(0, |(_, collections)| *collections);
        row.search = Some(answer);
        Ok(row)
    }

    fn baseline(
        &self,
        program: &ProgramInfo,
        expected: &ExpectedResult,
        allocator: &Manager,
        every: u64,
        honour: bool,
    ) -> Result<Baseline, Failure> {
        let word = selection::baseline_name(&allocator.name, every, honour);
        let stack = heaptoll_experiment::manager::find(self.known, &word)?;
        self.progress.set_text(&format!("{} under {}", program.name, stack.name));
        let mut row = Baseline {
            stack: stack.name.clone(),
            allocator: allocator.name.clone(),
            every,
            frees_honoured: honour,
            used_high_bytes: vec![],
            collections: 0,
            failures: vec![],
            refused: None,
        };
        let set = match self.runs.proven(program, &stack)? {
            Ok(set) => set,
            Err(why) => {
                row.refused = Some(why);
                return Ok(row);
            }
        };
        for _ in 0..self.repeats {
            let attempt = self.runs.attempt(program, &set)?;
            match expected.judge(&attempt, self.runs.protocol.timeout_s) {
                Outcome::Done => {
                    row.used_high_bytes.push(attempt.most(|slot| slot.used_high_bytes));
                    row.collections = attempt.sum(|slot| slot.collections);
                }
                Outcome::OutOfMemory => row.failures.push("out of memory".into()),
                Outcome::Other(why) => row.failures.push(why),
            }
            // A lasting failure would only take the same time again.
            if row.failures.len() > 1 {
                break;
            }
        }
        Ok(row)
    }
}
