//! The gate that keeps stops and calls of exec apart: a new program inherits the signals that are pending for the thread
//! that called exec, and dies of one that it does not know.
//!
//! A stop closes the gate before it sends a signal and opens it when all threads have been resumed; it waits for calls
//! that are in progress. A call waits while the gate is closed, where the stop finds it like any other thread.
//!
//! A handler may leave a call by `siglongjmp`, and the call never ends. Where stops have met calls for
//! [`FORGOTTEN_AFTER`] times their whole patience without an end, another generation begins, in which these do not count.
//! On a busy machine a call takes a good part of a second; one stop alone may be in vain after 10 ms.

use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

use heaptoll_assertions::assert_internal;
use heaptoll_runtime::futex;

use crate::kernel;

/// A stop is in progress.
const CLOSED: u32 = 1 << 31;
/// A thread sleeps until the state changes.
const AWAITED: u32 = 1 << 30;

/// How many calls of this generation are in progress.
const COUNT: u32 = (1 << 16) - 1;
/// Added for another generation, which wraps around below the two bits.
const GENERATION: u32 = 1 << 16;
/// The bits of the generation.
const GENERATIONS: u32 = !(CLOSED | AWAITED | COUNT);

/// Calls that have not ended after so many times the patience of stops never end.
pub const FORGOTTEN_AFTER: u32 = 10;

/// See the module.
pub struct ExecGate {
    /// The count of calls, their generation and the two bits.
    state: AtomicU32,
    /// The thread that began the latest call, if that is in progress; 0: none, or not known.
    caller: AtomicI32,
    /// Since when stops have met calls in progress, µs; 0: the last one has met none, or all have ended.
    met_since: AtomicU64,
}

/// The gate is closed until this is dropped.
pub struct Closed<'a>(&'a ExecGate);

impl ExecGate {
    pub const fn new() -> ExecGate {
        ExecGate { state: AtomicU32::new(0), caller: AtomicI32::new(0), met_since: AtomicU64::new(0) }
    }

    /// Closes the gate when no call is in progress, or only one that a handler of this thread has interrupted. One
    /// thread closes it at a time.
    ///
    /// # Errors
    /// The thread whose call is still in progress after so many ms. Once stops have met it for [`FORGOTTEN_AFTER`] times
    /// `whole_patience_ms`, the next one does not wait for it.
    pub fn close(&self, patience_ms: u32, whole_patience_ms: u32) -> Result<Closed<'_>, i32> {
        // As a rule there is no call, and no need to know the time.
        let mut begun = None;
        loop {
            let state = self.state.load(Ordering::SeqCst);
            assert_internal!(state & CLOSED == 0, "one thread closes the gate at a time");
            let caller = self.caller.load(Ordering::SeqCst);
            let own = u32::from(state & COUNT == 1 && caller == kernel::thread());
            if state & COUNT == own {
                if self.replace(state, state | CLOSED) {
                    self.met_since.store(0, Ordering::SeqCst);
                    return Ok(Closed(self));
                }
                continue;
            }
            let now = kernel::now_us();
            let begun = *begun.get_or_insert(now);
            let deadline = begun + u64::from(patience_ms) * 1000;
            let _ = self.met_since.compare_exchange(0, begun, Ordering::SeqCst, Ordering::SeqCst);
            if now >= deadline {
                let met_us = now.saturating_sub(self.met_since.load(Ordering::SeqCst));
                if met_us < u64::from(whole_patience_ms) * 1000 * u64::from(FORGOTTEN_AFTER) {
                    return Err(caller);
                }
                let next = (state & GENERATIONS).wrapping_add(GENERATION) & GENERATIONS;
                if self.replace(state, state & AWAITED | next) {
                    self.met_since.store(0, Ordering::SeqCst);
                    return Err(caller);
                }
                continue;
            }
            self.sleep(state, Some(deadline - now));
        }
    }

    /// A call begins, when the gate is open. Returns its generation.
    pub fn begin(&self) -> u32 {
        let generation = loop {
            let state = self.state.load(Ordering::SeqCst);
            if state & CLOSED != 0 {
                self.sleep(state, None);
            } else if self.replace(state, state + 1) {
                break state & GENERATIONS;
            }
        };
        self.caller.store(kernel::thread(), Ordering::SeqCst);
        generation
    }

    /// A call of this generation has failed. Before it counts as ended its thread is no longer the caller: a count of one
    /// and this thread as the caller are a call of its own.
    pub fn end(&self, generation: u32) {
        let _ = self.caller.compare_exchange(kernel::thread(), 0, Ordering::SeqCst, Ordering::SeqCst);
        let former = loop {
            let state = self.state.load(Ordering::SeqCst);
            if state & GENERATIONS != generation {
                return;
            }
            assert_internal!(state & COUNT > 0, "a call that ends was counted");
            if self.replace(state, state - 1) {
                break state;
            }
        };
        if former & COUNT == 1 {
            self.met_since.store(0, Ordering::SeqCst);
        }
        if former & AWAITED != 0 {
            self.state.fetch_and(!AWAITED, Ordering::SeqCst);
            futex::wake_all(&self.state);
        }
    }

    /// In the child of a fork, whose one thread does not exec.
    pub fn reset(&self) {
        self.state.store(0, Ordering::SeqCst);
        self.caller.store(0, Ordering::SeqCst);
        self.met_since.store(0, Ordering::SeqCst);
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
