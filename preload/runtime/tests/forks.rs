//! The C library's list of streams is free again after a fork, in parent and child, also where a handler forked.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use heaptoll_runtime::{AtFork, at_fork};

static NESTED: AtomicBool = AtomicBool::new(false);
static STATUS: AtomicUsize = AtomicUsize::new(usize::MAX);
static CALLS: AtomicUsize = AtomicUsize::new(0);

/// Whether two threads, one after the other, get the list of streams.
fn is_list_free() -> bool {
    (0..2).all(|_| {
        let (done, waits) = mpsc::channel();
        thread::spawn(move || {
            // SAFETY: null stands for all streams.
            unsafe { libc::fflush(std::ptr::null_mut()) };
            let _ = done.send(());
        });
        waits.recv_timeout(Duration::from_secs(60)).is_ok()
    })
}

/// Forks; the child's status is 0 where the list is free in it.
fn fork_and_check() -> c_int {
    // SAFETY: the C library's malloc and locks may be used in the child.
    unsafe {
        let child = libc::fork();
        assert!(child >= 0, "fork failed");
        if child == 0 {
            libc::_exit(c_int::from(!is_list_free()));
        }
        let mut status = -1;
        assert_eq!(libc::waitpid(child, &mut status, 0), child);
        status
    }
}

struct Inner;
impl AtFork for Inner {
    fn before() {
        CALLS.fetch_add(1, Ordering::Relaxed);
    }
    fn in_parent() {}
    fn in_child() {}
}

/// Registered later, so its first handler runs earlier: it forks with the list held, and its child goes on to fork.
struct Outer;
impl AtFork for Outer {
    fn before() {
        if NESTED.swap(false, Ordering::Relaxed) {
            // SAFETY: the C library's malloc and locks may be used in the child.
            let child = unsafe { libc::fork() };
            if child > 0 {
                let mut status = -1;
                // SAFETY: a place for the status.
                unsafe { libc::waitpid(child, &mut status, 0) };
                STATUS.store(status as usize, Ordering::Relaxed);
            }
        }
    }
    fn in_parent() {}
    fn in_child() {}
}

#[test]
fn the_list_of_streams_is_free_after_forks_and_forks_in_handlers() {
    let own = std::process::id();
    assert_eq!((at_fork::<Inner>(), at_fork::<Outer>()), (0, 0));
    // From here on the process has threads, and the list is taken.
    assert!(is_list_free());
    assert_eq!(fork_and_check(), 0, "the child's list is held for ever");
    assert!(is_list_free(), "the parent's list is held after a fork");
    NESTED.store(true, Ordering::Relaxed);
    let status = fork_and_check();
    if std::process::id() != own {
        // The child of the handler's fork, which has forked, too.
        let well = status == 0 && is_list_free();
        // SAFETY: `_exit` takes no pointers and does not return.
        unsafe { libc::_exit(c_int::from(!well)) };
    }
    assert_eq!(status, 0, "the child's list is held after a fork with a fork in a handler");
    assert_eq!(STATUS.load(Ordering::Relaxed), 0, "so is the one of the handler's own child");
    assert!(is_list_free(), "so is the parent's");
    assert_eq!(CALLS.load(Ordering::Relaxed), 3);
}
