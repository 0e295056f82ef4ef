//! A collection: all locks are taken, the world is stopped, what is reachable is marked, the world is resumed. Sweeping
//! happens later, when blocks are needed.

use core::sync::atomic::Ordering;

use heaptoll_assertions::assert_internal;
use heaptoll_roots::{Buffer, NoMemory};
use heaptoll_runtime::{AbandonCause, SignalMaskGuard, thread_cpu_ns};

use crate::collector::{Collector, SPARE};
use crate::heap::Heap;
use crate::log::Reason;
use crate::misuse::LateWrite;
use crate::mode::Mode;
use crate::progress::NotCollected;
use crate::signal::unblocked;

mod accounts;
mod check;
mod generation;
mod guard;
mod incremental;
mod passes;
mod phases;
mod whole;
mod young;

impl Heap {
    /// Collects, unless another thread collected meanwhile.
    ///
    /// # Errors
    /// Why there was none; the heap grows instead.
    #[cold]
    #[inline(never)]
    pub fn collect(&self, reason: Reason) -> Result<(), NotCollected> {
        if self.is_mode(Mode::Explicit) {
            return Err(NotCollected::Mode);
        }
        // SAFETY: errno's address is valid for the calling thread.
        let errno = unsafe { *libc::__errno_location() };
        let done = self.collect_since(self.epoch(), reason);
        // SAFETY: errno's address is valid for the calling thread.
        unsafe { *libc::__errno_location() = errno };
        done
    }

    /// Collects, unless that was done since the epoch `requested`.
    pub(crate) fn collect_since(&self, requested: u32, reason: Reason) -> Result<(), NotCollected> {
        let mut collector = self.collector.lock();
        if collector.busy {
            return Err(NotCollected::Abandoned);
        }
        let is_late = self.epoch() != requested;
        // Another thread collected while this one waited for the lock; a request without memory needs all that is dead, and
        // the free places of dense spans.
        if is_late
            && (reason == Reason::Budget || reason == Reason::Memory && !collector.generations.is_aged())
        {
            return Ok(());
        }
        if collector.increments.is_active() && reason == Reason::Budget && !self.is_due() {
            // Another thread has made an increment while this one waited for the lock.
            return Ok(());
        }
        let signal_mask = SignalMaskGuard::all_but(unblocked());
        if reason != Reason::Budget {
            collector.spare = Buffer::new();
        }
        let outcome = match collector.world {
            None => self.collect_locked(&mut collector, reason),
            Some(world) => world
                .on_own_stack(&signal_mask, || self.collect_locked(&mut collector, reason))
                .unwrap_or_else(|NoMemory| {
                    let progress = self.begin(&collector, reason);
                    self.abandon(&mut collector, &progress, AbandonCause::Memory.into())
                }),
        };
        // Without it a collection may get no memory, and is abandoned then.
        let _ = collector.spare.reserve(SPARE);
        let late = self.take_late(&collector);
        // In this order: a handler that ran before, and forked, would leave its child a heap that is locked for ever.
        drop(collector);
        drop(signal_mask);
        // It may end the process, by a handler of the program's that allocates.
        late.inspect(LateWrite::report);
        outcome
    }

    /// Collects on the collector's stack, unless that can wait.
    fn collect_locked(&self, collector: &mut Collector, reason: Reason) -> Result<(), NotCollected> {
        let is_due =
            reason == Reason::Budget && !collector.increments.is_active() && collector.every.is_none();
        // What waits in mode `guard` is not resident where it is large.
        let is_due = is_due && !self.is_mode(Mode::Guard);
        if is_due && self.postpone(collector) {
            return Ok(());
        }
        let (before, ended_ns) = (self.epoch(), collector.ended_ns);
        collector.busy = true;
        collector.began_cpu_ns = thread_cpu_ns();
        self.sweep_all();
        assert_internal!(self.swept.load(Ordering::Relaxed), "all is swept before the next collection");
        if reason == Reason::Called {
            // The caller wants the collection finished, and free memory released.
            self.purge_due.store(true, Ordering::Relaxed);
        }
        let outcome = if self.is_incremental(collector, reason) {
            self.increment(collector)
        } else {
            self.collect_stopped(collector, reason)
        };
        assert_internal!(
            self.epoch() == before || self.epoch() == before.wrapping_add(1) || reason == Reason::Called,
            "a collection advances the epoch by one"
        );
        if reason == Reason::Called {
            self.sweep_all();
            assert_internal!(
                self.swept.load(Ordering::Relaxed),
                "a collection that the program calls for is finished on return"
            );
        }
        assert_internal!(collector.busy, "one collection runs at a time");
        self.count_cpu(collector, ended_ns);
        collector.busy = false;
        for warning in [collector.policy.warning(), collector.increments.warning()].into_iter().flatten() {
            warning.write();
        }
        self.report_outgrown(collector);
        outcome
    }
}
