//! What the threads of a replay share: the job, the driver's tables, the first failure, and sums.

use std::fs::File;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use heaptoll_replay::job::Job;

use super::super::area::no_memory;
use super::super::clock::Clocks;
use super::super::tables::{Blocks, Sizes};
use super::locked::locked;
use super::threads::Threads;
use super::turns::Turns;

/// Sums over threads.
#[derive(Default)]
pub struct Sums {
    pub cpu_ns: u64,
    pub wall_ns: u64,
    pub waited_ns: u64,
    pub waits: u64,
    pub calls: u64,
}

impl Sums {
    pub fn add(&mut self, other: &Sums) {
        self.cpu_ns += other.cpu_ns;
        self.wall_ns += other.wall_ns;
        self.waited_ns += other.waited_ns;
        self.waits += other.waits;
        self.calls += other.calls;
    }
}

/// What the threads share.
pub struct Shared<const GENERATIONS: bool> {
    pub job: Job,
    pub program: File,
    pub blocks: Blocks<GENERATIONS>,
    pub sizes: Sizes,
    pub clocks: Clocks,
    pub turns: Turns,
    pub threads: Threads,
    pub sums: Mutex<Sums>,
    pub stop: AtomicBool,
    failure: Mutex<Option<String>>,
}

impl<const GENERATIONS: bool> Shared<GENERATIONS> {
    /// Makes the tables; `sizes`: whether the sizes of blocks must be known.
    pub fn new(job: Job, program: File, clocks: Clocks, sizes: bool) -> Result<Self, String> {
        let slots = job.index.slots as usize;
        let threads = job.index.streams.len();
        Ok(Shared {
            blocks: Blocks::new(slots).map_err(no_memory)?,
            sizes: Sizes::new(slots, sizes).map_err(no_memory)?,
            clocks,
            turns: Turns::new(threads),
            threads: Threads::new(threads),
            sums: Mutex::new(Sums::default()),
            stop: AtomicBool::new(false),
            failure: Mutex::new(None),
            job,
            program,
        })
    }

    /// Words of a thread's longest block.
    pub fn most_words(&self, thread: usize) -> usize {
        self.job.index.streams[thread].iter().map(|extent| extent.1 as usize).max().unwrap_or(0)
    }

    /// The first failure since the last call.
    pub fn failed(&self) -> Result<(), String> {
        match locked(&self.failure).take() {
            Some(why) => Err(why),
            None => Ok(()),
        }
    }

    /// Records a failure and stops all threads.
    pub fn fail(&self, why: String) {
        locked(&self.failure).get_or_insert(why);
        self.stop.store(true, Ordering::SeqCst);
    }

    /// Waits until all threads that have made their last call are gone.
    pub fn join_leaving(&self) {
        while self.threads.joined() < self.turns.leaving() && !self.stop.load(Ordering::Relaxed) {
            self.threads.join_done();
            std::thread::yield_now();
        }
    }
}
