//! The gate that keeps stops and calls of exec apart: a new program inherits the signals that are pending for the thread
//! that called exec, and dies of one that it does not know.
//!
//! A stop closes the gate before it sends a signal and opens it when all threads have been resumed; it waits for calls
//! that are in progress. A call waits while the gate is closed, where the stop finds it like any other thread.

use core::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use heaptoll_assertions::assert_internal;
use heaptoll_runtime::futex;

use crate::kernel;

/// A stop is in progress.
const CLOSED: u32 = 1 << 31;
/// A thread sleeps until the state changes.
const AWAITED: u32 = 1 << 30;

/// See the module.
pub struct ExecGate {
    /// How many calls are in progress, with the two bits.
    state: AtomicU32,
    /// The thread that began the latest call, if that is in progress; 0: none, or not known.
    caller: AtomicI32,
}

/// The gate is closed until this is dropped.
pub struct Closed<'a>(&'a ExecGate);

impl ExecGate {
    pub const fn new() -> ExecGate {
        ExecGate { state: AtomicU32::new(0), caller: AtomicI32::new(0) }
    }

    /// Closes the gate when no call is in progress, or only one that a handler of this thread has interrupted. One
    /// thread closes it at a time.
    ///
    /// # Errors
    /// The thread whose call is still in progress after so many ms.
    pub fn close(&self, patience_ms: u32) -> Result<Closed<'_>, i32> {
        let deadline = kernel::now_us() + u64::from(patience_ms) * 1000;
        loop {
            let state = self.state.load(Ordering::SeqCst);
            assert_internal!(state & CLOSED == 0, "one thread closes the gate at a time");
            let caller = self.caller.load(Ordering::SeqCst);
            let own = u32::from(state & !AWAITED == 1 && caller == kernel::thread());
            if state & !AWAITED == own {
                if self.replace(state, state | CLOSED) {
                    return Ok(Closed(self));
                }
                continue;
            }
            let now = kernel::now_us();
            if now >= deadline {
                return Err(caller);
            }
            self.sleep(state, Some(deadline - now));
        }
    }

    /// A call begins, when the gate is open.
    pub fn begin(&self) {
        loop {
            let state = self.state.load(Ordering::SeqCst);
            if state & CLOSED != 0 {
                self.sleep(state, None);
            } else if self.replace(state, state + 1) {
                break;
            }
        }
        self.caller.store(kernel::thread(), Ordering::SeqCst);
    }

    /// A call has failed. Before it counts as ended its thread is no longer the caller: a count of one and this thread
    /// as the caller are a call of its own.
    pub fn end(&self) {
        let _ = self.caller.compare_exchange(kernel::thread(), 0, Ordering::SeqCst, Ordering::SeqCst);
        let former = self.state.fetch_sub(1, Ordering::SeqCst);
        assert_internal!(former & !(CLOSED | AWAITED) > 0, "a call that ends was counted");
        if former & AWAITED != 0 {
            self.state.fetch_and(!AWAITED, Ordering::SeqCst);
            futex::wake_all(&self.state);
        }
    }

    /// In the child of a fork, whose one thread does not exec.
    pub fn reset(&self) {
        self.state.store(0, Ordering::SeqCst);
        self.caller.store(0, Ordering::SeqCst);
    }

    fn replace(&self, state: u32, by: u32) -> bool {
        self.state.compare_exchange(state, by, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Sleeps while the state is this one.
    fn sleep(&self, state: u32, patience_us: Option<u64>) {
        if state & AWAITED != 0 || self.replace(state, state | AWAITED) {
            futex::wait(&self.state, state | AWAITED, patience_us);
        }
    }
}

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        let former = self.0.state.fetch_and(!(CLOSED | AWAITED), Ordering::SeqCst);
        if former & AWAITED != 0 {
            futex::wake_all(&self.0.state);
        }
    }
}
