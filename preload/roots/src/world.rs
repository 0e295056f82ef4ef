//! The world of a collector: all threads of its process, which it stops and resumes.
//!
//! It lists the threads, requests each to stop ([`crate::handshake`]), and waits until all have replied or ended.

use core::ffi::c_int;
use core::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use heaptoll_assertions::{assert_expensive, assert_internal};
use heaptoll_runtime::{AbandonCause, SignalMaskGuard};

use crate::buffer::NoMemory;
use crate::files;
use crate::handshake::Handshake;
use crate::kernel;
use crate::own_stack::OwnStack;
use crate::proc::{self, ThreadState};
use crate::registers;
use crate::restart;
use crate::scratch::{Scratch, ScratchBuffers};
use crate::signal::{self, DEFAULT_SIGNAL, SendResult};
use crate::stopped::{StoppedWorld, whereabouts};
use crate::tasks::{Tasks, TasksError};
use crate::thread::{Phase, Record};

/// How many threads may be exempt from stops.
const EXEMPT_MAX: usize = 64;

/// The first and the longest interval between two polls of threads that have not stopped, microseconds.
const FIRST_POLL_US: u64 = 100;
const LONGEST_POLL_US: u64 = 10_000;
/// After this time a signal that a thread has not taken is suspected to be lost, and a parent of vfork is not waited for
/// any longer, microseconds.
const LOST_US: u64 = 20_000;

/// Readings of the thread list that may seem incomplete without showing a new thread.
const MISMATCHES_MAX: u32 = 100;

/// A thread that did not stop in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnstoppedThread {
    pub tid: i32,
    /// Its name, padded with zero bytes.
    pub name: [u8; proc::NAME],
    /// The letter of `proc(5)`: `D` in uninterruptible sleep (or a parent of vfork), `t` held by a debugger; a thread
    /// in state `R` or `S` has the signal blocked. `?`: cannot be read.
    pub state: char,
}

/// Why the world did not stop. Everything runs again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopError {
    /// A thread did not stop in time: grow instead, try again later.
    Thread(UnstoppedThread),
    /// A thread waits for its child of vfork, which may wait for a lock that the caller holds: let the child go on.
    Vfork(UnstoppedThread),
    /// No memory for a record of each thread.
    NoMemory,
    /// This process is not the one that the world was started in: a child of vfork or clone, or of a fork after which
    /// [`World::after_fork_in_child`] was not called, as of `_Fork`. Or another thread collects already.
    NotOurProcess,
    /// No file descriptor is free for `/proc/self/task`: there may be one at the next stop.
    NoDescriptor,
    /// `/proc/self/task` cannot be opened (no `/proc`), or lists another namespace's threads.
    ProcUnreadable,
    /// The signal's handler cannot be installed: there is no such real-time signal.
    NoSignal,
    /// The signal cannot be queued: the user has no place for more (`RLIMIT_SIGPENDING`).
    NoQueue,
}

impl StopError {
    /// Whether a thread may stop after all, when it has had more time or the locks that it waits for.
    pub fn may_pass(&self) -> bool {
        matches!(self, StopError::Thread(_) | StopError::NoQueue)
    }

    /// The cause to report.
    pub fn cause(&self) -> AbandonCause {
        match self {
            StopError::Thread(_) | StopError::Vfork(_) => AbandonCause::Thread,
            StopError::NoMemory => AbandonCause::Memory,
            StopError::NotOurProcess => AbandonCause::Process,
            StopError::NoDescriptor => AbandonCause::Descriptors,
            StopError::ProcUnreadable => AbandonCause::Threads,
            StopError::NoSignal => AbandonCause::Signal,
            StopError::NoQueue => AbandonCause::Queue,
        }
    }
}

impl From<NoMemory> for StopError {
    fn from(_: NoMemory) -> StopError {
        StopError::NoMemory
    }
}

impl From<TasksError> for StopError {
    fn from(failure: TasksError) -> StopError {
        match failure {
            TasksError::NoMemory => StopError::NoMemory,
            TasksError::NoDescriptor => StopError::NoDescriptor,
            TasksError::Unreadable => StopError::ProcUnreadable,
        }
    }
}

/// All threads of the process. A collector has one, a static.
pub struct World {
    patience_ms: AtomicU32,
    handshake: Handshake,
    /// Threads that stops leave running, 0 for none.
    exempt: [AtomicI32; EXEMPT_MAX],
    scratch: Scratch,
    own_stack: OwnStack,
}

impl World {
    /// A world that has not started.
    pub const fn new() -> World {
        World {
            patience_ms: AtomicU32::new(0),
            handshake: Handshake::new(),
            exempt: [const { AtomicI32::new(0) }; EXEMPT_MAX],
            scratch: Scratch::new(),
            own_stack: OwnStack::new(),
        }
    }

    /// Makes this process the world's, and installs the signal's handler. Called once, before all else.
    ///
    /// `signal` is a real-time signal, 32 to 64, or `None` for [`DEFAULT_SIGNAL`]. `patience_ms` is how long a stop
    /// waits for the last thread, ms. The process may use so many `processors`.
    ///
    /// The first [`World::stop`] of a process with several threads reports a signal that is unavailable.
    pub fn start(&'static self, signal: Option<c_int>, patience_ms: u32, processors: usize) {
        let signal = signal.unwrap_or(DEFAULT_SIGNAL);
        assert_internal!(self.handshake.epoch() & 1 == 0, "a world starts while its threads run");
        self.handshake.signal.store(signal, Ordering::Relaxed);
        self.patience_ms.store(patience_ms, Ordering::Relaxed);
        files::begin();
        self.handshake.process.store(kernel::process(), Ordering::Relaxed);
        self.handshake.publish(processors);
        registers::prepare();
        if signal::install(signal).is_ok() {
            restart::learn(|| signal::take_one(signal));
        }
    }

    /// Makes this process the world's, in the child of a fork, which the other threads are not in.
    pub fn after_fork_in_child(&self) {
        self.handshake.process.store(kernel::process(), Ordering::Relaxed);
        self.handshake.records.forget_all();
        for slot in &self.exempt {
            slot.store(0, Ordering::Relaxed);
        }
        self.handshake.resume();
        self.handshake.exec_gate.reset();
        self.scratch.free();
        self.own_stack.after_fork_in_child();
        assert_expensive!(
            self.handshake.records.is_free(),
            "no record of a forked child belongs to a thread"
        );
    }

    /// The patience that [`World::start`] was given, ms.
    pub fn patience_ms(&self) -> u32 {
        self.patience_ms.load(Ordering::Relaxed)
    }

    /// Leaves a thread running in all stops: one of the collector's own, which keeps no pointers of the program. At
    /// most 64; false: no slot is free.
    pub fn exempt_thread(&self, tid: i32) -> bool {
        self.exempt
            .iter()
            .any(|place| place.compare_exchange(0, tid, Ordering::Relaxed, Ordering::Relaxed).is_ok())
    }

    /// Ends [`World::exempt_thread`]; called by the thread before it ends.
    pub fn end_exemption(&self, tid: i32) {
        for place in &self.exempt {
            let _ = place.compare_exchange(tid, 0, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// Runs a collection, or what else needs much of a stack, on a stack of the world's own. Called by the thread that may
    /// stop the world, which blocks all signals but a few.
    ///
    /// # Errors
    /// [`NoMemory`] for the stack: `action` was not run.
    pub fn on_own_stack<R>(
        &self,
        blocked: &SignalMaskGuard,
        action: impl FnOnce() -> R,
    ) -> Result<R, NoMemory> {
        self.own_stack.run(Some(blocked), action)
    }

    /// The stack pointer of the thread that runs on the world's own stack as it has left that of the program; 0: no thread
    /// does.
    pub fn program_stack(&self) -> usize {
        self.own_stack.left()
    }

    /// Stops all other threads of the process, until the result is dropped. Called by one thread at a time, which holds
    /// all locks under which the others must not be stopped. The caller's signals stay pending meanwhile.
    ///
    /// # Errors
    /// [`StopError`]: the cause; everything runs on.
    pub fn stop(&self) -> Result<StoppedWorld<'_>, StopError> {
        self.stop_within(self.patience_ms.load(Ordering::Relaxed))
    }

    /// As [`World::stop`], with its own patience, ms. The C library frees memory with all signals blocked when a thread
    /// ends: a thread that waits there for a lock which the caller holds does not respond, so the caller releases it
    /// and tries again.
    ///
    /// # Errors
    /// As [`World::stop`].
    pub fn stop_within(&self, patience_ms: u32) -> Result<StoppedWorld<'_>, StopError> {
        let process = kernel::process();
        if process != self.handshake.process.load(Ordering::Relaxed) {
            return Err(StopError::NotOurProcess);
        }
        let mut scratch = self.scratch.take().ok_or(StopError::NotOurProcess)?;
        // A handler of the program that ran here now might wait for another thread, or never return.
        let signal_mask = (!self.own_stack.is_undisturbed()).then(|| SignalMaskGuard::all_but(&[]));
        let closed = self.handshake.exec_gate.close(patience_ms, self.patience_ms()).map_err(unstopped)?;
        // Dropped, also where the stop fails, it resumes the threads, lets them exec, frees the buffers and unblocks the
        // signals.
        let threads = self.halt(process, &mut scratch, patience_ms);
        let mut stopped = StoppedWorld::new(
            &self.handshake,
            &self.own_stack,
            closed,
            scratch,
            whereabouts(self),
            signal_mask,
        );
        stopped.threads = threads?;
        Ok(stopped)
    }

    /// Stops the others; returns the number of stopped threads, the caller included.
    fn halt(&self, process: i32, scratch: &mut ScratchBuffers, patience_ms: u32) -> Result<usize, StopError> {
        let epoch = self.handshake.begin();
        let tasks = Tasks::open()?;
        if !tasks.is_of_one() {
            self.halt_others(process, epoch, &tasks, scratch, patience_ms)?;
        }
        self.handshake.records.forget_unseen(epoch);
        assert_expensive!(self.handshake.records.has_each_thread_once(), "a thread has one record");
        let standing = self.handshake.records.iter().filter(|(_, record)| record.registers(epoch).is_some());
        Ok(1 + standing.count())
    }

    /// Stops the others that are listed.
    fn halt_others(
        &self,
        process: i32,
        epoch: u32,
        tasks: &Tasks,
        scratch: &mut ScratchBuffers,
        patience_ms: u32,
    ) -> Result<(), StopError> {
        let caller = kernel::thread();
        let mut deadline = None;
        let mut requested = 0;
        let mut mismatches = 0;
        loop {
            // The kernel ends its list early when the thread ends that it has just listed. The number of threads shows
            // whether it has: it is read before, since a thread that was missed was there then, and one that began
            // after is new to this stop. Where numbers never agree, this kernel counts otherwise.
            let count = tasks.count();
            tasks.read(&mut scratch.tids, &mut scratch.entries)?;
            let tids = scratch.tids.as_slice();
            let complete = count == Some(tids.len()) || mismatches == MISMATCHES_MAX;
            if !tids.contains(&caller) || !tids.contains(&process) {
                if complete {
                    return Err(StopError::ProcUnreadable);
                }
                mismatches += 1;
                continue;
            }
            let (mut hint, mut fresh) = (0, 0);
            for &tid in tids {
                if tid == caller || self.is_exempt(tid) {
                    continue;
                }
                let index = self.handshake.records.of(tid, hint)?;
                hint = index + 1;
                let Some(record) = self.handshake.records.get(index) else { continue };
                assert_internal!(
                    record.tid.load(Ordering::Relaxed) == tid,
                    "a thread is stopped by its own record"
                );
                if self.needs_request(record, epoch) {
                    if requested == 0 {
                        signal::install(self.signal()).map_err(|_| StopError::NoSignal)?;
                    }
                    requested += 1;
                    fresh += 1;
                    self.request_stop(process, index, record, epoch);
                }
            }
            if fresh == 0 && complete {
                break;
            }
            if fresh == 0 {
                mismatches += 1;
                continue;
            }
            mismatches = 0;
            let deadline = *deadline.get_or_insert_with(|| kernel::now_us() + u64::from(patience_ms) * 1000);
            self.handshake.await_replies(requested);
            self.wait_for_all(process, epoch, deadline)?;
            assert_expensive!(
                self.handshake
                    .records
                    .iter()
                    .all(|(_, record)| record.state.load(Ordering::SeqCst) != Phase::Requested.of(epoch)),
                "no thread is waited for when all have stopped"
            );
        }
        assert_expensive!(
            self.handshake.records.iter().all(|(_, record)| {
                let tid = record.tid.load(Ordering::Relaxed);
                record.registers(epoch).is_none() || tid != 0 && tid != caller && !self.is_exempt(tid)
            }),
            "a thread that is stopped is another one, and not exempt"
        );
        Ok(())
    }

    fn signal(&self) -> c_int {
        self.handshake.signal.load(Ordering::Relaxed)
    }

    fn is_exempt(&self, tid: i32) -> bool {
        self.exempt.iter().any(|slot| slot.load(Ordering::Relaxed) == tid)
    }

    /// Whether a listed thread is new in this epoch, or was thought to have ended.
    fn needs_request(&self, record: &Record, epoch: u32) -> bool {
        let known = record.seen.swap(epoch, Ordering::Relaxed) == epoch;
        let gone = record.state.load(Ordering::Relaxed) == Phase::Gone.of(epoch);
        (!known || gone) && !record.skipped.load(Ordering::Relaxed)
    }

    /// Requests a thread to stop, by a signal if none is on its way.
    fn request_stop(&self, process: i32, index: u32, record: &Record, epoch: u32) {
        assert_internal!(
            record.state.load(Ordering::SeqCst) != Phase::Stopped.of(epoch),
            "a thread is requested to stop before it does"
        );
        assert_internal!(
            record.seen.load(Ordering::Relaxed) == epoch,
            "a thread that is requested to stop is listed in this stop"
        );
        record.state.store(Phase::Requested.of(epoch), Ordering::SeqCst);
        if !record.pending.swap(true, Ordering::SeqCst) || record.unsent.load(Ordering::Relaxed) {
            self.send(process, index, record, epoch);
        }
    }

    fn send(&self, process: i32, index: u32, record: &Record, epoch: u32) {
        // Stored before the signal is sent, since the thread may have handled it when the call returns.
        record.pending.store(true, Ordering::SeqCst);
        record.unsent.store(false, Ordering::Relaxed);
        match signal::send(self.signal(), process, record.tid.load(Ordering::Relaxed), index) {
            SendResult::Yes => {}
            SendResult::Gone => self.mark_gone(record, epoch),
            SendResult::Full => record.unsent.store(true, Ordering::Relaxed),
        }
    }

    /// Records a thread as ended.
    fn mark_gone(&self, record: &Record, epoch: u32) {
        record.state.store(Phase::Gone.of(epoch), Ordering::SeqCst);
    }

    /// Waits until every requested thread is stopped or has ended.
    fn wait_for_all(&self, process: i32, epoch: u32, deadline: u64) -> Result<(), StopError> {
        let requested = Phase::Requested.of(epoch);
        let missing = || {
            self.handshake
                .records
                .iter()
                .filter(|(_, record)| record.state.load(Ordering::SeqCst) == requested)
        };
        let begun = kernel::now_us();
        let (mut pause, mut next_poll) = (FIRST_POLL_US, begun + FIRST_POLL_US);
        loop {
            let arrived = self.handshake.replies();
            if missing().next().is_none() {
                return Ok(());
            }
            let now = kernel::now_us();
            if now >= next_poll {
                let lost = now >= begun + LOST_US;
                if lost {
                    signal::install(self.signal()).map_err(|_| StopError::NoSignal)?;
                }
                for (index, record) in missing() {
                    self.check_straggler(process, index, record, epoch, lost);
                }
                // A parent of vfork cannot be taken for stopped, for its child goes on in its memory.
                let tids = missing().map(|(_, record)| record.tid.load(Ordering::Relaxed));
                if let Some(parent) = tids.filter(|_| lost).find(|&tid| proc::is_in_vfork(tid)) {
                    return Err(StopError::Vfork(of_thread(parent)));
                }
                pause = (pause * 2).min(LONGEST_POLL_US);
                next_poll = now + pause;
                if missing().next().is_none() {
                    return Ok(());
                }
            }
            if now >= deadline {
                let Some((_, record)) = missing().next() else { return Ok(()) };
                if record.unsent.load(Ordering::Relaxed) {
                    return Err(StopError::NoQueue);
                }
                return Err(unstopped(record.tid.load(Ordering::Relaxed)));
            }
            self.handshake.wait_for_reply(arrived, next_poll.min(deadline).saturating_sub(now).max(1));
        }
    }

    /// Checks a thread that has not stopped yet.
    fn check_straggler(&self, process: i32, index: u32, record: &Record, epoch: u32, lost: bool) {
        let tid = record.tid.load(Ordering::Relaxed);
        let thread_state = proc::thread_state(tid);
        if !matches!(thread_state, ThreadState::Alive(_)) {
            // A main thread stays a zombie until the process ends, and a worker never takes a signal; any other is
            // about to disappear.
            record.skipped.store(tid == process || thread_state == ThreadState::Worker, Ordering::Relaxed);
            self.mark_gone(record, epoch);
        } else if record.unsent.load(Ordering::Relaxed)
            || lost
                && record.pending.load(Ordering::SeqCst)
                && proc::is_pending(tid, self.signal()) == Some(false)
        {
            // The queue was full, or the program has taken the signal: by ignoring it for a while, or by waiting for
            // it.
            self.send(process, index, record, epoch);
        }
    }
}

/// A thread did not stop in time.
fn unstopped(tid: i32) -> StopError {
    StopError::Thread(of_thread(tid))
}

fn of_thread(tid: i32) -> UnstoppedThread {
    let state = match proc::thread_state(tid) {
        ThreadState::Alive(state) => state as char,
        ThreadState::Ended | ThreadState::Worker => '?',
    };
    UnstoppedThread { tid, name: proc::name(tid), state }
}

impl Default for World {
    fn default() -> World {
        World::new()
    }
}
