//! The lock of a heap, or of a part of one, that is also safe to fork under.
//!
//! While the process has one thread it is taken and released by plain loads and stores. glibc reports this in
//! `__libc_single_threaded` (2.32 and later) and does the same in its own malloc. A thread is created by a thread that
//! is not inside malloc, so the value cannot change while the lock is held. Under an older glibc the lock is always
//! taken as with more threads.
//!
//! With more threads it is taken by an atomic instruction, the only one of a call: its release is a plain store,
//! followed by a check whether a thread sleeps. The processor may do the check before the store. A thread that is about
//! to sleep therefore announces it and then has the kernel put a barrier into every running thread (`membarrier`): a
//! thread that checked too early has released the lock by then, and all others see the announcement. The rare path pays
//! for the common one. Where there is no `membarrier`, sleepers wake up by themselves every millisecond to check.

use core::cell::UnsafeCell;
use core::ffi::c_int;
use core::mem;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicUsize, Ordering, compiler_fence};

use heaptoll_assertions::assert_internal;

use crate::optional::optional;
use crate::{Message, futex, system_call};

/// States that there may be several threads.
static SEVERAL: AtomicU8 = AtomicU8::new(0);

/// glibc's variable once this object is initialised, if there is one. A pointer costs a call no more than the variable
/// itself, whose address would be read from the global offset table.
static FLAG: AtomicPtr<AtomicU8> = AtomicPtr::new((&raw const SEVERAL).cast_mut());

#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = find_flag;

extern "C" fn find_flag() {
    let flag = optional!("__libc_single_threaded");
    if flag != 0 {
        FLAG.store(flag as *mut AtomicU8, Ordering::Relaxed);
    }
}

/// Whether the process has one thread, as far as the C library knows. False before this object is initialised.
#[inline(always)]
pub fn single_threaded() -> bool {
    // SAFETY: our own variable, or the C library's, a byte that only the library writes; both live for ever.
    unsafe { &*FLAG.load(Ordering::Relaxed) }.load(Ordering::Relaxed) != 0
}

const FREE: u32 = 0;
const HELD: u32 = 1;

/// Turns before a waiter sleeps: about as long as a malloc takes.
const SPINS: u32 = 64;

/// A mutual exclusion around `T`. Two share no line of the processor's cache, as threads that take them would move it.
#[derive(Debug)]
#[repr(align(64))]
pub struct Lock<T> {
    state: AtomicU32,
    /// Threads that sleep on `state` or are about to.
    sleepers: AtomicU32,
    /// The thread between fork's prepare and parent or child handlers, 0 if there is none. Other objects' handlers may
    /// allocate meanwhile, on that thread.
    forker: AtomicUsize,
    /// How many forks the forker is in: another object's handler may fork too.
    forks: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: only the holder of the lock reaches the value.
unsafe impl<T: Send> Sync for Lock<T> {}

/// The value, held.
pub struct Guard<'a, T> {
    lock: &'a Lock<T>,
    /// This thread's fork held the lock already, and goes on to hold it when the guard is dropped.
    borrowed: bool,
}

/// The system call that puts a barrier into all running threads of the process.
fn barrier(command: c_int) -> bool {
    // SAFETY: `membarrier` takes no pointers; an unknown command is an error.
    unsafe { system_call(libc::SYS_membarrier, [command as usize, 0, 0, 0, 0, 0]) == 0 }
}

/// Registers with the kernel that this process will request barriers. Called once, when there is one thread: later it
/// takes milliseconds. A child of fork need not repeat it.
pub fn prepare_barriers() {
    barrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
}

impl<T> Lock<T> {
    /// A free lock.
    pub const fn new(value: T) -> Lock<T> {
        Lock {
            state: AtomicU32::new(FREE),
            sleepers: AtomicU32::new(0),
            forker: AtomicUsize::new(0),
            forks: AtomicU32::new(0),
            value: UnsafeCell::new(value),
        }
    }

    /// Takes the lock, waiting for it as long as it takes.
    #[inline(always)]
    pub fn lock(&self) -> Guard<'_, T> {
        let borrowed = if single_threaded() {
            if self.state.load(Ordering::Relaxed) == FREE {
                self.state.store(HELD, Ordering::Relaxed);
                false
            } else {
                self.held_by_the_only_thread()
            }
        } else if self.state.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_ok() {
            false
        } else {
            self.wait()
        };
        assert_internal!(self.state.load(Ordering::Relaxed) != FREE, "a lock that is taken is held");
        Guard { lock: self, borrowed }
    }

    /// Takes the lock if it is free now.
    pub fn try_lock(&self) -> Option<Guard<'_, T>> {
        // Lazily: a guard made without the lock would release another thread's lock when it is dropped.
        self.take().then(|| Guard { lock: self, borrowed: false })
    }

    #[inline(always)]
    fn unlock(&self) {
        assert_internal!(
            self.state.load(Ordering::Relaxed) == HELD,
            "a lock is released by its holder, once"
        );
        assert_internal!(
            self.forker.load(Ordering::Relaxed) == 0,
            "a lock is held from a fork's beginning to its end"
        );
        self.state.store(FREE, Ordering::Release);
        // The compiler keeps the order; for the processor see the file's head.
        compiler_fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::Relaxed) != 0 {
            self.wake();
        }
    }

    /// fork's prepare handler: the heap must not be forked in the middle of a change.
    ///
    /// Unless the fork is in the middle of one itself: in a signal handler that interrupted the one thread inside the
    /// lock. The child then has a copy of that thread, which will finish the change when the handler returns. So the
    /// lock stays as it is on both sides, as in glibc, which takes no locks to fork a process of one thread.
    pub fn before_fork(&self) {
        if !self.is_forker() {
            if single_threaded() && self.state.load(Ordering::Relaxed) != FREE {
                return;
            }
            mem::forget(self.lock());
            assert_internal!(self.forker.load(Ordering::Relaxed) == 0, "one thread forks under a lock");
            assert_internal!(
                self.forks.load(Ordering::Relaxed) == 0,
                "forks under a lock are counted to their end"
            );
            self.forker.store(thread(), Ordering::Relaxed);
        }
        self.forks.fetch_add(1, Ordering::Relaxed);
        assert_internal!(
            self.state.load(Ordering::Relaxed) == HELD,
            "a lock is held from a fork's beginning to its end"
        );
    }

    /// fork's handler in the parent.
    pub fn after_fork(&self) {
        assert_internal!(
            !self.is_forker() || self.forks.load(Ordering::Relaxed) > 0,
            "forks under a lock are counted to their end"
        );
        if self.is_forker() && self.forks.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.forker.store(0, Ordering::Relaxed);
            self.unlock();
        }
    }

    /// fork's handler in the child, where no thread sleeps.
    pub fn after_fork_in_child(&self) {
        self.sleepers.store(0, Ordering::Relaxed);
        self.after_fork();
    }

    /// Whether this thread's fork holds the lock.
    fn is_forker(&self) -> bool {
        let forker = self.forker.load(Ordering::Relaxed);
        forker != 0 && forker == thread()
    }

    #[cold]
    #[inline(never)]
    fn held_by_the_only_thread(&self) -> bool {
        if self.is_forker() {
            return true;
        }
        Message::new()
            .text("the heap was entered while this same thread was inside it: a signal handler allocated or freed, \
                   which POSIX does not allow, or jumped out of malloc or free")
            .abort()
    }

    /// The slow path of the lock; returns whether it is borrowed.
    #[cold]
    #[inline(never)]
    fn wait(&self) -> bool {
        if self.is_forker() {
            return true;
        }
        for _ in 0..SPINS {
            core::hint::spin_loop();
            if self.take() {
                return false;
            }
        }
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let patience_us = if barrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED) { None } else { Some(1000) };
        while !self.take() {
            futex::wait(&self.state, HELD, patience_us);
        }
        assert_internal!(self.sleepers.load(Ordering::Relaxed) > 0, "a thread that sleeps is counted");
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
        false
    }

    fn take(&self) -> bool {
        self.state.load(Ordering::Relaxed) == FREE
            && self.state.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Wakes one sleeper.
    #[cold]
    #[inline(never)]
    fn wake(&self) {
        futex::wake(&self.state, 1);
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        assert_internal!(
            self.lock.state.load(Ordering::Relaxed) == HELD,
            "a value is reached under its lock"
        );
        // SAFETY: the guard exists only while its thread holds the lock.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        assert_internal!(
            self.lock.state.load(Ordering::Relaxed) == HELD,
            "a value is changed under its lock"
        );
        // SAFETY: the guard exists only while its thread holds the lock, and this is its one reference.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        if !self.borrowed {
            self.lock.unlock();
        }
    }
}

/// The calling thread, never 0, and the same in a forked child, where the kernel's thread number is another.
fn thread() -> usize {
    // SAFETY: `pthread_self` takes no pointers and cannot fail.
    unsafe { libc::pthread_self() as usize }
}
