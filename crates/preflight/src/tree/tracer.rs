//! A command on its way to its end, its limit, or a cancellation: events and output are taken while it runs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::output::Output;
use super::processes::Processes;
use super::run::{Ending, Run};
use crate::effects::Effects;
use crate::plan::Plan;
use crate::refusal::Refusal;

/// How much longer than its limit a command may take until its first process is loaded.
const LOADING: Duration = Duration::from_secs(20);
/// How long a stopped command has between SIGTERM and SIGKILL, and descendants after the command's own end.
const GRACE: Duration = Duration::from_millis(500);
/// When `enough` is first called; then after twice that time, and so on, for the call may take a while.
const FIRST_POLL: Duration = Duration::from_millis(100);

/// A command that was started.
pub struct Tracer<'a> {
    plan: &'a Plan<'a>,
    started: Instant,
    output: Output,
    pub processes: Processes<'a>,
}

impl<'a> Tracer<'a> {
    pub fn new(plan: &'a Plan<'a>, root: i32, traced: bool, output: Output) -> Tracer<'a> {
        let effects = plan.watch.filter(|_| traced).map(|watch| Effects::except_in(&watch.exempt));
        Tracer {
            plan,
            started: Instant::now(),
            output,
            processes: Processes::new(root, traced, effects, plan.admit),
        }
    }

    /// Serves events until the tree is gone.
    pub fn follow(mut self, cancel: &AtomicBool) -> Result<Run, Refusal> {
        let mut stopping: Option<Instant> = None;
        let mut stopped = false;
        let mut root_gone: Option<Instant> = None;
        let mut question = FIRST_POLL;
        loop {
            let busy = self.processes.serve() | self.output.drain();
            if cancel.load(Ordering::Relaxed) {
                self.processes.kill_all();
                self.processes.reap();
                return Err(Refusal::Cancelled);
            }
            let ended = self.processes.ending.is_some();
            if self.started.elapsed() > question && !ended {
                question *= 2;
                self.processes.images.sample_all_memory();
                if (self.plan.enough)() {
                    stopped = true;
                    break;
                }
            }
            if ended {
                let since = *root_gone.get_or_insert_with(Instant::now);
                let followed = self.processes.traced && self.processes.are_live();
                if !followed || since.elapsed() > GRACE || stopped {
                    break;
                }
            } else if let Some(since) = stopping {
                if since.elapsed() > GRACE {
                    break;
                }
            } else if self.over() {
                stopped = true;
                stopping = Some(Instant::now());
                self.processes.terminate();
            }
            if !busy {
                self.wait_a_little();
            }
        }
        Ok(self.end(stopped))
    }

    /// Ends what is left of the tree, and sums up.
    fn end(mut self, stopped: bool) -> Run {
        let elapsed = self.started.elapsed();
        self.output.drain();
        self.processes.images.settle_all();
        self.processes.kill_all();
        self.processes.reap();
        let Processes { root, traced, ending, peak_bytes, stack_is_full, images, effects, .. } =
            self.processes;
        let record = images.into_record();
        Run {
            ending: if stopped { Ending::Stopped } else { ending.unwrap_or(Ending::Stopped) },
            stack_was_full: stack_is_full && ending == Some(Ending::Killed(libc::SIGSEGV)),
            pid: root,
            stderr: self.output.stderr(),
            images: record.images,
            changes: record.changes,
            traced,
            peak_bytes,
            resident_bytes: record.resident_bytes,
            together_bytes: record.together_bytes,
            watched: effects.map(Effects::watched),
            elapsed,
        }
    }

    /// Whether the command has had its time. On a busy machine even the loader may need longer: one that has shown
    /// nothing yet gets more, since silence would be taken for a program that no manager can reach.
    fn over(&self) -> bool {
        let (plan, elapsed) = (self.plan, self.started.elapsed());
        let hurried = plan.hurry.is_some_and(|hurry| hurry.load(Ordering::Relaxed));
        (hurried || elapsed > plan.limit) && (elapsed > plan.limit + LOADING || (plan.begun)())
    }

    /// Sleeps until there may be something to do. Where an event has just come, the next may follow soon.
    fn wait_a_little(&self) {
        if self.processes.last_event.elapsed() < Duration::from_millis(2) {
            std::thread::sleep(Duration::from_micros(20));
        } else {
            self.output.wait();
        }
    }
}
