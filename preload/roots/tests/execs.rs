//! Calls of the exec family: no stop sends a signal to a thread that is in one, and none waits for ever.

mod common;

use std::ffi::{CStr, c_int};
use std::ptr::null;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use common::{Flag, SIGNAL, WORLD, alone, in_child};
use heaptoll_roots::StopError;
use heaptoll_roots::execs::WithoutStops;
use heaptoll_runtime::execs::AroundExec;

/// So short that calls are forgotten after half a second.
const PATIENCE_MS: u32 = 50;

fn exec(call: impl FnOnce() -> c_int) -> c_int {
    WithoutStops::around(null(), call)
}

fn this_thread() -> i32 {
    // SAFETY: `gettid` takes no pointers and cannot fail.
    unsafe { libc::gettid() }
}

/// Blocks or unblocks the signal of stops on the calling thread.
fn mask(how: c_int) {
    // SAFETY: the set is a local variable.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigaddset(&mut set, SIGNAL);
        assert_eq!(libc::pthread_sigmask(how, &set, std::ptr::null_mut()), 0);
    }
}

fn is_pending() -> bool {
    // SAFETY: the set is a local variable.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigpending(&mut set);
        libc::sigismember(&set, SIGNAL) == 1
    }
}

/// What a thread shares with the test.
#[derive(Default)]
struct Shared {
    begun: Flag,
    go_on: Flag,
    tid: AtomicI32,
}

/// A thread that blocks the signal of stops.
fn deaf<T: Send + 'static>(work: impl FnOnce(&Shared) -> T + Send + 'static) -> (Arc<Shared>, JoinHandle<T>) {
    let shared = Arc::new(Shared::default());
    let its = shared.clone();
    let thread = std::thread::spawn(move || {
        its.tid.store(this_thread(), Ordering::SeqCst);
        mask(libc::SIG_BLOCK);
        let done = work(&its);
        mask(libc::SIG_UNBLOCK);
        done
    });
    (shared, thread)
}

fn unstopped(patience_ms: u32) -> Option<i32> {
    match WORLD.stop_within(patience_ms).err()? {
        StopError::Thread(thread) => Some(thread.tid),
        error => panic!("{error:?}"),
    }
}

#[test]
fn a_thread_in_a_call_of_exec_gets_no_signal_and_the_world_stops_after_the_call_has_failed() {
    let _alone = alone(Some(SIGNAL), 5000);
    let (shared, thread) = deaf(|shared| {
        exec(|| {
            shared.begun.raise();
            shared.go_on.wait();
            c_int::from(is_pending())
        })
    });
    shared.begun.wait();
    assert_eq!(unstopped(50), Some(shared.tid.load(Ordering::SeqCst)));
    shared.go_on.raise();
    assert_eq!(thread.join().expect("the call returns"), 0, "a signal is pending");
    assert!(WORLD.stop().is_ok());
}

/// Before, no collection was made any more: each waited for calls that never end.
#[test]
fn calls_of_exec_that_a_handler_left_by_a_jump_are_forgotten_in_the_end() {
    let _alone = alone(Some(SIGNAL), PATIENCE_MS);
    let leave = || {
        let left = std::panic::catch_unwind(|| exec(|| std::panic::resume_unwind(Box::new(()))));
        assert!(left.is_err());
    };
    leave();
    assert!(WORLD.stop().is_ok(), "one call of this thread is not waited for");
    leave();
    let begun = Instant::now();
    while WORLD.stop().is_err() {}
    assert!(begun.elapsed() >= Duration::from_millis(u64::from(PATIENCE_MS) * 10), "they were waited for");
    assert_eq!(exec(|| -1), -1);
    assert!(WORLD.stop().is_ok(), "a call that ends is of the new generation");
}

/// Before, the second of two short stops sent its signal to a thread that was still in the call, and the new program died
/// of it: 2 of 400 on a busy machine.
#[test]
fn many_short_stops_in_vain_do_not_make_a_call_of_exec_forgotten() {
    let _alone = alone(Some(SIGNAL), 60_000);
    let (shared, thread) = deaf(|shared| {
        exec(|| {
            shared.begun.raise();
            shared.go_on.wait();
            c_int::from(is_pending())
        })
    });
    shared.begun.wait();
    for _ in 0..20 {
        assert_eq!(unstopped(1), Some(shared.tid.load(Ordering::SeqCst)));
    }
    shared.go_on.raise();
    assert_eq!(thread.join().expect("the call returns"), 0, "a signal is pending");
    assert!(WORLD.stop().is_ok());
}

#[test]
fn the_signal_of_a_stop_that_was_given_up_does_not_wait_for_the_new_program() {
    const PROGRAM: [&CStr; 4] =
        [c"/bin/grep", c"-q", c"^SigPnd:\t0000000000000000$", c"/proc/thread-self/status"];
    let _alone = alone(Some(SIGNAL), 5000);
    let status = in_child(|| {
        let (shared, _thread) = deaf(|shared| {
            shared.begun.raise();
            shared.go_on.wait();
            assert!(is_pending(), "the stop sent a signal");
            exec(|| {
                let arguments = PROGRAM.map(CStr::as_ptr);
                let list = [arguments[0], arguments[1], arguments[2], arguments[3], null()];
                // SAFETY: a path, and a list of C strings that ends with null.
                unsafe { libc::execv(list[0], list.as_ptr()) }
            })
        });
        shared.begun.wait();
        assert_eq!(unstopped(50), Some(shared.tid.load(Ordering::SeqCst)));
        shared.go_on.raise();
        std::thread::sleep(Duration::from_secs(20));
        9
    });
    assert_eq!(status, 0, "the new program has a signal pending");
}

#[test]
fn a_call_of_exec_waits_for_the_end_of_a_stop() {
    let _alone = alone(Some(SIGNAL), 5000);
    let called = Arc::new(Flag::new());
    let its = called.clone();
    let (shared, thread) = deaf(move |shared| {
        shared.begun.raise();
        shared.go_on.wait();
        exec(|| {
            its.raise();
            0
        })
    });
    shared.begun.wait();
    let tid = shared.tid.load(Ordering::SeqCst);
    assert!(WORLD.exempt_thread(tid));
    let stopped = WORLD.stop().expect("all others stop");
    shared.go_on.raise();
    std::thread::sleep(Duration::from_millis(20));
    assert!(!called.is_up(), "the thread execs while the world is stopped");
    drop(stopped);
    thread.join().expect("the call is made");
    assert!(called.is_up());
    WORLD.end_exemption(tid);
}

#[test]
fn a_handler_that_interrupts_exec_may_stop_the_world_exec_and_fork() {
    let _alone = alone(Some(SIGNAL), 5000);
    let begun = Instant::now();
    let inner = exec(|| {
        assert!(WORLD.stop().is_ok());
        let inner = exec(|| -1);
        // SAFETY: the child calls what is safe in a signal handler.
        let child = unsafe { libc::fork() };
        if child == 0 {
            WORLD.after_fork_in_child();
        }
        child.min(1) + inner
    });
    let is_child = inner == -1;
    let stops = WORLD.stop().is_ok();
    if is_child {
        // SAFETY: `_exit` takes no pointers and does not return.
        unsafe { libc::_exit(i32::from(!stops)) };
    }
    let mut status = 0;
    // SAFETY: the status is writable.
    unsafe { libc::wait(&mut status) };
    assert!(stops && status == 0, "in the child: {status:#x}");
    assert!(begun.elapsed() < Duration::from_secs(4), "a stop waits for its own thread's call");
}

#[test]
fn exec_in_another_process_does_not_wait_for_the_stop_that_it_began_in() {
    let _alone = alone(Some(SIGNAL), 5000);
    let stopped = WORLD.stop().expect("all stop");
    // SAFETY: the child calls what is safe in a signal handler.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let status = exec(|| 7);
        // SAFETY: `_exit` takes no pointers and does not return.
        unsafe { libc::_exit(status) };
    }
    let mut status = 0;
    // SAFETY: the status is writable.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    drop(stopped);
    assert_eq!(libc::WEXITSTATUS(status), 7);
}
