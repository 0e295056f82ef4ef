//! The runs of one program: its right result, each collector's smallest heap, the baselines' footprints.

use heaptoll_compare::smallest_heap::{Closeness, Collector, Outcome, SmallestHeaps, run};
use heaptoll_experiment::experiment::ProgramInfo;
use heaptoll_experiment::manager::Manager;

use super::figures::{Baseline, Program};
use super::selection;
use heaptoll_command::context::Progress;
use heaptoll_command::failure::Failure;
use heaptoll_runs::chosen::Rows;
use heaptoll_runs::preparation::estimate::Estimate;

/// Heaps that a search tries, about, in addition to the runs at either side of the edge.
const HEAPS_TRIED: usize = 12;
/// How much longer runs take under a collector in a small heap, about.
const COLLECTED: f64 = 2.0;

/// The measurements of each program.
pub struct Plan<'a> {
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

impl Plan<'_> {
    /// Makes all measurements of one program. What was measured until Ctrl-C is in `into`.
    ///
    /// # Errors
    /// Ctrl-C, the program does not work without any limit, or heaptoll's own machinery failed.
    pub fn measure(&self, program: &ProgramInfo, rows: &mut Rows, into: &mut Program) -> Result<(), Failure> {
        let is_new = rows.is_new(&program.name);
        let mut heaps = SmallestHeaps::of(program, self.known, rows, self.progress)?;
        heaps.closeness = self.closeness;
        if is_new {
            self.announce(program, heaps.expected.run_s, rows);
        }
        into.steady_output = heaps.expected.is_steady();
        for collector in self.collectors {
            let row = self.collector(&heaps, collector, rows)?;
            into.collectors.push(row);
            self.progress.advance(1);
        }
        for allocator in self.allocators {
            for (every, honour) in selection::periods(self.every) {
                let row = self.baseline(&heaps, allocator, (every, honour), rows)?;
                into.baselines.push(row);
                self.progress.advance(1);
            }
        }
        Ok(())
    }

    /// Announces how long the program will take, where that is long; `run_s` is what a run under glibc took.
    fn announce(&self, program: &ProgramInfo, run_s: f64, rows: &Rows) {
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
            rows.context.messages.note(&words);
        }
    }

    fn collector(
        &self,
        heaps: &SmallestHeaps,
        stack: &Manager,
        rows: &mut Rows,
    ) -> Result<Collector, Failure> {
        self.progress.set_text(&format!("{} under {}", heaps.program.name, stack.name));
        match rows.proved(&heaps.program.name, &stack.name) {
            Ok(proved) => heaps.searched(stack, &proved, rows),
            Err(why) => Ok(Collector { failure: Some(why), ..Collector::of(stack) }),
        }
    }

    fn baseline(
        &self,
        heaps: &SmallestHeaps,
        allocator: &Manager,
        (every, honour): (u64, bool),
        rows: &mut Rows,
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
        let proved = match rows.proved(&program.name, &stack.name) {
            Ok(proved) => proved,
            Err(why) => {
                row.refused = Some(why);
                return Ok(row);
            }
        };
        for repetition in 0..self.closeness.repeats {
            let made = run(rows, &proved, repetition)?;
            match heaps.expected.judge(&made) {
                Outcome::Done => {
                    row.used_high_bytes.push(made.used_high_bytes.unwrap_or(0));
                    row.collections = made.collections.map_or(0, |collections| collections.count);
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
