//! What the test program does as a child of itself.

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

use heaptoll_ring::{Rings, Said, Shared, Sink, Tap};

use crate::common::{Event, Word, tiny};

static RINGS: Rings<Word> = Rings::new();

/// Numbers that a child counts up and its parent reads, also when the child has been killed.
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
        // SAFETY: a fresh mapping of a page that the file has, which is never given back.
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

/// The `n`th event: of each length there is.
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

/// Which of [`numbered`] an event is; it must be that exactly.
pub fn number(event: &Event) -> u64 {
    let address = match *event {
        Event::Alloc { address, .. } | Event::Free { address, .. } | Event::ResizeEnd { address, .. } => {
            address
        }
        ref other => panic!("{other:?} was never told"),
    };
    let n = address / 8 - 1;
    assert_eq!(*event, numbered(n), "told otherwise");
    n
}

/// Tells the `n`th event, if anybody listens.
fn tell(n: u64) {
    if let Some(producer) = RINGS.thread() {
        numbered(n).tell(producer, false);
    }
}

fn tell_all(numbers: std::ops::Range<u64>) {
    numbers.for_each(tell);
}

pub fn play(role: &str) {
    let words: Vec<&str> = role.split(' ').collect();
    let value = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok()).expect("a number");
    let counters = Counters::inherited();
    match words[0] {
        "tell" => {
            for n in 0..value(1) {
                tell(n);
                counters[0].store(n + 1, Ordering::SeqCst);
            }
        }
        "slow" => {
            for n in 0..value(1) {
                tell(n);
                if n % 20 == 0 {
                    thread::sleep(Duration::from_millis(1));
                }
            }
        }
        "forever" => {
            for n in 0.. {
                tell(n);
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
                            event.tell(producer, false);
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
            tell_all(0..2);
            for n in 0..value(1) {
                let child = fork(|| tell_all(0..value(2)));
                wait(child);
                if n == value(1) / 2 {
                    tell(2);
                }
            }
            tell_all(3..5);
        }
        "forks-at-once" => {
            tell_all(0..5);
            let ((halfway, arrive), (reader, writer)) = (pipe(), pipe());
            let children: Vec<i32> = (0..value(1))
                .map(|_| {
                    fork(|| {
                        tell_all(0..value(2) / 2);
                        close(arrive);
                        close(writer);
                        // Until the parent closes its end, too.
                        // SAFETY: a byte has room in a byte.
                        unsafe { libc::read(reader, (&raw mut NOTHING).cast(), 1) };
                        tell_all(value(2) / 2..value(2));
                    })
                })
                .collect();
            close(arrive);
            // Until all have come so far, each with an entry or left out.
            // SAFETY: a byte has room in a byte.
            unsafe { libc::read(halfway, (&raw mut NOTHING).cast(), 1) };
            close(writer);
            children.into_iter().for_each(wait);
        }
        "clone" => {
            tell_all(0..value(1) / 2);
            // SAFETY: as fork, past the C library.
            let child = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) } as i32;
            if child == 0 {
                tell_all(0..value(1));
                exit();
            }
            tell_all(value(1) / 2..value(1));
            wait(child);
        }
        "clone-within" => {
            tell(0);
            let child = fork(|| {
                // As when a call's stack is new: it is defined while the call's own handle is there.
                let outer = RINGS.thread().expect("attached");
                RINGS.thread().expect("attached").define_site(7, &[4096]);
                numbered(0).tell(outer, false);
            });
            wait(child);
        }
        "vfork" => {
            let count = value(1);
            tell_all(0..count);
            vfork(&|| tell_all(count..2 * count));
            tell_all(2 * count..3 * count);
        }
        "exec" => {
            tell_all(0..value(1));
            let error = Command::new(env::current_exe().expect("a path"))
                .env("RING_ROLE", words[2..].join(" "))
                .exec();
            panic!("{error}");
        }
        "threads-in-turn" => {
            tell_all(0..2);
            for _ in 0..value(1) {
                let count = value(2);
                thread::Builder::new()
                    .stack_size(64 << 10)
                    .spawn(move || tell_all(0..count))
                    .expect("a thread")
                    .join()
                    .expect("ends");
            }
        }
        "threads-at-once" => {
            tell_all(0..2);
            let count = value(2);
            let barrier = Arc::new(Barrier::new(value(1) as usize));
            let threads: Vec<_> = (0..value(1))
                .map(|_| {
                    let barrier = Arc::clone(&barrier);
                    let work = move || {
                        tell_all(0..count / 2);
                        barrier.wait();
                        tell_all(count / 2..count);
                    };
                    thread::Builder::new().stack_size(64 << 10).spawn(work).expect("a thread")
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().expect("ends"));
        }
        "chroot" => {
            tell(0);
            let folder = env::temp_dir().join(format!("ring-root-{}", std::process::id()));
            std::fs::create_dir(&folder).expect("the temporary folder can be written to");
            let moved = std::os::unix::fs::chroot(&folder);
            let _ = std::fs::remove_dir(&folder);
            if moved.is_err() {
                std::process::exit(77);
            }
            tell_all(1..value(1));
        }
        "closed" => {
            tell(0);
            let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            // SAFETY: nothing of this process uses a descriptor from here on.
            unsafe {
                libc::setrlimit(libc::RLIMIT_NOFILE, &none);
                libc::close_range(0, u32::MAX, 0);
            }
            tell_all(1..value(1));
            exit();
        }
        "limited" => {
            let limit = libc::rlimit { rlim_cur: 512 << 20, rlim_max: 512 << 20 };
            // SAFETY: a valid limit.
            assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) }, 0);
            tell_all(0..value(1));
        }
        "signals" => signals(value(1), counters),
        other => panic!("no role {other}"),
    }
}

/// Hears nothing.
struct Deaf;

impl Sink for Deaf {
    fn said(&mut self, _thread: u32, _said: Said<'_>) {}
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
            tap.drain(1 << 20, &mut Deaf);
        }
    }
}

static mut NOTHING: u8 = 0;
static HANDLED: AtomicU64 = AtomicU64::new(0);

/// Tells events while a signal handler tells others.
fn signals(count: u64, counters: &'static [AtomicU64]) {
    extern "C" fn handler(_: i32) {
        if let Some(producer) = RINGS.thread() {
            Event::Failed { kind: 1, size: 5, site: 0, latency_ns: 0 }.tell(producer, false);
            HANDLED.fetch_add(1, Ordering::SeqCst);
        }
    }
    tell(0);
    let every = libc::timeval { tv_sec: 0, tv_usec: 50 };
    let timer = libc::itimerval { it_interval: every, it_value: every };
    let stop = libc::itimerval {
        it_interval: libc::timeval { tv_sec: 0, tv_usec: 0 },
        it_value: libc::timeval { tv_sec: 0, tv_usec: 0 },
    };
    // SAFETY: the handler only tells events, which is what is tested.
    unsafe {
        libc::signal(libc::SIGALRM, handler as *const () as usize);
        libc::setitimer(libc::ITIMER_REAL, &timer, std::ptr::null_mut());
        tell_all(1..count);
        libc::setitimer(libc::ITIMER_REAL, &stop, std::ptr::null_mut());
        libc::signal(libc::SIGALRM, libc::SIG_IGN);
    }
    counters[1].store(HANDLED.load(Ordering::SeqCst), Ordering::SeqCst);
}

fn fork(act: impl FnOnce()) -> i32 {
    // SAFETY: this process has one thread.
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
        // SAFETY: the parent waits, so what it passed is there.
        unsafe { (*act.cast::<&dyn Fn()>())() };
        0
    }
    let mut stack = vec![0u128; 16 << 10];
    // SAFETY: the stack is there until the child has ended, for which `CLONE_VFORK` waits.
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
    // SAFETY: no conditions.
    unsafe { libc::_exit(0) }
}

fn wait(child: i32) {
    let mut status = 0;
    // SAFETY: a valid place for the status.
    let waited = unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!((waited, status), (child, 0));
}

fn pipe() -> (i32, i32) {
    let mut ends = [0; 2];
    // SAFETY: a valid place for two descriptors.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    (ends[0], ends[1])
}

fn close(file: i32) {
    // SAFETY: a descriptor from `pipe`, used no more.
    unsafe { libc::close(file) };
}
