//! A lock that is innermost: every thread that maps memory takes it, with the manager's own locks held.
//!
//! fork cannot take it beforehand, as it takes others: the manager's fork handlers may run after the layer's, and would
//! wait for a thread that waits for it. So a child may find it held by a thread that does not exist there, in the
//! middle of a change; then the value is reset.

use core::cell::UnsafeCell;
use core::hint::spin_loop;
use core::sync::atomic::{AtomicUsize, Ordering};

use heaptoll_runtime::system_call;

/// Turns before a waiter lets another thread run.
const TURNS: u32 = 100;

/// A value that one thread at a time reaches.
pub struct Innermost<T> {
    /// The thread that holds it, 0 for none.
    holder: AtomicUsize,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached by the holder alone.
unsafe impl<T: Send> Sync for Innermost<T> {}

/// The calling thread, never 0.
fn thread() -> usize {
    // SAFETY: `pthread_self` takes no pointers and cannot fail.
    unsafe { libc::pthread_self() as usize }
}

impl<T> Innermost<T> {
    pub const fn new(value: T) -> Innermost<T> {
        Innermost { holder: AtomicUsize::new(0), value: UnsafeCell::new(value) }
    }

    /// Works on the value; `None` for a signal handler that has interrupted this same thread in here.
    pub fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> Option<R> {
        let me = thread();
        let mut turns = 0;
        while let Err(holder) = self.holder.compare_exchange_weak(0, me, Ordering::Acquire, Ordering::Relaxed)
        {
            if holder == me {
                return None;
            }
            turns += 1;
            if turns % TURNS == 0 {
                // SAFETY: `sched_yield` takes no pointers and cannot fail.
                unsafe { system_call(libc::SYS_sched_yield, [0; 6]) };
            } else {
                spin_loop();
            }
        }
        // SAFETY: this thread holds it, and `with` cannot be entered again.
        let done = work(unsafe { &mut *self.value.get() });
        self.holder.store(0, Ordering::Release);
        Some(done)
    }

    /// In a child of fork: if another thread held it, which does not exist there, `renew` resets the value.
    pub fn after_fork_in_child(&self, renew: impl FnOnce(&mut T)) {
        let holder = self.holder.load(Ordering::Relaxed);
        if holder != 0 && holder != thread() {
            // SAFETY: the child of a fork has one thread, this one, and it does not hold the value.
            renew(unsafe { &mut *self.value.get() });
            self.holder.store(0, Ordering::Release);
        }
    }
}
