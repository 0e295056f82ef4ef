//! The lock in a process of one thread, which a test harness is not: this is a program of its own. Each of its tests
//! runs in a child.

use std::sync::atomic::{AtomicI32, Ordering};

use heaptoll_runtime::Lock;

static LOCK: Lock<usize> = Lock::new(0);
/// The status with which the child of the fork in the handler ended.
static CHILD: AtomicI32 = AtomicI32::new(-1);

extern "C" fn before() {
    LOCK.before_fork();
}

extern "C" fn after() {
    LOCK.after_fork();
}

extern "C" fn after_in_child() {
    LOCK.after_fork_in_child();
}

/// Waits for a child; its status.
fn wait(child: libc::pid_t) -> i32 {
    let mut status = 0;
    // SAFETY: a valid place for the status.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    status
}

/// Runs `test` in a child, which must end well.
fn in_child(name: &str, test: fn()) {
    // SAFETY: this process has one thread.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "fork failed");
    if child == 0 {
        // SAFETY: a test that hangs ends by this signal.
        unsafe { libc::alarm(20) };
        test();
        std::process::exit(0);
    }
    assert_eq!(wait(child), 0, "{name}");
    println!("{name} ... ok");
}

extern "C" fn forks(_: libc::c_int) {
    // SAFETY: fork may be called in a handler.
    let child = unsafe { libc::fork() };
    // In the child the handler returns into the middle of the change, as in the parent.
    if child > 0 {
        CHILD.store(wait(child), Ordering::Relaxed);
    }
}

/// Found as an abort that blamed the program: fork's prepare handler took the lock that the interrupted call held.
fn a_fork_in_a_handler_that_interrupted_the_heap_leaves_the_lock_to_the_interrupted_call() {
    // SAFETY: a handler that lives as long as the process; a process may signal itself.
    let us = unsafe {
        libc::signal(libc::SIGUSR1, forks as extern "C" fn(libc::c_int) as libc::sighandler_t);
        libc::getpid()
    };
    let mut held = LOCK.lock();
    *held += 1;
    // SAFETY: `raise` takes no pointers; the handler for the signal is installed.
    unsafe { libc::raise(libc::SIGUSR1) };
    assert!(LOCK.try_lock().is_none(), "the lock is the interrupted call's still");
    *held += 1;
    drop(held);
    // Both processes come here, and both can lock, fork and lock again.
    assert_eq!(*LOCK.lock(), 2);
    // SAFETY: this process has one thread.
    let child = unsafe { libc::fork() };
    if child == 0 {
        std::process::exit(if *LOCK.lock() == 2 { 0 } else { 1 });
    }
    assert_eq!(wait(child), 0);
    assert!(LOCK.try_lock().is_some());
    // SAFETY: `getpid` takes no pointers and cannot fail.
    if unsafe { libc::getpid() } == us {
        assert_eq!(CHILD.load(Ordering::Relaxed), 0, "the child of the fork in the handler");
    }
}

fn a_fork_in_a_prepare_handler_does_not_give_the_outer_forks_lock_back() {
    LOCK.before_fork();
    LOCK.before_fork();
    LOCK.after_fork();
    assert!(LOCK.try_lock().is_none(), "the outer fork holds it");
    assert_eq!(*LOCK.lock(), 0, "and may enter");
    LOCK.after_fork();
    assert!(LOCK.try_lock().is_some());
}

fn main() {
    // SAFETY: handlers that live as long as the process.
    assert_eq!(unsafe { libc::pthread_atfork(Some(before), Some(after), Some(after_in_child)) }, 0);
    in_child(
        "a_fork_in_a_handler_that_interrupted_the_heap_leaves_the_lock_to_the_interrupted_call",
        a_fork_in_a_handler_that_interrupted_the_heap_leaves_the_lock_to_the_interrupted_call,
    );
    in_child(
        "a_fork_in_a_prepare_handler_does_not_give_the_outer_forks_lock_back",
        a_fork_in_a_prepare_handler_does_not_give_the_outer_forks_lock_back,
    );
}
