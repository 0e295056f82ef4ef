//! The handshake of a stop: the collecting thread requests each thread to stop, and each replies from the signal's handler
//! and sleeps until it is resumed.
//!
//! A stop is an epoch: an odd number while threads are to be stopped, an even one while they run. A thread that is
//! requested to stop finds the epoch in its record, saves its registers there, sets the record's state to stopped and
//! sleeps until the epoch changes. A signal that arrives too late finds another epoch, or none, and returns at once.

use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, Ordering};

use heaptoll_assertions::{assert_expensive, assert_internal};
use heaptoll_runtime::futex;

use crate::exec_gate::ExecGate;
use crate::kernel;
use crate::registers::Registers;
use crate::thread::{Phase, Records};

/// Turns before the collector sleeps, where a thread can reply meanwhile: some ten microseconds.
const SPINS: u32 = 400;

/// The handshake of the world that has started: the only way in which the signal handler finds it.
static STARTED: AtomicPtr<Handshake> = AtomicPtr::new(core::ptr::null_mut());

/// See the module.
pub struct Handshake {
    /// The process whose threads are stopped; 0: not started.
    pub process: AtomicI32,
    /// The signal by which they are.
    pub signal: AtomicI32,
    /// Keeps stops and calls of exec apart.
    pub exec_gate: ExecGate,
    /// Odd: threads are stopped or to be stopped. They sleep on it.
    epoch: AtomicU32,
    /// Threads that have stopped in this epoch, or a few more: late ones of an earlier one. The collector sleeps on
    /// it.
    arrived: AtomicU32,
    /// The arrival that wakes the collector.
    awaited: AtomicU32,
    /// Turns before the collector sleeps.
    spins: AtomicU32,
    pub records: Records,
}

impl Handshake {
    pub const fn new() -> Handshake {
        Handshake {
            process: AtomicI32::new(0),
            signal: AtomicI32::new(0),
            exec_gate: ExecGate::new(),
            epoch: AtomicU32::new(0),
            arrived: AtomicU32::new(0),
            awaited: AtomicU32::new(u32::MAX),
            spins: AtomicU32::new(0),
            records: Records::new(),
        }
    }

    /// Lets the signal handler find this one. The process may use so many processors.
    pub fn publish(&'static self, processors: usize) {
        self.spins.store(if processors > 1 { SPINS } else { 0 }, Ordering::Relaxed);
        STARTED.store(core::ptr::from_ref(self).cast_mut(), Ordering::Release);
    }

    /// The one that the signal handler replies to.
    pub fn published() -> Option<&'static Handshake> {
        // SAFETY: null, or what `publish` stored, which has it as `&'static self`.
        unsafe { STARTED.load(Ordering::Acquire).as_ref() }
    }

    /// The stop's epoch.
    pub fn epoch(&self) -> u32 {
        self.epoch.load(Ordering::SeqCst)
    }

    /// Begins a stop; returns its epoch.
    pub fn begin(&self) -> u32 {
        assert_internal!(self.epoch() & 1 == 0, "a stop begins while all threads run");
        self.arrived.store(0, Ordering::SeqCst);
        self.awaited.store(u32::MAX, Ordering::SeqCst);
        let epoch = self.epoch.fetch_add(1, Ordering::SeqCst) + 1;
        assert_internal!(epoch & 1 == 1, "threads are stopped in an odd epoch");
        assert_expensive!(
            self.records.iter().all(|(_, record)| record.registers(epoch).is_none()),
            "no thread has stopped before it is requested to stop"
        );
        epoch
    }

    /// Makes the reply of this number wake the collector.
    pub fn await_replies(&self, number: u32) {
        self.awaited.store(number, Ordering::SeqCst);
    }

    /// How many threads have replied, or a few more.
    pub fn replies(&self) -> u32 {
        self.arrived.load(Ordering::SeqCst)
    }

    /// Waits while there are `known` replies, at most `patience_us` microseconds. A thread that runs replies within a few: to
    /// sleep and to be woken takes longer.
    pub fn wait_for_reply(&self, known: u32, patience_us: u64) {
        for _ in 0..self.spins.load(Ordering::Relaxed) {
            if self.replies() != known {
                return;
            }
            core::hint::spin_loop();
        }
        futex::wait(&self.arrived, known, Some(patience_us));
    }

    /// Ends a stop: everything runs on.
    pub fn resume(&self) {
        if self.epoch() & 1 == 1 {
            self.epoch.fetch_add(1, Ordering::SeqCst);
            if self.replies() > 0 {
                futex::wake_all(&self.epoch);
            }
        }
        assert_internal!(self.epoch() & 1 == 0, "all threads run after a stop");
    }

    /// Runs in the signal's handler: if that is requested, replies and sleeps until the world is resumed.
    #[inline(always)]
    pub fn reply(&self, index: u32, registers: impl FnOnce() -> Registers) {
        let Some(record) = self.records.get(index) else { return };
        if record.tid.load(Ordering::Acquire) != kernel::thread() {
            return;
        }
        record.pending.store(false, Ordering::SeqCst);
        let epoch = self.epoch();
        let requested = Phase::Requested.of(epoch);
        if epoch & 1 == 0 || record.state.load(Ordering::SeqCst) != requested {
            return;
        }
        let registers = registers();
        assert_internal!(registers.stack_pointer != 0, "a thread that stops has a stack");
        // SAFETY: this runs on the record's own thread, in the handler, which blocks all signals.
        unsafe { record.save_registers(registers) };
        let stopped = Phase::Stopped.of(epoch);
        if record.state.compare_exchange(requested, stopped, Ordering::SeqCst, Ordering::SeqCst).is_err() {
            return;
        }
        // The stopper waits for states, not for this thread: it may have resumed the world and requested the next stop
        // since. It increments the epoch before that.
        assert_internal!(
            record.registers(epoch).is_some() || self.epoch() != epoch,
            "the registers of a thread that has stopped can be read until the world is resumed"
        );
        let arrived = self.arrived.fetch_add(1, Ordering::SeqCst) + 1;
        if arrived >= self.awaited.load(Ordering::SeqCst) {
            futex::wake_all(&self.arrived);
        }
        while self.epoch() == epoch {
            futex::wait(&self.epoch, epoch, None);
        }
    }
}
