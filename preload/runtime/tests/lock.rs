//! The lock under threads and under fork.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use heaptoll_runtime::{Lock, prepare_barriers};

/// The forks of these tests share one lock's handlers with no other test.
static FORKED: Lock<[usize; 2]> = Lock::new([0; 2]);

extern "C" fn before() {
    FORKED.before_fork();
    // A handler of another object's that runs after this one and allocates.
    FORKED.lock()[1] += 1;
}

extern "C" fn after() {
    FORKED.lock()[1] += 1;
    FORKED.after_fork();
}

extern "C" fn after_in_child() {
    FORKED.lock()[1] += 1;
    FORKED.after_fork_in_child();
}

/// Four threads in and out of a lock, now and then long enough for the others to fall asleep on it.
fn crowd(lock: &'static Lock<[usize; 2]>) {
    let threads: Vec<_> = (0..4)
        .map(|_| {
            thread::spawn(|| {
                for turn in 0..50_000 {
                    let mut pair = lock.lock();
                    pair[0] += 1;
                    assert_eq!(pair[0], pair[1] + 1, "another thread was in between");
                    if turn % 1000 == 0 {
                        thread::sleep(Duration::from_micros(50));
                    }
                    pair[1] += 1;
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("no thread panicked"));
    assert_eq!(*lock.lock(), [200_000; 2]);
}

#[test]
fn threads_exclude_each_other_and_none_sleeps_for_ever() {
    static WITHOUT: Lock<[usize; 2]> = Lock::new([0; 2]);
    static WITH: Lock<[usize; 2]> = Lock::new([0; 2]);
    // As on a system without membarrier, and as in a process that has registered for it.
    crowd(&WITHOUT);
    prepare_barriers();
    crowd(&WITH);
}

#[test]
fn a_held_lock_is_not_tried_in_vain() {
    static LOCK: Lock<usize> = Lock::new(0);
    let held = LOCK.lock();
    assert!(LOCK.try_lock().is_none());
    drop(held);
    assert!(LOCK.try_lock().is_some());
    assert!(LOCK.try_lock().is_some(), "given back");
}

#[test]
fn a_fork_amid_threads_leaves_the_lock_usable_and_the_value_whole() {
    static STOP: AtomicBool = AtomicBool::new(false);
    static TURNS: AtomicUsize = AtomicUsize::new(0);
    // SAFETY: handlers that live as long as the process.
    assert_eq!(unsafe { libc::pthread_atfork(Some(before), Some(after), Some(after_in_child)) }, 0);
    let threads: Vec<_> = (0..3)
        .map(|_| {
            thread::spawn(|| {
                while !STOP.load(Ordering::Relaxed) {
                    let mut pair = FORKED.lock();
                    pair[0] += 1;
                    std::hint::black_box(&mut pair);
                    pair[0] += 1;
                    TURNS.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for round in 0..200 {
        // SAFETY: the child calls nothing but the lock, alarm and _exit.
        unsafe {
            let child = libc::fork();
            assert!(child >= 0, "fork failed");
            if child == 0 {
                libc::alarm(20);
                let whole = FORKED.lock()[0].is_multiple_of(2);
                libc::_exit(if whole { 0 } else { 1 });
            }
            let mut status = 0;
            assert_eq!(libc::waitpid(child, &mut status, 0), child);
            assert_eq!(status, 0, "round {round}: 14 is a lock that was never free, 256 a value cut in half");
        }
        // All may go on in the parent.
        let turns = TURNS.load(Ordering::Relaxed);
        while TURNS.load(Ordering::Relaxed) == turns {
            thread::yield_now();
        }
    }
    STOP.store(true, Ordering::Relaxed);
    threads.into_iter().for_each(|thread| thread.join().expect("no thread panicked"));
    assert!(FORKED.lock()[1] >= 400, "the handlers ran, and entered the lock they held");
}

/// try_lock made the guard before it checked, and dropped it where the lock was held: it released another thread's
/// lock.
#[test]
fn a_lock_that_could_not_be_had_stays_the_holders() {
    static LOCK: Lock<u32> = Lock::new(0);
    let held = LOCK.lock();
    let tried = || thread::spawn(|| LOCK.try_lock().is_none()).join().expect("no panic");
    assert!(tried());
    assert!(tried(), "the first try in vain gave it back");
    drop(held);
    assert!(!tried());
}
