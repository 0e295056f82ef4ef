//! Incremental collections: marking in increments, between which the program runs on. `TITHE_PAUSE` asks for them, and long
//! full collections where there are generations. [`crate::increments`] decides when there is one, and how long its
//! increments are; [`passes`](super::passes) has what they do.
//!
//! Between two increments a mark states that a word which was read points to the place, or did. Where a block is taken
//! there it is marked, and so is one that will be: what it holds was not read, so that its units are read again (as the
//! blocks that are born old; [`crate::ages`]). Blocks on the mark stack may be freed meanwhile: what is there then is read
//! all the same, which finds too much at most. Whatever becomes reachable in a marked block was written there, to a page
//! whose writes are recorded, or that lies in memory which the heap has grown into and that counts as written.

use core::sync::atomic::Ordering;

use heaptoll_roots::StoppedWorld;
use heaptoll_runtime::{AbandonCause, Phase, now_ns, single_threaded, thread_cpu_ns};

use super::accounts::own_time;
use super::passes::Interrupted;
use super::whole::Stop;
use crate::collector::Collector;
use crate::generations::Generation;
use crate::heap::{Heap, HeapGuards};
use crate::increments::{Increments, Stage};
use crate::log::Reason;
use crate::progress::{Found, NotCollected, Progress};
use crate::reservation::AHEAD;
use crate::span::UnitIndex;

/// How long an increment may go on, and what it has begun.
struct Increment {
    deadline: u64,
    pass_deadline: u64,
    /// A pass has begun in this increment: when nothing is left to mark, nothing was written since.
    has_begun_pass: bool,
    /// It has marked: there may be no time left for a pass.
    has_marked: bool,
}

impl Increment {
    /// A pass has begun, which has read the roots.
    fn on_pass(&mut self, increments: &Increments) {
        self.has_begun_pass = true;
        self.deadline = increments.deadline_after_roots(self.deadline, now_ns());
    }
}

impl Heap {
    /// Whether the next collection that is due is incremental.
    pub(super) fn is_incremental(&self, collector: &Collector, reason: Reason) -> bool {
        let Collector { increments, generations, .. } = collector;
        let is_recorded = generations.tracker.is_available() && !generations.is_backing_off();
        let facts = self.facts(reason);
        let is_needed = || {
            if increments.of_full {
                increments.is_needed(facts.live) && generations.choose(&facts) == Generation::Full
            } else {
                increments.is_needed(self.live_bytes())
            }
        };
        reason == Reason::Budget && (increments.is_active() || is_recorded && is_needed())
    }

    /// An increment: begins a collection, goes on with it, or ends it.
    pub(super) fn increment(&self, collector: &mut Collector) -> Result<(), NotCollected> {
        let Stop { mut progress, guards, stopped } = self.begin_stopped(collector, Reason::Budget)?;
        self.reporter.phase(progress.number, Phase::Mark);
        if collector.generations.check && self.reservation.units() > collector.increments.units + AHEAD {
            // A word that points to where there was no heap is no address, but the comparison takes it for one.
            self.forget_increments(collector);
        }
        let before = collector.increments.done();
        let advanced = self.advance(collector, &guards, stopped.as_ref(), &progress);
        progress.times.marked = now_ns();
        match advanced {
            Ok(Some(found)) => {
                self.finish(collector, guards, stopped, progress, &found);
                collector.increments.end(collector.ended_ns - progress.times.started);
                Ok(())
            }
            Ok(None) => {
                let bytes = collector.increments.done() - before;
                self.pause(collector, stopped, &progress, bytes);
                Ok(())
            }
            Err(interrupted) => {
                self.forget_increments(collector);
                self.pause(collector, stopped, &progress, 0);
                drop(guards);
                match interrupted {
                    Interrupted::Untracked(cause) => {
                        collector.generations.on_untracked(cause);
                        if !cause.may_pass() {
                            collector.increments.disable();
                        }
                        self.collect_stopped(collector, Reason::Budget)
                    }
                    Interrupted::Roots(error) => self.abandon(collector, &progress, error.into()),
                    Interrupted::Memory => self.abandon(collector, &progress, AbandonCause::Memory.into()),
                }
            }
        }
    }

    /// Has the program go on after an increment that has marked and read so many bytes, and sets when the next one is due.
    fn pause(
        &self,
        collector: &mut Collector,
        stopped: Option<StoppedWorld<'static>>,
        progress: &Progress,
        bytes: usize,
    ) {
        self.reporter.phase(progress.number, Phase::Resume);
        drop(stopped);
        let pause_ns = now_ns() - progress.times.started;
        let marking_ns = progress.times.marked - progress.times.stopped;
        let allocated = self.allocated_since_gc.load(Ordering::Relaxed);
        let since = usize::try_from(allocated).unwrap_or(0);
        collector.increments.own_ns +=
            own_time(pause_ns, collector.began_cpu_ns, thread_cpu_ns(), single_threaded());
        let step = collector.increments.end_increment(bytes, marking_ns, pause_ns, since);
        self.count_pause(collector, pause_ns);
        self.set_budget(collector, step, allocated);
    }

    /// Marks and reads until the pause is over, or all is found: then returns it.
    fn advance(
        &self,
        collector: &mut Collector,
        guards: &HeapGuards<'_>,
        stopped: Option<&StoppedWorld<'static>>,
        progress: &Progress,
    ) -> Result<Option<Found>, Interrupted> {
        let increments = &collector.increments;
        let began = progress.times.stopped;
        let mut increment = Increment {
            deadline: increments.deadline(began),
            pass_deadline: increments.pass_deadline(began),
            has_begun_pass: false,
            has_marked: increments.stage != Stage::Marking || !collector.stack.is_empty(),
        };
        if !increments.is_active() {
            self.begin_marking(collector, progress)?;
        }
        if let Stage::Recording { unit } = collector.increments.stage {
            // Also where it goes on: the process may be the child of a fork by now, of whose memory nothing is recorded.
            let first = self.addresses(0..self.recorded_to(collector, unit) as UnitIndex);
            collector.generations.tracker.scan(first)?;
        } else {
            collector.generations.tracker.extend(self.all_units(guards).end)?;
        }
        loop {
            if let Some(is_finished) = self.step(collector, guards, stopped, &mut increment)? {
                return if is_finished { self.end_increments(collector, guards).map(Some) } else { Ok(None) };
            }
            if collector.increments.is_interrupted() && now_ns() > increment.deadline {
                return Ok(None);
            }
        }
    }

    /// A small part of an increment; returns whether all is found, if the increment ends with it.
    fn step(
        &self,
        collector: &mut Collector,
        guards: &HeapGuards<'_>,
        stopped: Option<&StoppedWorld<'static>>,
        increment: &mut Increment,
    ) -> Result<Option<bool>, Interrupted> {
        match collector.increments.stage {
            Stage::Idle => return Ok(Some(false)),
            Stage::Recording { unit } => {
                if self.record_some(collector, unit)? {
                    collector.increments.begin_pass();
                    self.gather_roots(collector, guards, stopped)?;
                    increment.on_pass(&collector.increments);
                }
            }
            Stage::Rereading { unit } => self.reread_some(collector, guards, unit),
            Stage::Marking => {
                if self.mark_some(collector, guards) {
                    if increment.has_begun_pass {
                        return Ok(Some(true));
                    }
                    if increment.has_marked && now_ns() > increment.pass_deadline {
                        return Ok(Some(false));
                    }
                    self.begin_pass(collector, guards, stopped)?;
                    increment.on_pass(&collector.increments);
                }
                increment.has_marked = true;
            }
        }
        Ok(None)
    }
}
