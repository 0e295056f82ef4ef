//! The runs of one program: its right result, each collector's smallest heap, the baselines' footprints.

use std::ffi::OsString;
use std::time::Instant;

use heaptoll_compare::smallest_heap::{Closeness, Collector, Outcome, RIGHT_RUNS, SmallestHeaps};
use heaptoll_experiment::experiment::ProgramInfo;
use heaptoll_experiment::manager::Manager;
use heaptoll_preflight::inspect_program;

use super::figures::{Baseline, Program};
use super::selection;
use heaptoll_command::context::Progress;
use heaptoll_command::failure::Failure;
use heaptoll_runs::attempt::Runs;
use heaptoll_runs::preparation::estimate::Estimate;

/// Heaps that a search tries, about, in addition to the runs at either side of the edge.
const HEAPS_TRIED: usize = 12;
/// How much longer runs take under a collector in a small heap, about.
const COLLECTED: f64 = 2.0;

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
    /// How closely heaps are searched; a baseline has so many runs, too.
    pub closeness: Closeness,
    /// Progress.
    pub progress: &'a dyn Progress,
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
        let mut heaps = SmallestHeaps::of(program, self.known, self.runs, self.progress)?;
        heaps.closeness = self.closeness;
        self.announce(program, begun.elapsed().as_secs_f64() / f64::from(RIGHT_RUNS));
        into.steady_output = heaps.expected.is_steady();
        for collector in self.collectors {
            let row = self.collector(&heaps, collector)?;
            into.collectors.push(row);
            self.progress.advance(1);
        }
        for allocator in self.allocators {
            let explicit = self.every.iter().min().map(|every| (*every, true));
            for (every, honour) in self.every.iter().map(|every| (*every, false)).chain(explicit) {
                let row = self.baseline(&heaps, allocator, every, honour)?;
                into.baselines.push(row);
                self.progress.advance(1);
            }
        }
        Ok(())
    }

    /// Announces how long the program will take, where that is long; `run_s` is what a run under glibc took.
    fn announce(&self, program: &ProgramInfo, run_s: f64) {
        let repeats = self.closeness.repeats as usize;
        let searches = self.collectors.len() * (1 + HEAPS_TRIED + 2 * repeats);
        let baselines = self.allocators.len() * (self.every.len() + 1) * repeats;
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

    fn collector(&self, heaps: &SmallestHeaps, stack: &Manager) -> Result<Collector, Failure> {
        self.progress.set_text(&format!("{} under {}", heaps.program.name, stack.name));
        match self.runs.proven(heaps.program, stack)? {
            Ok(set) => heaps.searched(stack, &set),
            Err(why) => Ok(Collector { failure: Some(why), ..Collector::of(stack) }),
        }
    }

    fn baseline(
        &self,
        heaps: &SmallestHeaps,
        allocator: &Manager,
        every: u64,
        honour: bool,
    ) -> Result<Baseline, Failure> {
        let program = heaps.program;
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
        for _ in 0..self.closeness.repeats {
            let attempt = self.runs.attempt(program, &set)?;
            match heaps.expected.judge(&attempt, self.runs.protocol.timeout_s) {
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
