//! fork: what runs before and after it, with the C library's list of open streams held around it.
//!
//! fork itself takes the list after every prepare handler. A manager that has locked its heap in such a handler would
//! wait there for `fflush(NULL)`, which holds the list and waits for a stream, whose holder, in `getline`, waits for
//! the heap (glibc bug 19431: its own malloc is locked last). So the list is taken first, here, for all handlers of
//! heaptoll. The list's lock may be taken again by its holder: by fork, and by another manager or layer of this
//! process.
//!
//! A process of one thread takes no such locks, as in glibc: fork may interrupt anything there. `vfork`, `posix_spawn`
//! and `_Fork` call no handlers.

use core::ffi::c_int;
use core::mem::transmute;
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicUsize, Ordering};

use heaptoll_assertions::assert_internal;

use crate::optional::optional;

/// What is done around a fork, on the thread that forks.
pub trait AtFork {
    /// Before it: takes locks.
    fn before();
    /// After it, or after its failure, in the parent.
    fn in_parent();
    /// After it in the child, whose only thread is the caller.
    fn in_child();
}

/// Registers handlers that the C library calls at each fork from now on. Returns 0, or `ENOMEM`.
pub fn at_fork<H: AtFork>() -> c_int {
    // SAFETY: the handlers are functions of this object, which is never unloaded, or of the program.
    unsafe { libc::pthread_atfork(Some(before::<H>), Some(in_parent::<H>), Some(in_child::<H>)) }
}

extern "C" fn before<H: AtFork>() {
    STREAMS.before();
    H::before();
}

extern "C" fn in_parent<H: AtFork>() {
    H::in_parent();
    STREAMS.in_parent();
}

extern "C" fn in_child<H: AtFork>() {
    H::in_child();
    STREAMS.in_child();
}

/// Calls glibc's function at an address.
fn call(function: usize) {
    if function != 0 {
        // SAFETY: `optional!` gave it for one of glibc's `_IO_list_` functions, which have no arguments and no result.
        unsafe { transmute::<usize, extern "C" fn()>(function)() };
    }
}

fn single_threaded() -> bool {
    let flag = optional!("__libc_single_threaded") as *mut u8;
    // SAFETY: glibc's variable lives for ever, and is a byte that only glibc writes.
    !flag.is_null() && unsafe { AtomicU8::from_ptr(flag) }.load(Ordering::Relaxed) != 0
}

/// The holder of the list of streams over a fork.
struct Streams {
    /// The thread that took it, 0 if there is none. Only the holder of the list writes here.
    forker: AtomicUsize,
    /// In how many forks the forker is: another object's handler may fork too.
    forks: AtomicU32,
}

static STREAMS: Streams = Streams { forker: AtomicUsize::new(0), forks: AtomicU32::new(0) };

impl Streams {
    fn before(&self) {
        if !self.is_forker() {
            if single_threaded() {
                return;
            }
            call(optional!("_IO_list_lock"));
            assert_internal!(
                self.forker.load(Ordering::Relaxed) == 0 && self.forks.load(Ordering::Relaxed) == 0,
                "one thread holds the list of streams over its forks"
            );
            self.forker.store(thread(), Ordering::Relaxed);
        }
        self.forks.fetch_add(1, Ordering::Relaxed);
    }

    fn in_parent(&self) {
        assert_internal!(
            !self.is_forker() || self.forks.load(Ordering::Relaxed) > 0,
            "forks under the list of streams are counted to their end"
        );
        if self.is_forker() && self.forks.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.forker.store(0, Ordering::Relaxed);
            call(optional!("_IO_list_unlock"));
        }
    }

    /// fork itself has made the lock a new one. Where a handler of an outer fork forked, the child goes on with that
    /// one and does not take the list: it has one thread.
    fn in_child(&self) {
        if self.is_forker() {
            self.forks.store(0, Ordering::Relaxed);
            self.forker.store(0, Ordering::Relaxed);
            call(optional!("_IO_list_resetlock"));
        }
    }

    fn is_forker(&self) -> bool {
        let forker = self.forker.load(Ordering::Relaxed);
        forker != 0 && forker == thread()
    }
}

/// The calling thread, never 0, and the same in the child.
fn thread() -> usize {
    // SAFETY: `pthread_self` takes no pointers and cannot fail.
    unsafe { libc::pthread_self() as usize }
}
