//! Stopping: whatever threads do, they do not run while the world is stopped, and run on after.

mod common;

use std::io::{Read, Write};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use common::{Secret, WORLD, Workers, alone, in_child, search};
use heaptoll_roots::StopError;

/// Long enough to see a thread that does not stop.
fn linger() {
    for _ in 0..100_000 {
        std::hint::spin_loop();
    }
}

#[test]
fn threads_in_tight_loops_stop() {
    let _alone = alone(None, 5000);
    let counters: Arc<Vec<AtomicU64>> = Arc::new((0..4).map(|_| AtomicU64::new(0)).collect());
    let counted = counters.clone();
    let workers = Workers::new(4, move |number| {
        for _ in 0..1000 {
            counted[number].fetch_add(1, Ordering::SeqCst);
        }
    });
    let read = || -> [u64; 4] { std::array::from_fn(|number| counters[number].load(Ordering::SeqCst)) };
    let mut last = [0; 4];
    for _ in 0..50 {
        let stopped = WORLD.stop().expect("all stop");
        assert!(stopped.threads() >= 5, "{} threads", stopped.threads());
        let before = read();
        linger();
        assert_eq!(read(), before);
        drop(stopped);
        last = before;
    }
    // All run on.
    while read().iter().zip(&last).any(|(now, then)| now <= then) {
        std::thread::yield_now();
    }
    workers.finish();
}

/// Stops the world many times while threads are in a system call over and over.
fn amid(calls: impl Fn(usize) + Send + Sync + 'static) {
    let _alone = alone(None, 5000);
    let rounds = Arc::new(AtomicU64::new(0));
    let counted = rounds.clone();
    let workers = Workers::new(3, move |number| {
        calls(number);
        counted.fetch_add(1, Ordering::SeqCst);
    });
    for _ in 0..50 {
        let stopped = WORLD.stop().expect("all stop");
        let before = rounds.load(Ordering::SeqCst);
        linger();
        assert_eq!(rounds.load(Ordering::SeqCst), before);
        drop(stopped);
        std::thread::sleep(Duration::from_micros(300));
    }
    let then = rounds.load(Ordering::SeqCst);
    while rounds.load(Ordering::SeqCst) < then + 3 {
        std::thread::yield_now();
    }
    workers.finish();
}

/// The result that POSIX allows a call that a handler has interrupted, where the remaining time is unknown.
fn interrupted_or(result: i32, expected: i32) {
    let error = std::io::Error::last_os_error().raw_os_error();
    assert!(result == expected || result == -1 && error == Some(libc::EINTR), "{result}, {error:?}");
}

#[test]
fn threads_in_nanosleep_stop() {
    amid(|_| {
        let time = libc::timespec { tv_sec: 0, tv_nsec: 2_000_000 };
        // SAFETY: the time is valid.
        assert_eq!(unsafe { libc::nanosleep(&time, std::ptr::null_mut()) }, 0);
    });
}

#[test]
fn threads_in_poll_stop() {
    // SAFETY: the array is null and of no descriptors, so that none is read or written.
    amid(|_| assert_eq!(unsafe { libc::poll(std::ptr::null_mut(), 0, 2) }, 0));
}

#[test]
fn threads_in_epoll_stop() {
    // SAFETY: `epoll_create1` takes no pointers.
    let epoll = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
    assert!(epoll >= 0);
    amid(move |_| {
        let mut event = libc::epoll_event { events: 0, u64: 0 };
        // SAFETY: the array has space for one event.
        interrupted_or(unsafe { libc::epoll_wait(epoll, &mut event, 1, 2) }, 0);
    });
}

#[test]
fn reads_and_waits_are_restarted() {
    let (mut reader, mut writer) = std::io::pipe().expect("a pipe");
    let _alone = alone(None, 5000);
    let pair = Arc::new((Mutex::new(false), Condvar::new()));
    let waited = pair.clone();
    let waiter = std::thread::spawn(move || {
        let mut done = waited.0.lock().expect("the lock");
        while !*done {
            done = waited.1.wait(done).expect("the condition");
        }
    });
    let begun = Arc::new(AtomicU32::new(0));
    let beginning = begun.clone();
    let listener = std::thread::spawn(move || {
        beginning.store(1, Ordering::SeqCst);
        let mut byte = [0_u8];
        // Not `read_exact`, which takes an interruption for nothing.
        let got = reader.read(&mut byte).expect("the read is restarted");
        (got, byte[0])
    });
    while begun.load(Ordering::SeqCst) == 0 {
        std::thread::yield_now();
    }
    for _ in 0..50 {
        drop(WORLD.stop().expect("all stop"));
        std::thread::sleep(Duration::from_micros(200));
    }
    writer.write_all(&[42]).expect("the pipe");
    assert_eq!(listener.join().expect("the reader"), (1, 42));
    *pair.0.lock().expect("the lock") = true;
    pair.1.notify_all();
    waiter.join().expect("the waiter");
}

#[test]
fn threads_that_begin_and_end_all_the_time_are_all_caught() {
    let _alone = alone(None, 10_000);
    let steps = Arc::new(AtomicU64::new(0));
    let counted = steps.clone();
    let workers = Workers::new(3, move |_| {
        let inner = counted.clone();
        let child = std::thread::spawn(move || {
            for _ in 0..2000 {
                inner.fetch_add(1, Ordering::SeqCst);
            }
        });
        for _ in 0..1000 {
            counted.fetch_add(1, Ordering::SeqCst);
        }
        child.join().expect("a child");
    });
    let mut most = 0;
    for _ in 0..300 {
        let stopped = WORLD.stop().expect("all stop");
        most = most.max(stopped.threads());
        let before = steps.load(Ordering::SeqCst);
        linger();
        assert_eq!(steps.load(Ordering::SeqCst), before);
    }
    assert!(most >= 4, "{most} threads at most");
    workers.finish();
}

/// The kernel's list of threads ends early when the one ends that it has just listed; it was once taken for complete,
/// without the calling thread in it.
#[test]
fn a_list_of_threads_that_ends_early_is_read_again() {
    let _alone = alone(None, 10_000);
    let workers = Workers::new(4, |_| std::thread::spawn(|| {}).join().expect("a child"));
    for _ in 0..1000 {
        assert_eq!(WORLD.stop().map(drop), Ok(()));
    }
    workers.finish();
}

#[test]
fn hundreds_of_threads_stop() {
    let _alone = alone(None, 10_000);
    let workers = Workers::new(300, |_| std::thread::sleep(Duration::from_millis(5)));
    for _ in 0..10 {
        let stopped = WORLD.stop().expect("all stop");
        assert!(stopped.threads() >= 301, "{} threads", stopped.threads());
    }
    workers.finish();
    // The kernel lets go of them a little after they were joined.
    let mut left = usize::MAX;
    for _ in 0..1000 {
        left = WORLD.stop().expect("all stop").threads();
        if left < 100 {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(left < 100, "{left} threads");
}

/// Whether a signal was on its way was once recorded after it was sent, when the thread might have taken it: the next
/// stop then sent none, and found out 20 ms later.
#[test]
fn a_signal_that_was_taken_at_once_is_not_thought_to_be_on_its_way() {
    let _alone = alone(None, 10_000);
    let workers = Workers::new(32, |_| std::thread::sleep(Duration::from_millis(50)));
    let fast = || {
        let stops = (0..50).map(|_| {
            let begun = std::time::Instant::now();
            drop(WORLD.stop().expect("all stop"));
            begun.elapsed()
        });
        stops.filter(|took| *took < Duration::from_millis(20)).count()
    };
    // A busy machine may delay many stops; not all the time.
    let most = (0..20).map(|_| fast()).find(|&fast| fast > 10);
    assert!(most.is_some(), "most stops found out late");
    workers.finish();
}

#[test]
fn errno_is_kept_by_the_caller_and_by_stopped_threads() {
    let _alone = alone(None, 5000);
    // SAFETY: errno's address is valid for the calling thread.
    let errno = || unsafe { libc::__errno_location() };
    let workers = Workers::new(2, move |number| {
        // SAFETY: errno's address is valid for the calling thread.
        unsafe {
            *errno() = 1000 + number as i32;
            for _ in 0..20_000 {
                std::hint::spin_loop();
            }
            assert_eq!(*errno(), 1000 + number as i32);
        }
    });
    for _ in 0..50 {
        // SAFETY: errno's address is valid for the calling thread.
        unsafe { *errno() = 77 };
        assert!(!search(Secret::new()).any());
        // SAFETY: errno's address is valid for the calling thread.
        assert_eq!(unsafe { *errno() }, 77);
    }
    workers.finish();
}

#[test]
fn the_signal_cannot_be_blocked_nor_awaited_by_way_of_the_c_library() {
    let _alone = alone(None, 5000);
    let taken = Arc::new(AtomicU32::new(0));
    let published = taken.clone();
    // The thread for signals that daemons have.
    let workers = Workers::new(1, move |_| {
        // SAFETY: the set and the time are valid.
        unsafe {
            let mut set = std::mem::zeroed();
            libc::sigfillset(&mut set);
            assert_eq!(libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()), 0);
            let time = libc::timespec { tv_sec: 0, tv_nsec: 2_000_000 };
            let signal = libc::sigtimedwait(&set, std::ptr::null_mut(), &time);
            if signal > 0 {
                published.store(signal as u32, Ordering::SeqCst);
            }
        }
    });
    for _ in 0..50 {
        drop(WORLD.stop().expect("all stop"));
        std::thread::sleep(Duration::from_micros(200));
    }
    workers.finish();
    assert_eq!(taken.load(Ordering::SeqCst), 0, "a signal was taken by the program");
}

#[test]
fn the_c_librarys_use_of_the_signal_works_on() {
    let _alone = alone(None, 5000);
    let workers = Workers::new(2, |_| std::thread::sleep(Duration::from_millis(1)));
    let groups = || -> Vec<String> {
        let tasks = std::fs::read_dir("/proc/self/task").expect("tasks");
        tasks
            .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("status")).ok())
            .filter_map(|status| status.lines().find(|line| line.starts_with("Gid:")).map(str::to_owned))
            .collect()
    };
    let child = in_child(|| {
        let workers = Workers::new(3, |_| std::thread::sleep(Duration::from_millis(1)));
        for group in 1000..1010 {
            drop(WORLD.stop().expect("all stop"));
            // SAFETY: `setresgid` takes no pointers.
            if unsafe { libc::setresgid(group, group, 0) } != 0 {
                // Only a privileged user may; then there is nothing to see.
                return 0;
            }
            let expected = format!("Gid:\t{group}\t{group}\t0\t{group}");
            let found = groups();
            if found.len() < 4 || found.iter().any(|line| *line != expected) {
                eprintln!("{found:?} instead of {expected}");
                return 1;
            }
        }
        workers.finish();
        0
    });
    workers.finish();
    assert_eq!(child, 0);
}

#[test]
fn exempt_threads_run_on() {
    let _alone = alone(None, 5000);
    let (steps, tid) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU32::new(0)));
    let (counted, published) = (steps.clone(), tid.clone());
    let workers = Workers::new(1, move |_| {
        // SAFETY: `gettid` takes no pointers and cannot fail.
        published.store(unsafe { libc::gettid() } as u32, Ordering::SeqCst);
        counted.fetch_add(1, Ordering::SeqCst);
    });
    while tid.load(Ordering::SeqCst) == 0 {
        std::thread::yield_now();
    }
    let tid = tid.load(Ordering::SeqCst) as i32;
    let stops = |stops: bool| {
        let stopped = WORLD.stop().expect("all stop");
        let before = steps.load(Ordering::SeqCst);
        linger();
        assert!(!stops || steps.load(Ordering::SeqCst) == before);
        while !stops && steps.load(Ordering::SeqCst) < before + 10 {
            std::thread::yield_now();
        }
        drop(stopped);
    };
    stops(true);
    assert!(WORLD.exempt_thread(tid));
    stops(false);
    WORLD.end_exemption(tid);
    stops(true);
    workers.finish();
    for tid in 1..=64 {
        assert!(WORLD.exempt_thread(-tid));
    }
    assert!(!WORLD.exempt_thread(-65));
    for tid in 1..=64 {
        WORLD.end_exemption(-tid);
    }
}

#[test]
fn a_second_stop_at_the_same_time_is_refused() {
    let _alone = alone(None, 5000);
    let stopped = WORLD.stop().expect("all stop");
    assert!(WORLD.stop().is_err());
    drop(stopped);
    assert!(WORLD.stop().is_ok());
}

#[test]
fn a_forked_child_stops_its_own_threads() {
    let _alone = alone(None, 5000);
    let workers = Workers::new(2, |_| std::thread::sleep(Duration::from_millis(1)));
    assert!(WORLD.stop().expect("all stop").threads() >= 3);
    let status = in_child(|| {
        if WORLD.stop().map(|stopped| stopped.threads()) != Ok(1) {
            return 1;
        }
        let workers = Workers::new(3, |_| std::thread::sleep(Duration::from_millis(1)));
        for _ in 0..20 {
            if WORLD.stop().map(|stopped| stopped.threads()) != Ok(4) {
                return 2;
            }
        }
        workers.finish();
        0
    });
    assert_eq!(status, 0);
    assert!(WORLD.stop().expect("all stop").threads() >= 3);
    workers.finish();
}

#[test]
fn a_child_without_the_fork_handler_is_refused() {
    let _alone = alone(None, 5000);
    // SAFETY: the child calls what is safe in a signal handler.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let refused = WORLD.stop().err() == Some(StopError::NotOurProcess);
        // SAFETY: `_exit` takes no pointers and does not return.
        unsafe { libc::_exit(i32::from(!refused)) };
    }
    let mut status = 0;
    // SAFETY: the status is writable.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0);
}

#[test]
fn a_child_of_vfork_is_refused() {
    static REFUSED: AtomicU32 = AtomicU32::new(0);
    extern "C" fn child(_: *mut libc::c_void) -> i32 {
        let refused = WORLD.stop().err() == Some(StopError::NotOurProcess);
        REFUSED.store(1 + u32::from(refused), Ordering::SeqCst);
        0
    }
    let _alone = alone(None, 5000);
    let stack = common::Mapping::anonymous(1 << 20);
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    let mut status = 0;
    // SAFETY: the child has a stack of its own, and its parent waits for its end.
    unsafe {
        let top = (stack.start + stack.bytes) as *mut libc::c_void;
        let tid = libc::clone(child, top, flags, std::ptr::null_mut());
        assert!(tid > 0);
        assert_eq!(libc::waitpid(tid, &mut status, 0), tid);
    }
    assert_eq!(REFUSED.load(Ordering::SeqCst), 2);
    assert!(WORLD.stop().is_ok());
}

#[test]
fn without_a_free_descriptor_it_is_refused() {
    let _alone = alone(None, 5000);
    let status = in_child(|| {
        let none = libc::rlimit { rlim_cur: 3, rlim_max: 1024 };
        // SAFETY: the limit is valid.
        unsafe {
            libc::close(0);
            libc::dup(1);
            assert_eq!(libc::setrlimit(libc::RLIMIT_NOFILE, &none), 0);
        }
        i32::from(WORLD.stop().err() != Some(StopError::NoDescriptor))
    });
    assert_eq!(status, 0);
}

#[test]
fn workers_of_the_kernel_do_not_hold_it_up() {
    let _alone = alone(None, 5000);
    // `struct io_uring_params`, with the flag that makes the kernel poll in a thread of its own.
    let mut parameters = [0_u32; 30];
    parameters[2] = 1 << 1;
    // SAFETY: the structure is as long as the kernel's.
    let ring = unsafe { libc::syscall(libc::SYS_io_uring_setup, 4, parameters.as_mut_ptr()) };
    if ring < 0 {
        // This kernel, or this sandbox, has no io_uring.
        return;
    }
    let workers = || {
        let tasks = std::fs::read_dir("/proc/self/task").expect("tasks");
        let names = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
        names.filter(|name| name.starts_with("iou-")).count()
    };
    // It gets its name a little after it has begun.
    while workers() == 0 {
        std::thread::yield_now();
    }
    let begun = std::time::Instant::now();
    for _ in 0..10 {
        assert!(WORLD.stop().is_ok());
    }
    assert!(begun.elapsed() < Duration::from_secs(4));
    // SAFETY: opened above.
    unsafe { libc::close(ring as i32) };
}

/// Languages with small stacks of their own run handlers on the alternate one.
#[test]
fn a_thread_without_a_usable_stack_stops_on_its_alternate_one() {
    let _alone = alone(None, 5000);
    let flags = Arc::new([const { common::Flag::new() }; 2]);
    let shared = flags.clone();
    // The standard library gives each thread an alternate stack.
    let thread = std::thread::spawn(move || {
        // SAFETY: the stack pointer is put back; nothing in between uses the stack, and no other signal comes.
        unsafe {
            std::arch::asm!(
                "mov r12, rsp",
                "mov rsp, 4096",
                "mov byte ptr [rcx], 1",
                "2: pause",
                "cmp byte ptr [rdx], 0",
                "je 2b",
                "mov rsp, r12",
                in("rcx") shared[0].as_ptr(),
                in("rdx") shared[1].as_ptr(),
                out("r12") _,
            );
        }
    });
    flags[0].wait();
    for _ in 0..10 {
        let secret = Secret::new();
        assert!(!search(secret).any());
    }
    flags[1].raise();
    thread.join().expect("the thread");
}

/// The flags of the stop's handler.
fn flags_of_the_handler() -> i32 {
    let mut action = [0_usize; 4];
    let place = action.as_mut_ptr();
    // SAFETY: the kernel writes four words; the C library hides this signal.
    let got = unsafe {
        libc::syscall(libc::SYS_rt_sigaction, heaptoll_roots::DEFAULT_SIGNAL, 0_usize, place, 8_usize)
    };
    assert_eq!(got, 0);
    action[1] as i32
}

/// Takes away the handlers that the standard library and earlier stops have installed.
fn reset_handlers() {
    for signal in [libc::SIGSEGV, libc::SIGBUS, heaptoll_roots::DEFAULT_SIGNAL] {
        let (default, place) = ([0_usize; 4], 0_usize);
        // SAFETY: the action is valid: the default has neither flags nor a mask.
        let got = unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, default.as_ptr(), place, 8_usize) };
        assert_eq!(got, 0);
    }
}

/// Registers an alternate stack that nothing needs, and computes until a flag is up.
fn compute_with(stack: libc::stack_t, flags: &[common::Flag; 2]) {
    // SAFETY: no handler of this process runs on alternate stacks.
    unsafe { assert_eq!(libc::sigaltstack(&stack, std::ptr::null_mut()), 0) };
    flags[0].raise();
    while !flags[1].is_up() {
        std::hint::spin_loop();
    }
    let none = libc::stack_t { ss_sp: std::ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
    // SAFETY: no handler of this process runs on alternate stacks.
    unsafe { assert_eq!(libc::sigaltstack(&none, std::ptr::null_mut()), 0) };
}

#[test]
fn threads_with_alternate_stacks_that_are_too_small_or_gone_stop_where_no_handler_uses_them() {
    let _alone = alone(None, 5000);
    let status = in_child(|| {
        reset_handlers();
        let gone = {
            let mapping = common::Mapping::anonymous(64 << 10);
            (mapping.start, mapping.bytes)
        };
        let mut small = vec![0_u8; libc::MINSIGSTKSZ];
        for (start, bytes) in [(small.as_mut_ptr() as usize, small.len()), gone] {
            let flags = Arc::new([const { common::Flag::new() }; 2]);
            let shared = flags.clone();
            let thread = std::thread::spawn(move || {
                let stack = libc::stack_t { ss_sp: start as *mut _, ss_flags: 0, ss_size: bytes };
                compute_with(stack, &shared);
            });
            flags[0].wait();
            for _ in 0..10 {
                assert!(WORLD.stop().is_ok());
            }
            flags[1].raise();
            thread.join().expect("the thread");
        }
        i32::from(flags_of_the_handler() & libc::SA_ONSTACK != 0 || small.iter().any(|&byte| byte != 0))
    });
    assert_eq!(status, 0);
}

#[test]
fn the_handler_runs_on_alternate_stacks_once_one_of_the_program_does() {
    extern "C" fn handle(_: i32) {}
    let _alone = alone(None, 5000);
    let status = in_child(|| {
        reset_handlers();
        let workers = Workers::new(1, |_| std::hint::spin_loop());
        let stop = || WORLD.stop().map(drop).is_ok();
        assert!(stop() && flags_of_the_handler() & libc::SA_ONSTACK == 0);
        // SAFETY: the action is valid, and its handler does nothing.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handle as *const () as usize;
            action.sa_flags = libc::SA_ONSTACK;
            assert_eq!(libc::sigaction(libc::SIGUSR2, &action, std::ptr::null_mut()), 0);
        }
        assert!(stop() && flags_of_the_handler() & libc::SA_ONSTACK != 0);
        workers.finish();
        0
    });
    assert_eq!(status, 0);
}

#[test]
fn signals_of_the_caller_wait_until_all_run_again() {
    static RECEIVED: AtomicU32 = AtomicU32::new(0);
    extern "C" fn receive(_: i32) {
        RECEIVED.fetch_add(1, Ordering::SeqCst);
    }
    let _alone = alone(None, 5000);
    // SAFETY: the handler is a function of this kind.
    let raise = || unsafe { assert_eq!(libc::pthread_kill(libc::pthread_self(), libc::SIGUSR1), 0) };
    // SAFETY: `receive` is a handler of this type, and the action is valid.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = receive as *const () as usize;
        assert_eq!(libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut()), 0);
    }
    raise();
    assert_eq!(RECEIVED.load(Ordering::SeqCst), 1);
    let stopped = WORLD.stop().expect("all stop");
    raise();
    assert_eq!(RECEIVED.load(Ordering::SeqCst), 1);
    drop(stopped);
    assert_eq!(RECEIVED.load(Ordering::SeqCst), 2);
}
