//! The roles of the test program as a child of itself.

use std::env;
use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use heaptoll_alloc_ring::{RingEvent, Rings, Shared, Sink, Tap};

use crate::common::{Event, Word, tiny};

static RINGS: Rings<Word> = Rings::new();

/// Counters that a child increments and its parent reads, also when the child has been killed.
pub struct Counters {
    pub path: PathBuf,
    numbers: &'static [AtomicU64],
}

impl Counters {
    pub fn create() -> Counters {
        static FILES: AtomicU64 = AtomicU64::new(0);
        let name = format!("ring-counters-{}-{}", std::process::id(), FILES.fetch_add(1, Ordering::Relaxed));
        let path = env::temp_dir().join(name);
        std::fs::write(&path, [0u8; 4096]).expect("the temporary folder can be written to");
        Counters { numbers: Counters::map(&path), path }
    }

    fn map(path: &PathBuf) -> &'static [AtomicU64] {
        let file = OpenOptions::new().read(true).write(true).open(path).expect("it is there");
        // SAFETY: with a null address the kernel maps memory that nothing uses, never to be unmapped; the file has a
        // page, which holds 512 atomics.
        unsafe {
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            let map =
                libc::mmap(std::ptr::null_mut(), 4096, protection, libc::MAP_SHARED, file.as_raw_fd(), 0);
            assert_ne!(map, libc::MAP_FAILED);
            std::slice::from_raw_parts(map.cast(), 512)
        }
    }

    fn inherited() -> &'static [AtomicU64] {
        match env::var_os("RING_COUNTERS") {
            Some(path) => Counters::map(&path.into()),
            None => Vec::leak((0..512).map(|_| AtomicU64::new(0)).collect()),
        }
    }

    pub fn all(&self) -> Vec<u64> {
        self.numbers.iter().map(|number| number.load(Ordering::SeqCst)).collect()
    }
}

impl Drop for Counters {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The `n`th event. Successive ones have all lengths that occur.
pub fn numbered(n: u64) -> Event {
    let address = (n + 1) * 8;
    match n % 7 {
        3 => Event::Alloc {
            address,
            size: 1 << 20,
            usable: 1 << 21,
            kind: 2,
            align_log2: 12,
            site: 77,
            latency_ns: 0,
        },
        5 => Event::Free { address, delete: n.is_multiple_of(2), latency_ns: 0 },
        6 => Event::ResizeEnd { address, size: n % 3000, usable: n % 5000, site: 0, latency_ns: 9 },
        _ => Event::Alloc {
            address,
            size: n % 1500,
            usable: n % 1500 + n % 3,
            kind: 0,
            align_log2: 0,
            site: 0,
            latency_ns: 0,
        },
    }
}

/// Which of [`numbered`] an event is; it must equal that one.
pub fn number(event: &Event) -> u64 {
    let address = match *event {
        Event::Alloc { address, .. } | Event::Free { address, .. } | Event::ResizeEnd { address, .. } => {
            address
        }
        ref other => panic!("{other:?} was never emitted"),
    };
    let n = address / 8 - 1;
    assert_eq!(*event, numbered(n), "emitted otherwise");
    n
}

/// Records the `n`th event, if a tool is attached.
fn emit(n: u64) {
    if let Some(producer) = RINGS.thread() {
        numbered(n).emit(producer, false);
    }
}

fn emit_all(numbers: std::ops::Range<u64>) {
    numbers.for_each(emit);
}

pub fn play(role: &str) {
    let words: Vec<&str> = role.split(' ').collect();
    let value = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok()).expect("a number");
    let counters = Counters::inherited();
    match words[0] {
        "emit" => {
            for n in 0..value(1) {
                emit(n);
                counters[0].store(n + 1, Ordering::SeqCst);
            }
        }
        "slow" => {
            for n in 0..value(1) {
                emit(n);
                if n % 20 == 0 {
                    thread::sleep(Duration::from_millis(1));
                }
            }
        }
        "forever" => {
            for n in 0.. {
                emit(n);
                counters[0].store(n + 1, Ordering::SeqCst);
            }
        }
        "threads-forever" => {
            for thread in 0..value(1) {
                thread::spawn(move || {
                    for n in 0.. {
                        let event = Event::Alloc {
                            address: (n + 1) * 8,
                            size: thread,
                            usable: thread,
                            kind: 0,
                            align_log2: 0,
                            site: 0,
                            latency_ns: 0,
                        };
                        if let Some(producer) = RINGS.thread() {
                            event.emit(producer, false);
                        }
                        counters[thread as usize].store(n + 1, Ordering::SeqCst);
                    }
                });
            }
            loop {
                thread::park();
            }
        }
        "tool" => tool(),
        "forks" => {
            emit_all(0..2);
            for n in 0..value(1) {
                let child = fork(|| emit_all(0..value(2)));
                wait(child);
                if n == value(1) / 2 {
                    emit(2);
                }
            }
            emit_all(3..5);
        }
        "forks-at-once" => {
            emit_all(0..5);
            let ((halfway, arrive), (reader, writer)) = (pipe(), pipe());
            let children: Vec<i32> = (0..value(1))
                .map(|_| {
                    fork(|| {
                        emit_all(0..value(2) / 2);
                        close(arrive);
                        close(writer);
                        // Until the parent closes its end, too.
                        // SAFETY: read writes at most one byte to `NOTHING`, a byte that this process's only thread
                        // uses.
                        unsafe { libc::read(reader, (&raw mut NOTHING).cast(), 1) };
                        emit_all(value(2) / 2..value(2));
                    })
                })
                .collect();
            close(arrive);
            // Until all have come so far, each with an entry or left out.
            // SAFETY: read writes at most one byte to `NOTHING`, a byte that this process's only thread uses.
            unsafe { libc::read(halfway, (&raw mut NOTHING).cast(), 1) };
            close(writer);
            children.into_iter().for_each(wait);
        }
        "clone" => {
            emit_all(0..value(1) / 2);
            // SAFETY: clone with no flags but SIGCHLD is fork without the C library; this process has one thread.
            let child = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) } as i32;
            if child == 0 {
                emit_all(0..value(1));
                exit();
            }
            emit_all(value(1) / 2..value(1));
            wait(child);
        }
        "clone-within" => {
            emit(0);
            let child = fork(|| {
                // As for a call with a new call stack, which is defined while the call's own handle exists.
                let outer = RINGS.thread().expect("attached");
                RINGS.thread().expect("attached").define_site(7, &[4096]);
                numbered(0).emit(outer, false);
            });
            wait(child);
        }
        "vfork" => {
            let count = value(1);
            emit_all(0..count);
            vfork(&|| emit_all(count..2 * count));
            emit_all(2 * count..3 * count);
        }
        "exec" => {
            emit_all(0..value(1));
            let error = Command::new(env::current_exe().expect("a path"))
                .env("RING_ROLE", words[2..].join(" "))
                .exec();
            panic!("{error}");
        }
        "threads-in-turn" => {
            emit_all(0..2);
            for _ in 0..value(1) {
                let count = value(2);
                thread::Builder::new()
                    .stack_size(64 << 10)
                    .spawn(move || emit_all(0..count))
                    .expect("a thread")
                    .join()
                    .expect("ends");
            }
        }
        "threads-at-once" => {
            emit_all(0..2);
            let count = value(2);
            let barrier = Arc::new(Barrier::new(value(1) as usize));
            let threads: Vec<_> = (0..value(1))
                .map(|_| {
                    let barrier = Arc::clone(&barrier);
                    let work = move || {
                        emit_all(0..count / 2);
                        barrier.wait();
                        emit_all(count / 2..count);
                    };
                    thread::Builder::new().stack_size(64 << 10).spawn(work).expect("a thread")
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().expect("ends"));
        }
        "chroot" => {
            emit(0);
            let folder = env::temp_dir().join(format!("ring-root-{}", std::process::id()));
            std::fs::create_dir(&folder).expect("the temporary folder can be written to");
            let moved = std::os::unix::fs::chroot(&folder);
            let _ = std::fs::remove_dir(&folder);
            if moved.is_err() {
                std::process::exit(77);
            }
            emit_all(1..value(1));
        }
        "closed" => {
            emit(0);
            let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            // SAFETY: setrlimit reads `none`, a local variable; this process uses no descriptor from here on.
            unsafe {
                libc::setrlimit(libc::RLIMIT_NOFILE, &none);
                libc::close_range(0, u32::MAX, 0);
            }
            emit_all(1..value(1));
            exit();
        }
        "limited" => {
            let limit = libc::rlimit { rlim_cur: 512 << 20, rlim_max: 512 << 20 };
            // SAFETY: setrlimit reads `limit`, a local variable.
            assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) }, 0);
            emit_all(0..value(1));
        }
        "signals" => signals(value(1), counters),
        other => panic!("no role {other}"),
    }
}

/// A sink that discards all events.
struct Discard;

impl Sink for Discard {
    fn event(&mut self, _thread: u32, _event: RingEvent<'_>) {}
    fn thread(&mut self, _thread: u32, _tid: i32) {}
}

/// Drains until it is killed.
fn tool() {
    let mut shared = Shared::create(&tiny(12, 16)).expect("a file can be made");
    println!("{}", shared.path().display());
    let mut taps = Vec::new();
    loop {
        shared.tick();
        taps.extend(shared.arrivals().iter().map(|arrival| Tap::new(&shared, arrival.index)));
        for tap in &mut taps {
            tap.drain(1 << 20, &mut Discard);
        }
    }
}

static mut NOTHING: u8 = 0;
static HANDLED: AtomicU64 = AtomicU64::new(0);

/// Records events while a signal handler records others.
fn signals(count: u64, counters: &'static [AtomicU64]) {
    extern "C" fn handler(_: i32) {
        if let Some(producer) = RINGS.thread() {
            Event::Failed { kind: 1, size: 5, site: 0, latency_ns: 0 }.emit(producer, false);
            HANDLED.fetch_add(1, Ordering::SeqCst);
        }
    }
    emit(0);
    let every = libc::timeval { tv_sec: 0, tv_usec: 50 };
    let timer = libc::itimerval { it_interval: every, it_value: every };
    let stop = libc::itimerval {
        it_interval: libc::timeval { tv_sec: 0, tv_usec: 0 },
        it_value: libc::timeval { tv_sec: 0, tv_usec: 0 },
    };
    // SAFETY: the handler calls only async-signal-safe code: recording an event, which the test checks, and an atomic.
    unsafe {
        libc::signal(libc::SIGALRM, handler as *const () as usize);
        libc::setitimer(libc::ITIMER_REAL, &timer, std::ptr::null_mut());
        emit_all(1..count);
        libc::setitimer(libc::ITIMER_REAL, &stop, std::ptr::null_mut());
        libc::signal(libc::SIGALRM, libc::SIG_IGN);
    }
    counters[1].store(HANDLED.load(Ordering::SeqCst), Ordering::SeqCst);
}

fn fork(act: impl FnOnce()) -> i32 {
    // SAFETY: this process has one thread, so the child may run any code.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        act();
        exit();
    }
    child
}

/// Calls `act` in a process that shares this one's memory and thread-local storage, as a child of vfork does.
fn vfork(mut act: &dyn Fn()) {
    extern "C" fn begin(act: *mut libc::c_void) -> i32 {
        // SAFETY: `act` points to a parameter of `vfork`, whose thread is suspended until this process ends.
        unsafe { (*act.cast::<&dyn Fn()>())() };
        0
    }
    let mut stack = vec![0u128; 16 << 10];
    // SAFETY: `stack` and `act` live until the child has ended, for which `CLONE_VFORK` makes the parent wait.
    let child = unsafe {
        libc::clone(
            begin,
            stack.as_mut_ptr().add(stack.len()).cast(),
            libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD,
            (&raw mut act).cast(),
        )
    };
    assert!(child > 0);
    wait(child);
}

fn exit() -> ! {
    // SAFETY: _exit takes no pointers and does not return.
    unsafe { libc::_exit(0) }
}

fn wait(child: i32) {
    let mut status = 0;
    // SAFETY: waitpid writes to `status`, a local variable.
    let waited = unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!((waited, status), (child, 0));
}

fn pipe() -> (i32, i32) {
    let mut ends = [0; 2];
    // SAFETY: pipe writes two descriptors to `ends`, a local array of two.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    (ends[0], ends[1])
}

fn close(file: i32) {
    // SAFETY: callers pass a descriptor from `pipe` and use it no more.
    unsafe { libc::close(file) };
}
