//! What the pool is built of: atomics, and waiting by direct system calls. A marker's thread has no thread-local
//! storage of its own, so it cannot use the C library's calls, which set `errno`. The loom model of the pool replaces
//! these by its own types of the same names.

use core::arch::asm;
use core::cell::UnsafeCell;
use core::sync::atomic::Ordering;

pub use core::sync::atomic::{AtomicU32, AtomicUsize};
use heaptoll_assertions::assert_internal;

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
        wait(&self.0, known);
    }

    /// Wakes up to `count` waiting threads.
    pub fn wake(&self, count: u32) {
        wake(&self.0, count);
    }
}

/// Any system call; negative is a negated `errno`.
///
/// # Safety
/// The preconditions of the system call itself.
#[inline(always)]
pub unsafe fn call(number: i64, arguments: [usize; 4]) -> isize {
    let result: isize;
    // SAFETY: this is x86_64 Linux's calling convention; the kernel overwrites rcx and r11. The caller establishes the
    // preconditions of the call itself.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") arguments[0],
            in("rsi") arguments[1],
            in("rdx") arguments[2],
            in("r10") arguments[3],
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result
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
        unsafe { call(libc::SYS_sched_yield, [0; 4]) };
    } else {
        core::hint::spin_loop();
    }
}

/// Waits until the word is not `expected`; may come back early.
pub fn wait(word: &AtomicU32, expected: u32) {
    for _ in 0..POLLS {
        if word.load(Ordering::Relaxed) != expected {
            return;
        }
        core::hint::spin_loop();
    }
    // Not the private kind: the kernel also wakes by this word when a thread has ended.
    // SAFETY: the kernel reads `word`, which outlives the call.
    unsafe {
        call(libc::SYS_futex, [word.as_ptr() as usize, libc::FUTEX_WAIT as usize, expected as usize, 0])
    };
}

/// Wakes up to `count` waiting threads.
fn wake(word: &AtomicU32, count: u32) {
    // SAFETY: the word is only looked up by address.
    unsafe { call(libc::SYS_futex, [word.as_ptr() as usize, libc::FUTEX_WAKE as usize, count as usize, 0]) };
}
