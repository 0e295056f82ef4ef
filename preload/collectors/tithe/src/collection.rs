//! A collection: all locks are taken, the world is stopped, what is reachable is marked, the world is resumed. Sweeping
//! happens later, when blocks are needed.

use core::sync::atomic::Ordering;

use heaptoll_assertions::{assert_expensive, assert_internal, assert_sound};
use heaptoll_marking::KEPT;
use heaptoll_roots::{StopError, UnstoppedThread};
use heaptoll_runtime::{
    Collected, Message, Phase, Reason as EventReason, SignalMaskGuard, now_ns, thread_cpu_ns,
};

use crate::class::UNIT;
use crate::collector::{ADDRESS_PERCENT_MIN, Collector};
use crate::heap::Heap;
use crate::log::{self, Abandoned, Cause, Reason, Report};
use crate::markers::Roots;
use crate::mode::Mode;
use crate::policy::Cycle;
use crate::signal::UNBLOCKED;

/// Why there was no collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotCollected {
    /// The mode is `explicit`.
    Mode,
    /// A thread did not stop, the system did not give what is needed, or a collection is running already.
    Abandoned,
}

/// The times of a collection, ns.
#[derive(Debug, Clone, Copy, Default)]
struct Times {
    started: u64,
    stopped: u64,
    marked: u64,
    swept: u64,
}

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
        let done = self.collect_once(reason);
        // SAFETY: errno's address is valid for the calling thread.
        unsafe { *libc::__errno_location() = errno };
        done
    }

    fn collect_once(&self, reason: Reason) -> Result<(), NotCollected> {
        let before = self.epoch();
        let mut collector = self.collector.lock();
        if collector.busy {
            return Err(NotCollected::Abandoned);
        }
        if reason != Reason::Called && self.epoch() != before {
            // Another thread collected while this one waited for the lock.
            return Ok(());
        }
        if reason == Reason::Budget && collector.every.is_none() && self.postpone(&mut collector) {
            return Ok(());
        }
        collector.busy = true;
        let signal_mask = SignalMaskGuard::all_but(&UNBLOCKED);
        let cpu_ns = thread_cpu_ns();
        self.sweep_all();
        assert_internal!(self.swept.load(Ordering::Relaxed), "all is swept before the next collection");
        if reason == Reason::Called {
            // The caller wants the collection finished, and free memory released.
            self.purge_due.store(true, Ordering::Relaxed);
        }
        let outcome = self.collect_stopped(&mut collector, reason);
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
        self.reporter.collector_cpu(thread_cpu_ns().saturating_sub(cpu_ns));
        collector.busy = false;
        let warning = collector.policy.warning();
        drop(collector);
        drop(signal_mask);
        if let Some(warning) = warning {
            warning.write();
        }
        outcome
    }

    fn collect_stopped(&self, collector: &mut Collector, reason: Reason) -> Result<(), NotCollected> {
        let number = collector.statistics.collections + 1;
        let mut times = Times { started: now_ns(), ..Times::default() };
        let mutator_ns = times.started.saturating_sub(collector.ended_ns);
        let allocated_since_gc = self.allocated_since_gc.load(Ordering::Relaxed);
        let before = self.live_bytes();
        self.reporter.collection_starts(number, event_reason(reason));
        self.reporter.phase(number, Phase::Stop);
        let (mut guards, stopped) = match self.stop_world(collector.world) {
            Ok(locked_and_stopped) => locked_and_stopped,
            Err(error) => {
                self.abandon(collector, reason, cause(&error), before, times.started);
                return Err(NotCollected::Abandoned);
            }
        };
        times.stopped = now_ns();
        let threads = stopped.as_ref().map_or(1, |stopped| stopped.threads());
        if !collector.stack.prepare() {
            drop(stopped);
            drop(guards);
            self.abandon(collector, reason, Cause::Memory, before, times.started);
            return Err(NotCollected::Abandoned);
        }
        let epoch = self.epoch().wrapping_add(1);
        self.reporter.phase(number, Phase::Mark);
        assert_expensive!(self.is_unmarked(), "no block is marked when marking begins");
        assert_sound!(self.check_locked(&guards));
        let cached = self.mark_cached(&guards);
        let markers = collector.markers.prepare(self.live_after_gc.load(Ordering::Relaxed));
        let excluded_ranges = self.excluded_ranges(collector, &guards);
        let Collector { added, markers: workers, stack, .. } = &mut *collector;
        let roots = Roots { added, stopped: stopped.as_ref(), excluded_ranges: &excluded_ranges };
        // SAFETY: the world is stopped, or only added roots are read, in tests; `guards` are the locks, and `prepare` has
        // returned `markers`.
        let marked = unsafe { workers.mark(markers, &self.reservation, stack, epoch, &roots) };
        let Ok(marked) = marked else {
            // Marks are missing: nothing may be reclaimed by them.
            self.clear_marks();
            drop(stopped);
            drop(guards);
            self.abandon(collector, reason, Cause::Roots, before, times.started);
            return Err(NotCollected::Abandoned);
        };
        wipe_stack();
        self.reporter.collector_cpu(marked.helpers_cpu_ns);
        let live = marked.live + cached;
        assert_internal!(
            live <= guards.units.used_bytes(&self.reservation),
            "no more is live than the units of spans and large blocks hold"
        );
        assert_expensive!(self.marked_bytes() >= live, "what is counted as live is marked");
        assert_internal!(collector.stack.is_empty(), "marking ends with an empty mark stack");
        times.marked = now_ns();
        guards.units.epoch = epoch;
        // A collection that was requested, or that runs on memory pressure, reclaims in any case.
        let reclaims = reason != Reason::Budget || number.is_multiple_of(collector.reclaim);
        let (kept, reclaimed) = if reclaims {
            assert_internal!(self.swept.load(Ordering::Relaxed), "all is swept before the next collection");
            self.epoch.store(epoch, Ordering::Relaxed);
            self.swept.store(false, Ordering::Release);
            for spans in &mut guards.spans_by_class {
                spans.reset();
            }
            (live, before.saturating_sub(live))
        } else {
            self.clear_marks();
            assert_expensive!(self.is_unmarked(), "a collection that reclaims nothing leaves no mark");
            (self.live_bytes(), 0)
        };
        assert_sound!(self.check_locked(&guards));
        times.swept = times.marked;
        if collector.eager && reclaims {
            self.reporter.phase(number, Phase::Sweep);
            self.sweep_all_locked(&mut guards);
            self.report_used(&guards.units);
            assert_sound!(self.check_locked(&guards));
            times.swept = now_ns();
        }
        assert_internal!(
            times.started <= times.stopped && times.stopped <= times.marked && times.marked <= times.swept,
            "the times of a collection are in order"
        );
        let budget = collector.policy.next(&Cycle {
            live,
            allocated: usize::try_from(allocated_since_gc).unwrap_or(0),
            roots: marked.roots,
            mark_ns: times.marked - times.started,
            stop_ns: times.stopped - times.started,
            mutator_ns,
            reclaimed,
            mode: if self.is_mode(Mode::Collect) { Mode::Collect } else { Mode::Hybrid },
        });
        self.live_after_gc.store(kept, Ordering::Relaxed);
        self.reclaimed_by_gc.store(reclaimed, Ordering::Relaxed);
        self.allocated_since_gc.store(0, Ordering::Relaxed);
        self.large_since_gc.store(0, Ordering::Relaxed);
        collector.last_budget = budget;
        if self.is_mode(Mode::Collect) {
            guards.units.keep = budget;
        }
        let allowed = live.saturating_add(budget);
        let scaled =
            (allowed / ADDRESS_PERCENT_MIN).saturating_mul(collector.address_percent).max(allowed) - live;
        assert_internal!(scaled >= budget.min(usize::MAX - live), "a budget in addresses is no smaller");
        let scaled_budget = if collector.every.is_some() { budget } else { scaled };
        self.set_budget(collector, scaled_budget, 0);
        let auxiliary_bytes = guards.caches.mapped_bytes() + collector.mapped_bytes();
        if self.auxiliary_bytes.swap(auxiliary_bytes, Ordering::Relaxed) != auxiliary_bytes {
            self.report_size(&guards.units);
        }
        self.reporter.phase(number, Phase::Resume);
        drop(stopped);
        let resumed = now_ns();
        collector.stack.shrink(KEPT);
        let pause_ns = resumed - times.started;
        let statistics = &mut collector.statistics;
        statistics.collections = number;
        statistics.pause_total_ns += pause_ns;
        statistics.pause_max_ns = statistics.pause_max_ns.max(pause_ns);
        statistics.collected_bytes += reclaimed as u64;
        assert_internal!(
            statistics.pause_max_ns <= statistics.pause_total_ns,
            "the longest pause is one of those that are added up"
        );
        self.reporter.collection_ends(Collected {
            number,
            live_bytes: live,
            collected_bytes: reclaimed,
            pause_ns,
        });
        drop(guards);
        collector.ended_ns = resumed;
        let ambiguous = self.explain(collector);
        if let Some(sink) = &collector.log {
            log::write(
                sink,
                &Report {
                    number,
                    reason,
                    heap_before: before,
                    heap_after: self.reservation.units() * UNIT,
                    live,
                    reclaimed,
                    ambiguous,
                    roots_bytes: marked.roots,
                    budget,
                    threads,
                    markers: marked.markers,
                    stop_ns: times.stopped - times.started,
                    roots_ns: 0,
                    mark_ns: times.marked - times.stopped,
                    sweep_ns: times.swept - times.marked,
                    pause_ns,
                },
            );
        }
        Ok(())
    }

    /// Abandons a collection: reports the first, and lets the heap grow.
    fn abandon(&self, collector: &mut Collector, reason: Reason, cause: Cause, before: usize, started: u64) {
        collector.statistics.abandoned += 1;
        let budget = collector.policy.abandoned();
        self.set_budget(collector, budget, self.allocated_since_gc.load(Ordering::Relaxed));
        if !core::mem::replace(&mut collector.warned, true) {
            let line = Message::new().text("tithe: ");
            match &cause {
                Cause::Thread { tid, name, .. } => {
                    let length = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
                    let name = core::str::from_utf8(&name[..length]).unwrap_or("?");
                    let line = line.text("thread ").number(*tid as u64).text(" (").text(name);
                    line.text(") did not stop for a collection in time (it may block all signals); the heap grows instead")
                }
                Cause::Memory => line.text("no memory for a collection; the heap grows instead"),
                Cause::Vfork => line.text("no collection in a child of vfork; the heap grows instead"),
                Cause::Threads | Cause::Roots => {
                    line.text("/proc/self is not readable, so there is no collection; the heap grows instead")
                }
            }
            .write();
        }
        if let Some(sink) = &collector.log {
            log::write_abandoned(
                sink,
                &Abandoned {
                    number: collector.statistics.abandoned,
                    reason,
                    cause,
                    heap_before: before,
                    waited_ns: now_ns().saturating_sub(started),
                },
            );
        }
    }
}

/// Clears what marking has left on the stack below. The program may have mapped this stack itself, so that it is read
/// as a whole: addresses of blocks there would keep these alive.
#[inline(never)]
fn wipe_stack() {
    let mut below = [0_u64; 2048];
    core::hint::black_box(&mut below);
}

const fn event_reason(reason: Reason) -> EventReason {
    match reason {
        Reason::Budget => EventReason::Allocation,
        Reason::Memory => EventReason::Pressure,
        Reason::Called => EventReason::Requested,
    }
}

fn cause(error: &StopError) -> Cause {
    match *error {
        StopError::Thread(UnstoppedThread { tid, name, state }) => {
            Cause::Thread { tid, name, state: u8::try_from(state).unwrap_or(b'?') }
        }
        StopError::NoMemory => Cause::Memory,
        StopError::NotOurProcess => Cause::Vfork,
        StopError::ProcUnreadable | StopError::NoSignal => Cause::Threads,
    }
}
