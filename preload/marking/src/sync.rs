//! What the pool is built of: atomics, and waiting by direct system calls. A marker's thread has no thread-local
//! storage of its own, so it cannot use the C library's calls, which set `errno`. The loom model of the pool replaces
//! these by its own types of the same names.

use core::cell::UnsafeCell;
use core::sync::atomic::Ordering;

pub use core::sync::atomic::{AtomicU32, AtomicUsize};
use heaptoll_assertions::assert_internal;

use heaptoll_runtime::{futex, system_call};

/// A value that one thread at a time reaches. The lock is held for some ten nanoseconds, so a waiting thread does not
/// sleep.
pub struct Exclusive<T> {
    held: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: only the holder of the lock reaches the value.
unsafe impl<T: Send> Sync for Exclusive<T> {}

impl<T> Exclusive<T> {
    pub const fn new(value: T) -> Exclusive<T> {
        Exclusive { held: AtomicU32::new(0), value: UnsafeCell::new(value) }
    }

    /// Reaches the value.
    pub fn locked<R>(&self, action: impl FnOnce(&mut T) -> R) -> R {
        let mut turns = 0;
        while self.held.swap(1, Ordering::Acquire) != 0 {
            pause(&mut turns);
        }
        // SAFETY: this thread has just set `held`: no other thread reaches the value.
        let result = action(unsafe { &mut *self.value.get() });
        assert_internal!(
            self.held.load(Ordering::Relaxed) == 1,
            "what is reached is held until it is released"
        );
        self.held.store(0, Ordering::Release);
        result
    }
}

/// Counts the events that waiting threads wait for.
pub struct WakeUps(AtomicU32);

impl WakeUps {
    pub const fn new() -> WakeUps {
        WakeUps(AtomicU32::new(0))
    }

    /// The number of events.
    pub fn count(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    /// Counts one event. The caller then wakes threads that may sleep.
    pub fn increment(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Waits for more than `known`; may come back early.
    pub fn wait(&self, known: u32) {
        if poll(&self.0, known) {
            futex::wait(&self.0, known, None);
        }
    }

    /// Wakes up to `count` waiting threads.
    pub fn wake(&self, count: u32) {
        futex::wake(&self.0, count);
    }
}

/// Turns before a waiter lets another thread run: longer than any thread holds the lock unless it was interrupted.
const TURNS: u32 = 100;
/// Polls before a waiter sleeps: some microseconds, as sleeping and waking cost as much.
const POLLS: u32 = 200;

/// Waits briefly.
fn pause(turns: &mut u32) {
    *turns += 1;
    if turns.is_multiple_of(TURNS) {
        // SAFETY: `sched_yield` takes no pointers and cannot fail.
        unsafe { system_call(libc::SYS_sched_yield, [0; 6]) };
    } else {
        core::hint::spin_loop();
    }
}

/// Polls the word while it is `expected`. Returns whether it still is.
pub fn poll(word: &AtomicU32, expected: u32) -> bool {
    for _ in 0..POLLS {
        if word.load(Ordering::Relaxed) != expected {
            return false;
        }
        core::hint::spin_loop();
    }
    true
}
