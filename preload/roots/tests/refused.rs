//! Refusals: a thread that cannot stop is named in time, everything runs on, and what was sent to it does no harm
//! later. The signal is one that a program can block.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use common::{Flag, SIGNAL, WORLD, Workers, alone, in_child};
use heaptoll_roots::{StopError, UnstoppedThread};

/// Long enough for a busy machine to let every thread run.
const PATIENCE_MS: u32 = 1500;

fn start() -> std::sync::MutexGuard<'static, ()> {
    alone(Some(SIGNAL), PATIENCE_MS)
}

/// Blocks or unblocks the signal for the calling thread.
fn mask(how: i32) {
    // SAFETY: the set is valid.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, SIGNAL);
        assert_eq!(libc::pthread_sigmask(how, &set, std::ptr::null_mut()), 0);
    }
}

fn tid() -> i32 {
    // SAFETY: `gettid` takes no pointers and cannot fail.
    unsafe { libc::gettid() }
}

/// A thread that does something with the signal blocked, and is known to have blocked it.
fn helper(work: impl FnOnce() + Send + 'static) -> std::thread::JoinHandle<()> {
    let (sender, receiver) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        mask(libc::SIG_BLOCK);
        sender.send(()).expect("the test receives");
        work();
    });
    receiver.recv().expect("it blocks");
    thread
}

/// Stops, which fails because of one thread, and returns that thread and how long the stop took.
fn refusal() -> (UnstoppedThread, Duration) {
    let begun = Instant::now();
    match WORLD.stop() {
        Err(StopError::Thread(thread)) => (thread, begun.elapsed()),
        Err(other) => panic!("{other:?}"),
        Ok(stopped) => {
            let threads = stopped.threads();
            drop(stopped);
            panic!("{threads} threads stopped after {:?}", begun.elapsed())
        }
    }
}

/// A thread of that name which blocks the signal until [`Blocker::unblock`].
struct Blocker {
    flags: Arc<[Flag; 3]>,
    tid: i32,
    thread: std::thread::JoinHandle<()>,
}

impl Blocker {
    fn new(name: &str) -> Blocker {
        let flags = Arc::new([const { Flag::new() }; 3]);
        let (shared, (sender, receiver)) = (flags.clone(), std::sync::mpsc::channel());
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            mask(libc::SIG_BLOCK);
            sender.send(tid()).expect("the test receives");
            shared[0].wait();
            mask(libc::SIG_UNBLOCK);
            shared[1].raise();
            shared[2].wait();
        });
        Blocker { flags, tid: receiver.recv().expect("its number"), thread: thread.expect("a thread") }
    }

    fn unblock(&self) {
        self.flags[0].raise();
        self.flags[1].wait();
    }

    fn finish(self) {
        self.flags[0].raise();
        self.flags[2].raise();
        self.thread.join().expect("the thread ends");
    }
}

#[test]
fn a_thread_that_blocks_the_signal_is_named_and_all_run_on() {
    let _alone = start();
    let rounds = Arc::new(AtomicU64::new(0));
    let counted = rounds.clone();
    let workers = Workers::new(2, move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
    });
    let blocker = Blocker::new("the blocker of it all");
    // Once: meanwhile the workers take all processors.
    let (thread, time) = refusal();
    assert_eq!(thread.tid, blocker.tid);
    assert_eq!(&thread.name, b"the blocker of \0");
    assert!(matches!(thread.state, 'R' | 'S'), "{}", thread.state);
    let patience = Duration::from_millis(PATIENCE_MS.into());
    // A busy machine may take its time.
    assert!((patience..patience * 10).contains(&time), "{time:?}");
    let then = rounds.load(Ordering::SeqCst);
    while rounds.load(Ordering::SeqCst) < then + 10 {
        std::thread::yield_now();
    }
    // What was sent arrives now, when no stop is under way.
    blocker.unblock();
    for _ in 0..20 {
        assert!(WORLD.stop().expect("all stop").threads() >= 4);
    }
    blocker.finish();
    workers.finish();
}

#[test]
fn a_stop_may_be_less_patient() {
    let _alone = start();
    let blocker = Blocker::new("slow");
    // On a busy machine any thread may be the one that has not stopped by then, and the caller itself may be late.
    let refused_in_time = (0..50).any(|_| {
        let begun = Instant::now();
        let refused = WORLD.stop_within(50).err().expect("one never stops");
        let took = begun.elapsed().as_millis();
        assert!(took >= 50, "{took} ms");
        matches!(refused, StopError::Thread(thread) if thread.tid == blocker.tid) && took < PATIENCE_MS.into()
    });
    assert!(refused_in_time);
    blocker.unblock();
    assert!(WORLD.stop().is_ok());
    blocker.finish();
}

#[test]
fn however_often_it_is_refused_one_signal_waits() {
    let _alone = start();
    let flag = Arc::new(Flag::new());
    let (shared, (sender, receiver)) = (flag.clone(), std::sync::mpsc::channel());
    let thread = std::thread::spawn(move || {
        mask(libc::SIG_BLOCK);
        sender.send(()).expect("the test receives");
        shared.wait();
        let mut count = 0;
        // SAFETY: the set and the time are valid.
        unsafe {
            let mut set = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            libc::sigaddset(&mut set, SIGNAL);
            let time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            while libc::sigtimedwait(&set, std::ptr::null_mut(), &time) == SIGNAL {
                count += 1;
            }
        }
        count
    });
    receiver.recv().expect("it blocks");
    refusal();
    refusal();
    flag.raise();
    assert_eq!(thread.join().expect("the thread"), 1);
}

#[test]
fn a_stale_signal_that_arrives_in_a_later_stop_stops_the_thread() {
    let _alone = start();
    let blocker = Blocker::new("late");
    assert_eq!(refusal().0.tid, blocker.tid);
    let flags = blocker.flags.clone();
    let helper = helper(move || {
        std::thread::sleep(Duration::from_millis(50));
        flags[0].raise();
        mask(libc::SIG_UNBLOCK);
    });
    // Both unblock it while the stop waits for them.
    assert!(WORLD.stop().expect("all stop").threads() >= 3);
    helper.join().expect("the helper");
    blocker.finish();
}

#[test]
fn a_parent_of_vfork_is_named_and_not_waited_for() {
    static CHILD: Flag = Flag::new();
    static END: Flag = Flag::new();
    extern "C" fn child(_: *mut libc::c_void) -> i32 {
        CHILD.raise();
        let time = libc::timespec { tv_sec: 0, tv_nsec: 10_000_000 };
        // Half a minute, if the test fails.
        for _ in 0..3000 {
            if END.is_up() {
                break;
            }
            // SAFETY: the time is valid.
            unsafe { libc::nanosleep(&time, std::ptr::null_mut()) };
        }
        0
    }
    let _alone = start();
    let parent = Arc::new(AtomicU32::new(0));
    let published = parent.clone();
    let thread = std::thread::spawn(move || {
        let stack = common::Mapping::anonymous(1 << 16);
        published.store(tid() as u32, Ordering::SeqCst);
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        // SAFETY: the child has a stack of its own, and its parent waits for its end.
        unsafe {
            let top = (stack.start + stack.bytes) as *mut libc::c_void;
            let child = libc::clone(child, top, flags, std::ptr::null_mut());
            assert!(child > 0);
            let mut status = 0;
            while libc::waitpid(child, &mut status, 0) != child {}
        }
    });
    let state = || {
        let tid = parent.load(Ordering::SeqCst);
        let text = std::fs::read_to_string(format!("/proc/self/task/{tid}/stat")).unwrap_or_default();
        text.rsplit(") ").next().and_then(|rest| rest.chars().next())
    };
    CHILD.wait();
    // The child may run before its parent waits for it.
    let until = Instant::now() + Duration::from_secs(10);
    while state() != Some('D') && Instant::now() < until {
        std::thread::yield_now();
    }
    assert_eq!(state(), Some('D'));
    // Longer than the child lives.
    let refused = WORLD.stop_within(60_000).err();
    END.raise();
    let Some(StopError::Vfork(thread_named)) = refused else { panic!("{refused:?}") };
    assert_eq!((thread_named.tid as u32, thread_named.state), (parent.load(Ordering::SeqCst), 'D'));
    thread.join().expect("the parent");
    assert!(WORLD.stop().is_ok());
}

static RECEIVED: AtomicU32 = AtomicU32::new(0);

extern "C" fn receive(_: i32) {
    RECEIVED.fetch_add(1, Ordering::SeqCst);
}

/// Makes the program take the signal for itself.
fn take(handler: usize) {
    // SAFETY: the handler is a function or one of the two constants.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler;
        assert_eq!(libc::sigaction(SIGNAL, &action, std::ptr::null_mut()), 0);
    }
}

#[test]
fn a_handler_that_the_program_replaces_is_put_back_and_its_own_signals_handed_on() {
    let _alone = start();
    let workers = Workers::new(2, |_| std::thread::sleep(Duration::from_millis(1)));
    for handler in [libc::SIG_IGN, libc::SIG_DFL, receive as *const () as usize] {
        take(handler);
        for _ in 0..5 {
            assert!(WORLD.stop().expect("all stop").threads() >= 4);
        }
    }
    let before = RECEIVED.load(Ordering::SeqCst);
    // SAFETY: the handler is installed.
    unsafe {
        assert_eq!(libc::raise(SIGNAL), 0);
        let value = libc::sigval { sival_ptr: std::ptr::without_provenance_mut(1) };
        assert_eq!(libc::sigqueue(libc::getpid(), SIGNAL, value), 0);
    }
    while RECEIVED.load(Ordering::SeqCst) < before + 2 {
        std::thread::yield_now();
    }
    assert!(WORLD.stop().is_ok());
    workers.finish();
}

#[test]
fn a_signal_that_is_ignored_while_it_is_needed_is_sent_again() {
    let _alone = start();
    let blocker = Blocker::new("ignorant");
    let flags = blocker.flags.clone();
    let helper = helper(move || {
        std::thread::sleep(Duration::from_millis(5));
        // This throws away what waits for either thread.
        take(libc::SIG_IGN);
        // Before this thread is stopped itself.
        flags[0].raise();
        mask(libc::SIG_UNBLOCK);
    });
    let stopped = WORLD.stop().map(|stopped| stopped.threads());
    helper.join().expect("the helper");
    blocker.finish();
    assert!(matches!(stopped, Ok(3..)), "{stopped:?}");
}

#[test]
fn forged_signals_do_no_harm() {
    let _alone = start();
    let workers = Workers::new(2, |_| std::thread::sleep(Duration::from_millis(1)));
    let mark = 0x7469_7468_usize << 32;
    for round in 0..50_usize {
        for value in [mark | round, mark | 0xffff_ffff, round] {
            // SAFETY: the handler is installed.
            unsafe {
                let value = libc::sigval { sival_ptr: std::ptr::without_provenance_mut(value) };
                libc::sigqueue(libc::getpid(), SIGNAL, value);
            }
        }
        assert!(WORLD.stop().expect("all stop").threads() >= 4);
    }
    workers.finish();
}

#[test]
fn a_full_queue_of_signals_is_waited_for() {
    let _alone = start();
    let status = in_child(|| {
        let workers = Workers::new(1, |_| std::thread::sleep(Duration::from_millis(1)));
        let limit = |count| {
            // SAFETY: the limits are valid.
            unsafe {
                let mut limits = std::mem::zeroed();
                assert_eq!(libc::getrlimit(libc::RLIMIT_SIGPENDING, &mut limits), 0);
                limits.rlim_cur = count;
                assert_eq!(libc::setrlimit(libc::RLIMIT_SIGPENDING, &limits), 0);
            }
        };
        limit(0);
        if WORLD.stop().err() != Some(StopError::NoQueue) {
            return 1;
        }
        let end = Arc::new(Flag::new());
        let shared = end.clone();
        let helper = helper(move || {
            std::thread::sleep(Duration::from_millis(50));
            limit(1000);
            mask(libc::SIG_UNBLOCK);
            shared.wait();
        });
        if WORLD.stop().map_or(0, |stopped| stopped.threads()) != 3 {
            return 2;
        }
        end.raise();
        helper.join().expect("the helper");
        workers.finish();
        0
    });
    assert_eq!(status, 0);
}

#[test]
fn a_thread_that_ends_while_it_is_waited_for_is_not_missed() {
    let _alone = start();
    for _ in 0..5 {
        let flag = Arc::new(Flag::new());
        let (shared, (sender, receiver)) = (flag.clone(), std::sync::mpsc::channel());
        let thread = std::thread::spawn(move || {
            mask(libc::SIG_BLOCK);
            sender.send(()).expect("the test receives");
            shared.wait();
            std::thread::sleep(Duration::from_millis(20));
        });
        receiver.recv().expect("it blocks");
        flag.raise();
        // It never unblocks the signal, but ends in time.
        assert_eq!(WORLD.stop().map(drop), Ok(()));
        thread.join().expect("the thread");
    }
}
