//! The one lock of a manager, as in its time. It may be forked under, and costs no atomic instruction while the
//! process has one thread.
//!
//! glibc says so in `__libc_single_threaded` (2.32 and later) and takes the same liberty in its own malloc. A thread
//! is created by a thread that is not inside malloc, so the answer cannot change while the lock is held.

use core::cell::UnsafeCell;
use core::ffi::c_char;
use core::mem;
use core::ops::{Deref, DerefMut};
use core::ptr;
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicUsize, Ordering};

use crate::Message;

unsafe extern "C" {
    static __libc_single_threaded: c_char;
}

#[inline(always)]
fn single_threaded() -> bool {
    // SAFETY: the variable lives in the C library for ever, and is a byte that only the library writes.
    let flag = unsafe { AtomicU8::from_ptr((&raw const __libc_single_threaded).cast::<u8>().cast_mut()) };
    flag.load(Ordering::Relaxed) != 0
}

const FREE: u32 = 0;
const HELD: u32 = 1;
/// Held, and somebody sleeps on it.
const CONTENDED: u32 = 2;

/// Turns before a waiter sleeps: about as long as a malloc takes.
const SPINS: u32 = 64;

/// A mutual exclusion around `T`.
#[derive(Debug)]
pub struct Lock<T> {
    state: AtomicU32,
    /// The thread between fork's prepare and parent or child handlers, 0 if there is none. Handlers of others may
    /// allocate meanwhile, on that thread.
    forker: AtomicUsize,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached by the holder of the lock only.
unsafe impl<T: Send> Sync for Lock<T> {}

/// How a guard gives the lock back.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// Taken by a plain store.
    Plain,
    /// Taken by an atomic.
    Atomic,
    /// Taken already, by this thread's fork.
    Borrowed,
}

/// The value, held.
pub struct Guard<'a, T> {
    lock: &'a Lock<T>,
    manner: Manner,
}

impl<T> Lock<T> {
    /// A free lock.
    pub const fn new(value: T) -> Lock<T> {
        Lock { state: AtomicU32::new(FREE), forker: AtomicUsize::new(0), value: UnsafeCell::new(value) }
    }

    /// Takes the lock, waiting for it as long as it takes.
    #[inline(always)]
    pub fn lock(&self) -> Guard<'_, T> {
        let manner = if single_threaded() {
            if self.state.load(Ordering::Relaxed) == FREE {
                self.state.store(HELD, Ordering::Relaxed);
                Manner::Plain
            } else {
                self.held_by_the_only_thread()
            }
        } else if self.state.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_ok() {
            Manner::Atomic
        } else {
            self.wait()
        };
        Guard { lock: self, manner }
    }

    /// fork's prepare handler: the heap must not be forked in the middle of a change.
    pub fn before_fork(&self) {
        let guard = self.lock();
        if guard.manner != Manner::Borrowed {
            mem::forget(guard);
            self.forker.store(thread(), Ordering::Relaxed);
        }
    }

    /// fork's parent and child handler.
    pub fn after_fork(&self) {
        self.forker.store(0, Ordering::Relaxed);
        // In the child nobody sleeps any more; an unneeded wake-up does no harm.
        if self.state.swap(FREE, Ordering::Release) == CONTENDED {
            wake(&self.state);
        }
    }

    #[cold]
    #[inline(never)]
    fn held_by_the_only_thread(&self) -> Manner {
        if self.forker.load(Ordering::Relaxed) == thread() {
            return Manner::Borrowed;
        }
        Message::new()
            .text("the heap was entered while this same thread was inside it: a signal handler allocated or freed, \
                   which POSIX does not allow, or jumped out of malloc or free")
            .abort()
    }

    #[cold]
    #[inline(never)]
    fn wait(&self) -> Manner {
        let forker = self.forker.load(Ordering::Relaxed);
        if forker != 0 && forker == thread() {
            return Manner::Borrowed;
        }
        for _ in 0..SPINS {
            if self.state.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                return Manner::Atomic;
            }
            core::hint::spin_loop();
        }
        // SAFETY: errno's address is valid for the calling thread.
        let errno = unsafe { *libc::__errno_location() };
        while self.state.swap(CONTENDED, Ordering::Acquire) != FREE {
            // SAFETY: the futex word outlives the call.
            unsafe {
                libc::syscall(
                    libc::SYS_futex,
                    self.state.as_ptr(),
                    libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
                    CONTENDED,
                    ptr::null::<libc::timespec>(),
                )
            };
        }
        // SAFETY: as above.
        unsafe { *libc::__errno_location() = errno };
        Manner::Atomic
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the lock is held.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the lock is held, and this is its one guard.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        match self.manner {
            Manner::Plain => self.lock.state.store(FREE, Ordering::Relaxed),
            Manner::Atomic => {
                if self.lock.state.swap(FREE, Ordering::Release) == CONTENDED {
                    wake(&self.lock.state);
                }
            }
            Manner::Borrowed => {}
        }
    }
}

/// Wakes one sleeper.
#[cold]
#[inline(never)]
fn wake(state: &AtomicU32) {
    // SAFETY: the futex word is only looked up by address. Waking fails for no valid address, so errno is kept.
    unsafe { libc::syscall(libc::SYS_futex, state.as_ptr(), libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, 1) };
}

/// The calling thread, never 0, and the same in a forked child, where the kernel's number of it is another.
fn thread() -> usize {
    // SAFETY: pthread_self has no conditions.
    unsafe { libc::pthread_self() as usize }
}
