//! The runs: searches for smallest heaps, one run with checks and one with simulated caches of each cell, then
//! timed ones, interleaved.

use std::time::Instant;

use crate::replay_graph::mmtk::{Answered, Mmtk, Replayed};
use heaptoll_replay::error::ReplayError;
use heaptoll_replay::study::Progress;
use heaptoll_report::format::printable_lines;
use heaptoll_units::bytes;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::cells::{Cell, Purpose};
use super::figures::{PlanRow, Smallest};
use super::heaps;
use super::memory::all_objects_bytes;
use super::plans::row_name;
use super::ready::Ready;
use super::request::{GraphReplayRequest, HeapSize};
use heaptoll_command::context::Messages;
use heaptoll_command::failure::Failure;
use heaptoll_compare::smallest_heap::{Outcome, Search, Step};
use heaptoll_trace_reports::replay::progress::ReplayProgress;

/// What all runs share.
pub struct Runner<'a> {
    /// The program that replays.
    pub mmtk: &'a Mmtk<'a>,
    /// What it reads.
    pub ready: &'a Ready,
    /// What was requested.
    pub request: &'a GraphReplayRequest,
    /// The plans, in the order of their rows.
    pub plans: &'a [&'static str],
    /// Seed of the order of runs.
    pub seed: u64,
    /// Where progress and violations are shown.
    pub messages: &'a dyn Messages,
}

/// One run: the place of its cell, and what it is for.
type Run = (usize, Purpose);

impl Runner<'_> {
    /// Finds each plan's smallest heap, where a heap is a multiple of one. False: interrupted.
    ///
    /// # Errors
    /// The system gives no process.
    pub fn search(&self, rows: &mut [PlanRow]) -> Result<bool, Failure> {
        if !self.request.heaps.iter().any(|heap| matches!(heap, HeapSize::Times(_))) {
            return Ok(true);
        }
        let mut progress = ReplayProgress::new(self.messages);
        for (row, plan) in rows.iter_mut().zip(self.plans).filter(|(row, _)| row.collects) {
            let mut search = heaps::search(&self.ready.prepared, self.request.tolerance);
            let found = loop {
                match search.next() {
                    Step::End(answer) => break answer,
                    Step::Try(heap) => {
                        progress.message(&format!(
                            "searching the smallest heap of {}: {}",
                            row.plan,
                            bytes(heap as f64)
                        ));
                        if !self.attempt(&mut search, plan, heap)? {
                            return Ok(false);
                        }
                    }
                }
            };
            row.smallest = Some(Smallest { over_least: None, search: found });
        }
        Ok(true)
    }

    /// False: interrupted.
    fn attempt(&self, search: &mut Search, plan: &str, heap: u64) -> Result<bool, Failure> {
        let mut answered = self.replay(plan, heap, Purpose::Time(0))?;
        // What killed it may have nothing to do with the heap.
        if matches!(answered, Answered::Failed(_)) {
            answered = self.replay(plan, heap, Purpose::Time(0))?;
        }
        let outcome = match answered {
            Answered::Interrupted => return Ok(false),
            Answered::Done(answer) if answer.fits => Outcome::Done,
            Answered::Done(_) => Outcome::OutOfMemory,
            Answered::Failed(why) => Outcome::Other(printable_lines(&why)),
        };
        search.record(heap, outcome);
        Ok(true)
    }

    fn replay(&self, plan: &str, heap: u64, purpose: Purpose) -> Result<Answered<Replayed>, Failure> {
        let answered = match (purpose, &self.request.misses) {
            (Purpose::Simulate, Some(question)) => {
                let machine = serde_json::to_string(&question.machine)
                    .map_err(|error| Failure::Trouble(Box::new(error)))?;
                let every_bytes = question.every_bytes(all_objects_bytes(&self.ready.prepared));
                self.mmtk.simulate(&self.ready.file, plan, heap, &machine, every_bytes)
            }
            _ => self.mmtk.replay(&self.ready.file, plan, heap, purpose == Purpose::Check),
        };
        answered.map_err(failure)
    }

    /// Makes all runs. False: interrupted.
    ///
    /// # Errors
    /// The system gives no process.
    pub fn measure(&self, cells: &mut [Cell]) -> Result<bool, Failure> {
        let mut first = Vec::new();
        first.extend(self.request.check.then_some(Purpose::Check));
        first.extend(self.request.misses.as_ref().map(|_| Purpose::Simulate));
        let runs = order(cells.len(), &first, self.request.runs, self.seed);
        let mut progress = ReplayProgress::new(self.messages);
        let begun = Instant::now();
        for (done, (at, purpose)) in runs.iter().enumerate() {
            if done == cells.len() {
                progress.first_round(begun.elapsed(), done, runs.len() - done);
            }
            let cell = &mut cells[*at];
            if !cell.is_settled() && !self.run(cell, *purpose, &mut progress)? {
                return Ok(false);
            }
            progress.ran(done + 1, runs.len());
        }
        Ok(true)
    }

    /// False: interrupted.
    fn run(&self, cell: &mut Cell, purpose: Purpose, progress: &mut ReplayProgress) -> Result<bool, Failure> {
        let plan = self.plans[cell.plan];
        let what = match purpose {
            Purpose::Check => "checking",
            Purpose::Simulate => "simulating caches under",
            Purpose::Time(_) => "replaying under",
        };
        progress.message(&format!("{what} {}", row_name(plan)));
        match self.replay(plan, cell.heap_bytes, purpose)? {
            Answered::Interrupted => return Ok(false),
            Answered::Failed(why) => cell.fail(printable_lines(&why)),
            Answered::Done(answer) => cell.add(purpose, answer),
        }
        if let Some(wrong) = cell.wrong() {
            let heap = bytes(cell.heap_bytes as f64);
            self.messages.error(&format!("{} in {heap}: {}", row_name(plan), wrong.text()));
        }
        Ok(true)
    }
}

/// Runs that are made once first; then all cells of a repetition before the next one's, in a fresh random order.
fn order(cells: usize, first: &[Purpose], repetitions: u32, seed: u64) -> Vec<Run> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut runs: Vec<Run> =
        first.iter().flat_map(|purpose| (0..cells).map(move |at| (at, *purpose))).collect();
    for number in 0..repetitions {
        let mut places: Vec<usize> = (0..cells).collect();
        places.shuffle(&mut rng);
        runs.extend(places.into_iter().map(|at| (at, Purpose::Time(number))));
    }
    runs
}

fn failure(error: ReplayError) -> Failure {
    Failure::Trouble(Box::new(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_repetition_has_every_cell_once_in_an_order_of_the_seed_after_the_checks() {
        let first = [Purpose::Check, Purpose::Simulate];
        let runs = order(6, &first, 3, 7);
        assert!(runs[..6].iter().all(|(_, purpose)| *purpose == Purpose::Check));
        assert!(runs[6..12].iter().all(|(_, purpose)| *purpose == Purpose::Simulate));
        for (number, repetition) in runs[12..].chunks(6).enumerate() {
            let mut places: Vec<usize> = repetition.iter().map(|(at, _)| *at).collect();
            assert!(repetition.iter().all(|(_, run)| *run == Purpose::Time(number as u32)));
            places.sort_unstable();
            assert_eq!(places, [0, 1, 2, 3, 4, 5]);
        }
        assert_eq!(runs, order(6, &first, 3, 7));
        assert_ne!(runs, order(6, &first, 3, 8));
    }
}
