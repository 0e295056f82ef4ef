//! A small recorder: follows every process that registers.

use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use heaptoll_alloc_ring::{Arrival, Shared, Tap};

use crate::common::Received;

/// A process that has been followed to its end.
pub struct FinishedProcess {
    pub arrival: Arrival,
    pub received: Received,
    pub missing: u64,
}

pub struct TestTool {
    /// Processes that run.
    live: Vec<(Arrival, Tap, Received, u64)>,
    pub done: Vec<FinishedProcess>,
    /// Dismiss each process when some of its events have been received.
    pub dismiss: bool,
    /// How long a program may take.
    pub patience: Duration,
    /// Events that were received of each process that stopped, then.
    pub stopped: Vec<usize>,
    /// How long it sleeps after each round.
    pub rest: Duration,
    pub shared: Shared,
}

impl TestTool {
    pub fn new(shared: Shared) -> TestTool {
        TestTool {
            shared,
            live: Vec::new(),
            done: Vec::new(),
            dismiss: false,
            patience: Duration::from_secs(100),
            stopped: Vec::new(),
            rest: Duration::ZERO,
        }
    }

    /// Events of processes that run.
    pub fn received(&self) -> usize {
        self.live.iter().map(|live| live.2.events.len()).sum()
    }

    /// Drains each process once; returns whether nothing was there.
    pub fn step(&mut self, budget: usize) -> bool {
        self.shared.tick();
        for arrival in self.shared.arrivals() {
            let tap = Tap::new(&self.shared, arrival.index);
            self.live.push((arrival, tap, Received::default(), 0));
        }
        let mut idle = true;
        let mut at = 0;
        while at < self.live.len() {
            let (_, tap, received, missing) = &mut self.live[at];
            let drained = tap.drain(budget, received);
            tap.check().expect("sound");
            *missing += drained.missing;
            idle &= drained.idle;
            if tap.is_stopped() {
                while tap.drain(budget, received).words > 0 {}
                self.stopped.push(received.events.len());
                tap.go_on();
            }
            if self.dismiss && received.events.len() > 1000 {
                tap.dismiss();
            }
            if drained.words == 0 && tap.gone() {
                *missing += tap.end(received).missing;
                let (arrival, _, received, missing) = self.live.swap_remove(at);
                self.done.push(FinishedProcess { arrival, received, missing });
                idle = false;
            } else {
                at += 1;
            }
        }
        idle
    }

    /// Follows until `child` and all registered processes have ended.
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
