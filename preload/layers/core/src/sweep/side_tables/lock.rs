//! A lock that is held for some hundred nanoseconds, by direct system calls: it takes nothing from any heap, and a
//! child of fork can release it.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU32, Ordering};

use heaptoll_runtime::system_call;

/// Turns before a waiter lets another thread run.
const TURNS: u32 = 100;

/// A value that one thread at a time reaches.
pub struct Locked<T> {
    held: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: only the holder of the lock reaches the value.
unsafe impl<T: Send> Sync for Locked<T> {}

impl<T> Locked<T> {
    pub const fn new(value: T) -> Locked<T> {
        Locked { held: AtomicU32::new(0), value: UnsafeCell::new(value) }
    }

    /// Reaches the value. `work` must not call `with` again.
    pub fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        self.hold();
        // SAFETY: `hold` has taken the lock.
        let answer = work(unsafe { &mut *self.value.get() });
        self.release();
        answer
    }

    /// Takes the lock, to hold it over a fork.
    pub fn hold(&self) {
        let mut turns = 0_u32;
        while self.held.swap(1, Ordering::Acquire) != 0 {
            turns = turns.wrapping_add(1);
            if turns.is_multiple_of(TURNS) {
                // SAFETY: `sched_yield` takes no pointers and cannot fail.
                unsafe { system_call(libc::SYS_sched_yield, [0; 6]) };
            } else {
                core::hint::spin_loop();
            }
        }
    }

    /// Releases it; the caller, or in a child of fork the thread that it is a copy of, took it.
    pub fn release(&self) {
        self.held.store(0, Ordering::Release);
    }
}
