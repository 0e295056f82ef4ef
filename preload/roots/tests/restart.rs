//! Calls that wait continue after a stop, though by signal(7) a handler that interrupts them ends them; and a signal of
//! the program's ends them as ever.

mod common;

use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use common::{Flag, WORLD, alone};

/// How long calls with a time wait.
const WAIT: Duration = Duration::from_millis(400);
/// Longer than any test.
const NEVER: Duration = Duration::from_secs(3600);

fn timespec(time: Duration) -> libc::timespec {
    libc::timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) }
}

fn later(clock: i32, time: Duration) -> libc::timespec {
    let mut now = timespec(Duration::ZERO);
    // SAFETY: the time is writable.
    assert_eq!(unsafe { libc::clock_gettime(clock, &mut now) }, 0);
    timespec(Duration::new(now.tv_sec as u64, now.tv_nsec as u32) + time)
}

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// A thread in a call, and how the call ended.
struct Waiter {
    tid: Arc<AtomicI32>,
    thread: JoinHandle<(i64, i32, Duration)>,
}

impl Waiter {
    /// Starts it. The call returns its result; -1: `errno` is the cause.
    fn new(call: impl FnOnce() -> i64 + Send + 'static) -> Waiter {
        let tid = Arc::new(AtomicI32::new(0));
        let own = tid.clone();
        let thread = std::thread::spawn(move || {
            // SAFETY: `gettid` takes no pointers and cannot fail.
            own.store(unsafe { libc::gettid() }, Ordering::SeqCst);
            let begun = Instant::now();
            let result = call();
            (result, errno(), begun.elapsed())
        });
        Waiter { tid, thread }
    }

    /// Waits until the thread sleeps in the call of this number, which may continue as another, or has ended.
    fn await_call(&self, number: i64) {
        let wanted = [number, libc::SYS_restart_syscall].map(|number| format!("{number} "));
        while !self.thread.is_finished() {
            let path = format!("/proc/self/task/{}/syscall", self.tid.load(Ordering::SeqCst));
            if std::fs::read_to_string(path)
                .is_ok_and(|text| wanted.iter().any(|wanted| text.starts_with(wanted)))
            {
                return;
            }
            std::thread::sleep(Duration::from_micros(100));
        }
    }

    fn kill(&self, signal: i32) {
        // SAFETY: the thread is one of this process, or there is none.
        unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), self.tid.load(Ordering::SeqCst), signal) };
    }

    fn end(self) -> (i64, i32, Duration) {
        self.thread.join().expect("the waiter")
    }
}

fn stop_once() {
    drop(WORLD.stop().expect("all stop"));
}

/// Stops the world over and over while a thread is in a call that ends after [`WAIT`], and checks that it ends so.
fn amid(number: i64, expected: (i64, i32), call: impl FnOnce() -> i64 + Send + 'static) {
    let _alone = alone(None, 60_000);
    let waiter = Waiter::new(call);
    waiter.await_call(number);
    let mut stops = 0;
    while !waiter.thread.is_finished() {
        stop_once();
        stops += 1;
        // Now at once, now after a while.
        if stops % 8 == 0 {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
    let (result, error, took) = waiter.end();
    assert_eq!((result, if result < 0 { error } else { 0 }), expected, "{stops} stops, {took:?}");
    assert!(took >= WAIT, "{took:?} instead of {WAIT:?} after {stops} stops");
}

#[test]
fn nanosleep_sleeps_all_of_its_time() {
    amid(libc::SYS_clock_nanosleep, (0, 0), || {
        // SAFETY: the time is valid.
        i64::from(unsafe { libc::nanosleep(&timespec(WAIT), std::ptr::null_mut()) })
    });
}

#[test]
fn nanosleep_whose_rest_goes_to_the_request_sleeps_all_of_its_time() {
    amid(libc::SYS_clock_nanosleep, (0, 0), || {
        let mut time = timespec(WAIT);
        let time = &raw mut time;
        // SAFETY: the time is valid.
        i64::from(unsafe { libc::nanosleep(time, time) })
    });
}

#[test]
fn usleep_sleeps_all_of_its_time() {
    // SAFETY: `usleep` takes no pointers.
    amid(libc::SYS_clock_nanosleep, (0, 0), || i64::from(unsafe { libc::usleep(WAIT.as_micros() as u32) }));
}

#[test]
fn clock_nanosleep_sleeps_until_its_time() {
    amid(libc::SYS_clock_nanosleep, (0, 0), || {
        let at = later(libc::CLOCK_MONOTONIC, WAIT);
        // SAFETY: the time is valid.
        i64::from(unsafe {
            libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &at, std::ptr::null_mut())
        })
    });
}

#[test]
fn poll_waits_all_of_its_time() {
    amid(libc::SYS_poll, (0, 0), || {
        // SAFETY: the array is null and of no descriptors, so that none is read or written.
        i64::from(unsafe { libc::poll(std::ptr::null_mut(), 0, WAIT.as_millis() as i32) })
    });
}

#[test]
fn ppoll_without_a_mask_waits_all_of_its_time() {
    amid(libc::SYS_ppoll, (0, 0), || {
        // SAFETY: the array is null and of no descriptors; the call reads the time, a temporary.
        i64::from(unsafe { libc::ppoll(std::ptr::null_mut(), 0, &timespec(WAIT), std::ptr::null()) })
    });
}

#[test]
fn select_waits_all_of_its_time() {
    amid(libc::SYS_pselect6, (0, 0), || {
        let mut time = libc::timeval { tv_sec: 0, tv_usec: WAIT.as_micros() as i64 };
        let none = std::ptr::null_mut;
        // SAFETY: all sets of descriptors are null; the call reads and writes `time`, a local variable.
        i64::from(unsafe { libc::select(0, none(), none(), none(), &mut time) })
    });
}

#[test]
fn pselect_without_a_mask_waits_all_of_its_time() {
    amid(libc::SYS_pselect6, (0, 0), || {
        let none = std::ptr::null_mut;
        // SAFETY: all sets of descriptors are null; the call reads the time, a temporary.
        i64::from(unsafe { libc::pselect(0, none(), none(), none(), &timespec(WAIT), std::ptr::null()) })
    });
}

#[test]
fn sem_timedwait_waits_until_its_time() {
    amid(libc::SYS_futex, (-1, libc::ETIMEDOUT), || {
        // SAFETY: the semaphore is initialised, and does not move; the time is valid.
        unsafe {
            let mut semaphore = std::mem::zeroed();
            assert_eq!(libc::sem_init(&mut semaphore, 0, 0), 0);
            i64::from(libc::sem_timedwait(&mut semaphore, &later(libc::CLOCK_REALTIME, WAIT)))
        }
    });
}

/// Stops the world a few times while a thread is in a call, then makes the call end, and checks that it ends so.
fn until(
    number: i64,
    expected: (i64, i32),
    call: impl FnOnce() -> i64 + Send + 'static,
    end: impl FnOnce(&Waiter),
) {
    let waiter = Waiter::new(call);
    waiter.await_call(number);
    for _ in 0..20 {
        stop_once();
        waiter.await_call(number);
    }
    end(&waiter);
    let (result, error, _) = waiter.end();
    assert_eq!((result, if result < 0 { error } else { 0 }), expected);
}

#[test]
fn epoll_wait_without_a_time_waits_for_its_event() {
    let _alone = alone(None, 60_000);
    // SAFETY: descriptors of this test's own.
    unsafe {
        let (set, bell) = (libc::epoll_create1(0), libc::eventfd(0, 0));
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 7 };
        assert_eq!(libc::epoll_ctl(set, libc::EPOLL_CTL_ADD, bell, &mut event), 0);
        let call = move || {
            let mut event = libc::epoll_event { events: 0, u64: 0 };
            i64::from(libc::epoll_wait(set, &mut event, 1, -1))
        };
        until(libc::SYS_epoll_wait, (1, 0), call, |_| assert_eq!(libc::eventfd_write(bell, 1), 0));
        libc::close(set);
        libc::close(bell);
    }
}

#[test]
fn poll_without_a_time_waits_for_its_event() {
    let _alone = alone(None, 60_000);
    // SAFETY: a descriptor of this test's own; `one` is a local variable, the only element that poll reads and writes.
    unsafe {
        let bell = libc::eventfd(0, 0);
        let call = move || {
            let mut one = libc::pollfd { fd: bell, events: libc::POLLIN, revents: 0 };
            i64::from(libc::poll(&mut one, 1, -1)) * 100 + i64::from(one.revents)
        };
        let expected = (100 + i64::from(libc::POLLIN), 0);
        until(libc::SYS_poll, expected, call, |_| assert_eq!(libc::eventfd_write(bell, 1), 0));
        libc::close(bell);
    }
}

#[test]
fn sigwaitinfo_waits_for_its_signal() {
    let _alone = alone(None, 60_000);
    let call = || {
        // SAFETY: the set is valid.
        unsafe {
            let mut set = std::mem::zeroed();
            libc::sigaddset(&mut set, libc::SIGUSR2);
            assert_eq!(libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()), 0);
            i64::from(libc::sigwaitinfo(&set, std::ptr::null_mut()))
        }
    };
    let expected = (i64::from(libc::SIGUSR2), 0);
    until(libc::SYS_rt_sigtimedwait, expected, call, |waiter| waiter.kill(libc::SIGUSR2));
}

#[test]
fn semop_and_msgrcv_wait_for_what_they_want() {
    let _alone = alone(None, 60_000);
    // SAFETY: a set and a queue of this test's own; the messages have the lengths that are passed.
    unsafe {
        let set = libc::semget(libc::IPC_PRIVATE, 1, 0o600);
        let queue = libc::msgget(libc::IPC_PRIVATE, 0o600);
        if set < 0 || queue < 0 {
            // A sandbox without System V's means.
            return;
        }
        let change = |by| libc::sembuf { sem_num: 0, sem_op: by, sem_flg: 0 };
        let call = move || i64::from(libc::semop(set, &mut change(-1), 1));
        until(libc::SYS_semtimedop, (0, 0), call, |_| assert_eq!(libc::semop(set, &mut change(1), 1), 0));
        let call = move || {
            let mut message = [0_u64; 2];
            libc::msgrcv(queue, message.as_mut_ptr().cast(), 8, 0, 0) as i64
        };
        let message = [1_u64, 2];
        until(libc::SYS_msgrcv, (8, 0), call, |_| {
            assert_eq!(libc::msgsnd(queue, message.as_ptr().cast(), 8, 0), 0);
        });
        libc::semctl(set, 0, libc::IPC_RMID);
        libc::msgctl(queue, libc::IPC_RMID, std::ptr::null_mut());
    }
}

static HANDLED: AtomicU32 = AtomicU32::new(0);

extern "C" fn handle(_: i32) {
    HANDLED.fetch_add(1, Ordering::SeqCst);
}

fn handle_user_signal() {
    // SAFETY: the handler is a function of this kind.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handle as *const () as usize;
        assert_eq!(libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut()), 0);
    }
}

/// Sends a thread in a call a signal of the program's, between stops or during one, and checks that it interrupts.
fn interrupted(number: i64, call: impl FnOnce() -> i64 + Clone + Send + 'static) {
    let _alone = alone(None, 60_000);
    handle_user_signal();
    for during in [false, true] {
        let handled = HANDLED.load(Ordering::SeqCst);
        let ended = (-1, libc::EINTR);
        until(number, ended, call.clone(), |waiter| {
            let stopped = during.then(|| WORLD.stop().expect("all stop"));
            waiter.kill(libc::SIGUSR1);
            drop(stopped);
        });
        assert_eq!(HANDLED.load(Ordering::SeqCst), handled + 1, "during a stop: {during}");
    }
}

#[test]
fn a_signal_of_the_programs_ends_nanosleep_with_the_rest_of_its_time() {
    interrupted(libc::SYS_clock_nanosleep, || {
        let mut rest = timespec(Duration::ZERO);
        let begun = Instant::now();
        // SAFETY: both times are valid.
        let result = unsafe { libc::nanosleep(&timespec(NEVER), &mut rest) };
        let error = errno();
        let rest = Duration::new(rest.tv_sec as u64, rest.tv_nsec as u32);
        assert!(rest < NEVER && rest + begun.elapsed() >= NEVER, "{rest:?} are left");
        // SAFETY: errno's address is valid for the calling thread.
        unsafe { *libc::__errno_location() = error };
        i64::from(result)
    });
}

#[test]
fn a_signal_of_the_programs_ends_poll() {
    // SAFETY: the array is null and of no descriptors, so that none is read or written.
    interrupted(libc::SYS_poll, || i64::from(unsafe { libc::poll(std::ptr::null_mut(), 0, -1) }));
}

#[test]
fn a_signal_of_the_programs_ends_select() {
    let none = std::ptr::null_mut;
    interrupted(libc::SYS_pselect6, move || {
        // SAFETY: all sets of descriptors and the time are null: nothing is read or written.
        i64::from(unsafe { libc::select(0, none(), none(), none(), std::ptr::null_mut()) })
    });
}

/// Blocked while its thread is stopped, it is kept by the kernel like any other.
#[test]
fn a_signal_that_is_ignored_ends_no_call() {
    let _alone = alone(None, 60_000);
    for (signal, ignore) in [(libc::SIGCHLD, false), (libc::SIGURG, false), (libc::SIGUSR2, true)] {
        if ignore {
            // SAFETY: no handler of this crate runs for it.
            unsafe { libc::signal(signal, libc::SIG_IGN) };
        }
        let waiter = Waiter::new(|| {
            let (mut time, none) = (libc::timeval { tv_sec: 0, tv_usec: 400_000 }, std::ptr::null_mut);
            // SAFETY: all sets of descriptors are null; the call reads and writes `time`, a local variable.
            i64::from(unsafe { libc::select(0, none(), none(), none(), &mut time) })
        });
        waiter.await_call(libc::SYS_pselect6);
        let stopped = WORLD.stop().expect("all stop");
        waiter.kill(signal);
        drop(stopped);
        let (result, error, took) = waiter.end();
        assert_eq!(result, 0, "signal {signal}: error {error} after {took:?}");
    }
}

#[test]
fn a_signal_of_the_programs_ends_pause() {
    // SAFETY: `pause` takes no pointers.
    interrupted(libc::SYS_pause, || i64::from(unsafe { libc::pause() }));
}

/// Had its signal been handled just before a stop, it would wait for ever.
#[test]
fn sigsuspend_is_left_alone() {
    let _alone = alone(None, 60_000);
    let waiter = Waiter::new(|| {
        // SAFETY: the set is valid.
        i64::from(unsafe { libc::sigsuspend(&std::mem::zeroed()) })
    });
    waiter.await_call(libc::SYS_rt_sigsuspend);
    stop_once();
    let (result, error, _) = waiter.end();
    assert_eq!((result, error), (-1, libc::EINTR));
}

/// The handler is left without the kernel's help.
#[test]
fn registers_flags_and_the_red_zone_are_kept() {
    let _alone = alone(None, 60_000);
    let flag = Arc::new(Flag::new());
    let own = flag.clone();
    let waiter = Waiter::new(move || {
        while !own.is_up() {
            assert_eq!(sleep_and_compare(), 0, "something has changed");
        }
        0
    });
    let times = if std::arch::is_x86_feature_detected!("avx") { 300 } else { 0 };
    for _ in 0..times {
        waiter.await_call(libc::SYS_nanosleep);
        stop_once();
    }
    flag.raise();
    assert_eq!(waiter.end().0, 0);
}

/// Sleeps 1 ms with a pattern in all registers that a system call keeps, and under the stack pointer; returns the
/// number of those that changed, and 1000 more if the sleep was interrupted.
fn sleep_and_compare() -> u64 {
    let time = timespec(Duration::from_millis(1));
    let pattern: [u64; 4] = [0x0123_4567_89ab_cdef, !5, 6, 0x8000_0000_0000_0007];
    let mut changed = 0_u64;
    if !std::arch::is_x86_feature_detected!("avx") {
        return 0;
    }
    // SAFETY: reads the time and the pattern, writes the count, keeps what is not named.
    unsafe {
        std::arch::asm!(
            "push rbx",
            "push rbp",
            "sub rsp, 256",
            "mov [rsp], {changed}",
            "mov [rsp + 8], {pattern}",
            "vmovdqu ymm0, [{pattern}]",
            "vmovdqu ymm7, [{pattern}]",
            "vmovdqu ymm15, [{pattern}]",
            "mov rbx, 11", "mov rbp, 12", "mov r8, 13", "mov r9, 14", "mov r10, 15", "mov r12, 16", "mov r13, 17",
            "mov r14, 18", "mov r15, 19", "mov rdx, 20",
            "mov [rsp - 8], rbx", "mov [rsp - 64], rbp", "mov [rsp - 128], r15",
            // Sets carry and overflow.
            "mov al, 0x7f", "add al, 1", "stc",
            "mov eax, 35",
            "syscall",
            "setnc byte ptr [rsp + 16]",
            "setno byte ptr [rsp + 17]",
            "mov rcx, 0",
            "cmp rbx, 11", "je 2f", "inc rcx", "2:",
            "cmp rbp, 12", "je 2f", "inc rcx", "2:",
            "cmp r8, 13", "je 2f", "inc rcx", "2:",
            "cmp r9, 14", "je 2f", "inc rcx", "2:",
            "cmp r10, 15", "je 2f", "inc rcx", "2:",
            "cmp r12, 16", "je 2f", "inc rcx", "2:",
            "cmp r13, 17", "je 2f", "inc rcx", "2:",
            "cmp r14, 18", "je 2f", "inc rcx", "2:",
            "cmp r15, 19", "je 2f", "inc rcx", "2:",
            "cmp rdx, 20", "je 2f", "inc rcx", "2:",
            "cmp qword ptr [rsp - 8], 11", "je 2f", "inc rcx", "2:",
            "cmp qword ptr [rsp - 64], 12", "je 2f", "inc rcx", "2:",
            "cmp qword ptr [rsp - 128], 19", "je 2f", "inc rcx", "2:",
            "cmp word ptr [rsp + 16], 0", "je 2f", "inc rcx", "2:",
            "cmp rax, 0", "je 2f", "add rcx, 1000", "2:",
            "mov r12, [rsp + 8]",
            "vmovdqu ymm1, [r12]",
            "vxorps ymm0, ymm0, ymm1",
            "vxorps ymm7, ymm7, ymm1",
            "vxorps ymm15, ymm15, ymm1",
            "vorps ymm0, ymm0, ymm7",
            "vorps ymm0, ymm0, ymm15",
            "vptest ymm0, ymm0", "jz 2f", "inc rcx", "2:",
            "mov r12, [rsp]",
            "mov [r12], rcx",
            "add rsp, 256",
            "pop rbp",
            "pop rbx",
            changed = in(reg) &raw mut changed,
            pattern = in(reg) pattern.as_ptr(),
            inout("rdi") &raw const time => _,
            inout("rsi") 0_usize => _,
            out("rax") _, out("rcx") _, out("rdx") _, out("r8") _, out("r9") _, out("r10") _, out("r11") _,
            out("r12") _, out("r13") _, out("r14") _, out("r15") _, out("ymm0") _, out("ymm1") _, out("ymm7") _,
            out("ymm15") _,
        );
    }
    changed
}

#[test]
fn a_thread_without_an_alternate_stack_sleeps_all_of_its_time() {
    amid(libc::SYS_poll, (0, 0), || {
        let none = libc::stack_t { ss_sp: std::ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
        // SAFETY: the alternate stack is not in use; the array is null and of no descriptors.
        unsafe {
            assert_eq!(libc::sigaltstack(&none, std::ptr::null_mut()), 0);
            i64::from(libc::poll(std::ptr::null_mut(), 0, WAIT.as_millis() as i32))
        }
    });
}

#[test]
fn a_thread_that_was_stopped_in_its_sleep_can_be_cancelled() {
    extern "C" fn sleep(_: *mut libc::c_void) -> *mut libc::c_void {
        // SAFETY: the time is valid.
        unsafe { libc::nanosleep(&timespec(NEVER), std::ptr::null_mut()) };
        std::ptr::null_mut()
    }
    unsafe extern "C" {
        fn pthread_cancel(thread: libc::pthread_t) -> i32;
    }
    let _alone = alone(None, 60_000);
    for during in [false, true] {
        // SAFETY: the thread is joined below; the calls write its number and its result to local variables.
        unsafe {
            let mut thread = 0;
            assert_eq!(libc::pthread_create(&mut thread, std::ptr::null(), sleep, std::ptr::null_mut()), 0);
            for _ in 0..20 {
                stop_once();
                std::thread::sleep(Duration::from_millis(1));
            }
            let stopped = during.then(|| WORLD.stop().expect("all stop"));
            assert_eq!(pthread_cancel(thread), 0);
            drop(stopped);
            let mut result = std::ptr::null_mut();
            assert_eq!(libc::pthread_join(thread, &mut result), 0);
            assert_eq!(result as isize, -1, "PTHREAD_CANCELED");
        }
    }
}

/// The kernel does not know the time for which a thread is stopped in a handler: `select` once waited so much longer.
#[test]
fn the_time_of_stops_is_taken_off_what_select_waits() {
    let _alone = alone(None, 60_000);
    let rest = Arc::new(Mutex::new(Duration::MAX));
    let left = rest.clone();
    let waiter = Waiter::new(move || {
        let mut time = libc::timespec { tv_sec: 3600, tv_nsec: 0 };
        let none = std::ptr::null_mut::<libc::c_void>;
        let time = &raw mut time;
        let result: i64;
        // SAFETY: all sets of descriptors are null; the call reads and writes `time`, a local variable. The C library
        // makes the same call, but does not pass on what is left of the time.
        unsafe {
            std::arch::asm!(
                "mov eax, 270",
                "syscall",
                out("rax") result,
                in("rdi") 0, in("rsi") none(), in("rdx") none(), in("r10") none(), in("r8") time, in("r9") none(),
                out("rcx") _, out("r11") _,
            );
            *left.lock().expect("the rest") = Duration::new((*time).tv_sec as u64, (*time).tv_nsec as u32);
        }
        assert_eq!(result, -i64::from(libc::EINTR));
        0
    });
    let begun = Instant::now();
    waiter.await_call(libc::SYS_pselect6);
    let stopped = WORLD.stop().expect("all stop");
    std::thread::sleep(Duration::from_millis(200));
    drop(stopped);
    waiter.await_call(libc::SYS_pselect6);
    handle_user_signal();
    waiter.kill(libc::SIGUSR1);
    waiter.end();
    let rest = *rest.lock().expect("the rest");
    assert!(rest <= Duration::from_millis(3_599_800), "{rest:?} are left");
    assert!(rest + begun.elapsed() >= Duration::from_secs(3600), "{rest:?} are left");
}
