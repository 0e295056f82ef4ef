//! A small tool: follows every process that registers.

use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use heaptoll_ring::{Arrival, Shared, Tap};

use crate::common::Heard;

/// A process that has been followed to its end.
pub struct Followed {
    pub arrival: Arrival,
    pub heard: Heard,
    pub missing: u64,
}

pub struct Follower {
    /// Processes that run.
    live: Vec<(Arrival, Tap, Heard, u64)>,
    pub done: Vec<Followed>,
    /// Dismiss each process when something of it has been heard.
    pub dismiss: bool,
    /// How long a program may take.
    pub patience: Duration,
    /// How long it rests after each round.
    pub rest: Duration,
    pub shared: Shared,
}

impl Follower {
    pub fn new(shared: Shared) -> Follower {
        Follower {
            shared,
            live: Vec::new(),
            done: Vec::new(),
            dismiss: false,
            patience: Duration::from_secs(100),
            rest: Duration::ZERO,
        }
    }

    /// Events of processes that run.
    pub fn heard(&self) -> usize {
        self.live.iter().map(|live| live.2.events.len()).sum()
    }

    /// One round. Whether nothing was there.
    pub fn step(&mut self, budget: usize) -> bool {
        self.shared.tick();
        for arrival in self.shared.arrivals() {
            let tap = Tap::new(&self.shared, arrival.index);
            self.live.push((arrival, tap, Heard::default(), 0));
        }
        let mut idle = true;
        let mut at = 0;
        while at < self.live.len() {
            let (_, tap, heard, missing) = &mut self.live[at];
            let drained = tap.drain(budget, heard);
            tap.check().expect("sound");
            *missing += drained.missing;
            idle &= drained.idle;
            if self.dismiss && heard.events.len() > 1000 {
                tap.dismiss();
            }
            if drained.words == 0 && tap.gone() {
                *missing += tap.end(heard).missing;
                let (arrival, _, heard, missing) = self.live.swap_remove(at);
                self.done.push(Followed { arrival, heard, missing });
                idle = false;
            } else {
                at += 1;
            }
        }
        idle
    }

    /// Follows until `child` and all who registered have ended.
    pub fn follow(&mut self, mut child: Child) -> ExitStatus {
        let begin = Instant::now();
        let mut status = None;
        loop {
            let idle = self.step(1 << 16);
            if status.is_none() {
                status = child.try_wait().expect("it is our child");
            } else if idle && self.live.is_empty() && self.shared.arrivals().is_empty() {
                break;
            }
            std::thread::sleep(self.rest);
            if idle {
                self.shared.wait(Duration::from_millis(1));
            }
            assert!(begin.elapsed() < self.patience, "stuck with {} processes", self.live.len());
        }
        status.expect("it has ended")
    }
}
