//! A process of one thread, and one whose main thread ends before the others: what the test harness, which has more,
//! cannot show.

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use common::{Occurrences, Secret, WORLD, Workers, in_child, search};
use heaptoll_roots::RootKinds;
use heaptoll_runtime::SignalMaskGuard;

// Or each collection looks for sets of epoll and for timers.
heaptoll_roots::interpose_kernel_calls!();

/// A stop of the only thread needs no signal, and finds the main stack.
fn one_thread() {
    assert_eq!(WORLD.stop().expect("it stops").threads(), 1);
    let secret = Secret::new();
    let mut word = 0;
    secret.write(&mut word);
    assert_eq!(search(secret), Occurrences { stack: 1, ..Occurrences::default() });
    secret.erase(&mut word);
    assert!(!search(secret).any());
}

/// In a child with one thread.
fn forked() {
    let secret = Secret::new();
    let mut word = 0;
    secret.write(&mut word);
    assert_eq!(
        in_child(|| i32::from(search(secret) != Occurrences { stack: 1, ..Occurrences::default() })),
        0
    );
    secret.erase(&mut word);
}

/// Words of a main thread that waits are found by another.
fn main_waits() {
    let secret = Secret::new();
    let mut word = 0;
    secret.write(&mut word);
    let found = std::thread::spawn(move || search(secret)).join().expect("the thread");
    assert_eq!(found, Occurrences { stack: 1, ..Occurrences::default() });
    secret.erase(&mut word);
}

/// A handler that ran while the world is stopped might move the only pointer to an object from where marking has not been
/// to where it has.
fn no_handler_runs() {
    static HANDLED: AtomicUsize = AtomicUsize::new(0);
    extern "C" fn handler(_: i32) {
        HANDLED.fetch_add(1, Ordering::SeqCst);
    }
    let handled = || HANDLED.load(Ordering::SeqCst);
    let signals = [libc::SIGUSR1, common::SIGNAL];
    for signal in signals {
        // SAFETY: the handler is safe at any time.
        unsafe { libc::signal(signal, handler as *const () as usize) };
    }
    let mut before = 0;
    for open in [&[][..], &[common::SIGNAL]] {
        let blocked = SignalMaskGuard::all_but(open);
        let stop = || {
            let stopped = WORLD.stop().expect("it stops");
            for signal in signals {
                // SAFETY: the signal has a handler.
                unsafe { libc::raise(signal) };
            }
            stopped.roots(RootKinds::ALL, &[], &mut |_| assert_eq!(handled(), before)).expect("readable");
            drop(stopped);
            assert_eq!(handled(), before + open.len(), "what was open before is open again");
        };
        WORLD.on_own_stack(&blocked, stop).expect("memory");
        drop(blocked);
        before += signals.len();
        assert_eq!(handled(), before);
    }
    for signal in signals {
        // SAFETY: the default action is valid.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Stops the world and shows all roots, as a collection does whose thread blocks all signals.
fn collect() {
    let blocked = SignalMaskGuard::all_but(&[]);
    let show = || WORLD.stop().expect("it stops").roots(RootKinds::ALL, &[], &mut |_| {}).expect("readable");
    WORLD.on_own_stack(&blocked, show).expect("memory");
}

/// What a collection asks of the kernel: the numbers of its system calls, in order. `None`: this process may not be traced.
fn calls() -> Option<Vec<i64>> {
    // SAFETY: the child calls what this program has called before; it is traced from its stop on.
    let child = unsafe { libc::fork() };
    if child == 0 {
        WORLD.after_fork_in_child();
        collect();
        // SAFETY: the calls take no pointers that the kernel uses.
        unsafe {
            if libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) != 0 {
                libc::_exit(1);
            }
            libc::raise(libc::SIGSTOP);
            libc::getppid();
            collect();
            libc::getppid();
            libc::_exit(0)
        }
    }
    let (mut status, mut made, mut marks, mut is_entry) = (0, Vec::new(), 0, true);
    // SAFETY: the child is this process's and stopped whenever it is asked; the structure is the kernel's.
    unsafe {
        libc::waitpid(child, &mut status, 0);
        while libc::WIFSTOPPED(status) {
            let mut registers: libc::user_regs_struct = std::mem::zeroed();
            if libc::WSTOPSIG(status) == libc::SIGTRAP {
                libc::ptrace(libc::PTRACE_GETREGS, child, 0, &raw mut registers);
                let call = registers.orig_rax as i64;
                if is_entry && call == libc::SYS_getppid {
                    marks += 1;
                } else if is_entry && marks == 1 {
                    made.push(call);
                }
                is_entry = !is_entry;
            }
            libc::ptrace(libc::PTRACE_SYSCALL, child, 0, 0);
            libc::waitpid(child, &mut status, 0);
        }
    }
    (marks == 2).then_some(made)
}

/// A collection opens three files, lists no threads, asks for no time, and blocks signals once.
fn few_calls() {
    let Some(calls) = calls() else { return println!("system calls ... not tested: nothing can be traced") };
    let count = |call| calls.iter().filter(|&&made| made == call).count();
    let mappings = std::fs::read_to_string("/proc/self/maps").expect("the list").lines().count();
    let known = [
        (libc::SYS_rt_sigprocmask, 2..=2),
        (libc::SYS_sigaltstack, 1..=1),
        (libc::SYS_getpid, 1..=1),
        (libc::SYS_openat, 3..=3),
        (libc::SYS_close, 3..=3),
        (libc::SYS_fstat, 1..=1),
        // A page of the list of mappings each, or one query for a mapping, and one for its name; pieces of memory that lie
        // together.
        (libc::SYS_pread64, 0..=2),
        (libc::SYS_ioctl, 1..=8 + 2 * mappings),
    ];
    let is_as_known = known.iter().all(|(call, times)| times.contains(&count(*call)));
    let counted: usize = known.iter().map(|(call, _)| count(*call)).sum();
    assert!(is_as_known && counted == calls.len() && calls.len() <= 20 + 2 * mappings, "{calls:?}");
}

static PLACE: AtomicUsize = AtomicUsize::new(0);

extern "C" fn without_main(_: *mut libc::c_void) -> *mut libc::c_void {
    let main = std::process::id();
    let is_zombie = || {
        std::fs::read_to_string(format!("/proc/self/task/{main}/stat"))
            .is_ok_and(|stat| stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('Z')))
    };
    while !is_zombie() {
        std::thread::yield_now();
    }
    let workers = Workers::new(2, |_| std::thread::sleep(Duration::from_millis(1)));
    for round in 0..10 {
        let stopped = WORLD.stop().expect("all that live stop");
        let threads = stopped.threads();
        drop(stopped);
        assert_eq!(threads, 3, "in round {round}");
    }
    let secret = Secret::new();
    secret.write(PLACE.as_ptr());
    assert_eq!(search(secret), Occurrences { statics: 1, ..Occurrences::default() });
    workers.finish();
    println!("a process whose main thread has ended ... ok");
    std::process::exit(0)
}

fn main() {
    WORLD.start(None, 5000, 1);
    one_thread();
    println!("one thread ... ok");
    no_handler_runs();
    println!("a handler during a stop ... ok");
    few_calls();
    println!("system calls ... ok");
    forked();
    println!("a forked child ... ok");
    main_waits();
    println!("a main thread that waits ... ok");
    PLACE.store(0, Ordering::Relaxed);
    // SAFETY: nothing on this thread's stack is used by the other, and nothing on it has a destructor.
    unsafe {
        let mut thread = 0;
        let made = libc::pthread_create(&mut thread, std::ptr::null(), without_main, std::ptr::null_mut());
        assert_eq!(made, 0);
        libc::syscall(libc::SYS_exit, 0);
    }
}
