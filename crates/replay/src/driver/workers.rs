//! The threads of a replay: as many as the trace has, each begun when the call before its first was made, and ended
//! after its last. The process's own first thread is the trace's first.
//!
//! A [`worker`] executes the calls of one thread, in the [`turns`] of exact order where that is kept; [`threads`] has
//! those of the system; [`shared`] is what all of them use.

mod locked;
mod shared;
mod threads;
mod turns;
mod worker;

use std::fs::File;

use heaptoll_replay::job::{Job, Outcome};
use heaptoll_replay::program::BLOCK;

use self::locked::locked;
use self::shared::Shared;
use self::worker::Worker;
use super::area::{Area, no_memory};
use super::clock::Clocks;
use super::execute::AHEAD;
use super::process;
use super::watch::Watch;

/// Words of a block at most: the last operation of one may be long.
const MOST_WORDS: usize = BLOCK + 8;

/// All threads and what they share.
pub struct Workers<W: Watch, const TOUCH: u8, const GENERATIONS: bool> {
    shared: Shared<GENERATIONS>,
    common: W::Common,
}

impl<W: Watch, const TOUCH: u8, const GENERATIONS: bool> Workers<W, TOUCH, GENERATIONS> {
    /// Puts everything in place.
    pub fn new(job: Job, program: File) -> Result<Self, String> {
        let clocks = Clocks::measure();
        let common = W::common(&job, clocks)?;
        Ok(Workers { shared: Shared::new(job, program, clocks, W::SIZES || TOUCH > 0)?, common })
    }

    /// Replays and returns the measurements.
    pub fn replay(self) -> Result<Outcome, String> {
        let words = Area::table::<u64>(MOST_WORDS + AHEAD).map_err(no_memory)?;
        W::baseline(&self.common);
        let faults = process::faults();
        for repetition in 0..self.shared.job.repetitions {
            if repetition > 0 {
                self.reset();
            }
            self.first(words).work(&self.shared.job.index.streams, true);
            self.shared.threads.join_all();
            self.shared.failed()?;
            W::repetition(&self.common, false);
            if self.shared.job.repetitions > 1 {
                self.first(words).work(std::slice::from_ref(&self.shared.job.index.leftovers), false);
                self.shared.failed()?;
                W::repetition(&self.common, true);
            }
        }
        Ok(self.outcome(faults))
    }

    /// The process's own first thread.
    fn first(&self, words: Area) -> Worker<'_, W, TOUCH, GENERATIONS> {
        Worker::new(&self.shared, &self.common, 0, words)
    }

    /// Empties what the repetition before has left.
    fn reset(&self) {
        self.shared.turns.reset();
        self.shared.threads.reset();
        // SAFETY: `replay` has joined all other threads.
        unsafe { self.shared.blocks.clear() };
    }

    /// The measurements since there were these minor and major faults.
    fn outcome(self, faults: (u64, u64)) -> Outcome {
        let (minor, major) = process::faults();
        let sums = std::mem::take(&mut *locked(&self.shared.sums));
        let measured = W::measured(self.common);
        Outcome {
            calls: sums.calls,
            cpu_ns: sums.cpu_ns,
            waited_ns: sums.waited_ns,
            waits: sums.waits,
            wall_ns: sums.wall_ns,
            minor_faults: minor - faults.0,
            major_faults: major - faults.1,
            latency: measured.latency,
            checkpoints: measured.checkpoints,
            repetitions: measured.repetitions,
            max_live_bytes: measured.max_live_bytes,
            peak_rss_bytes: measured.peak_rss_bytes,
            peak_heap_bytes: measured.peak_heap_bytes,
            start_bytes: measured.start_bytes,
            ..Outcome::default()
        }
    }
}
