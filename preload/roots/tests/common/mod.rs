//! What the tests share: one world per process, one test at a time, words that lie in one place only.

#![allow(dead_code, reason = "each test file uses a part")]

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once};
use std::thread::JoinHandle;

use heaptoll_roots::{Origin, Root, RootKinds, StoppedWorld, World};

pub static WORLD: World = World::new();

/// A signal that the C library lets a program block.
pub const SIGNAL: i32 = 63;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
static STARTED: Once = Once::new();

/// Starts the world at its first call, and keeps other tests of the file out.
pub fn alone(signal: Option<i32>, patience_ms: u32) -> MutexGuard<'static, ()> {
    let guard = ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    STARTED.call_once(|| WORLD.start(signal, patience_ms, 2));
    guard
}

/// A word that no program has by chance, and that is nowhere in memory while it is not revealed: what is kept is its
/// complement.
#[derive(Clone, Copy)]
pub struct Secret(usize);

impl Secret {
    pub fn new() -> Secret {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        // Each run has others, so that no value is in the program's text.
        let entropy = &raw const NEXT as usize >> 4;
        let count = NEXT.fetch_add(1, Ordering::Relaxed) + 1;
        Secret(
            !(entropy.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ count.wrapping_mul(0xD6E8_FEB8_6659_FD93)
                | 1 << 63),
        )
    }

    /// The secret with this complement.
    pub fn of(hidden: usize) -> Secret {
        Secret(hidden)
    }

    /// Overwrites a place where it was written.
    pub fn erase(self, from: *mut usize) {
        // SAFETY: the tests pass places that are theirs.
        unsafe { from.write_volatile(0) };
    }

    #[inline(always)]
    pub fn hidden(self) -> usize {
        self.0
    }

    /// Writes the word to a place, and nowhere else: not to a register that is kept, nor to the stack.
    #[inline(never)]
    pub fn write(self, to: *mut usize) {
        // SAFETY: the tests pass places that are theirs. The word is in rax for one instruction.
        unsafe {
            std::arch::asm!(
                "mov rax, {hidden}",
                "not rax",
                "mov [{to}], rax",
                "xor eax, eax",
                hidden = in(reg) self.0,
                to = in(reg) to,
                out("rax") _,
            );
        }
    }
}

/// Where a word was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Occurrences {
    pub registers: usize,
    pub stack: usize,
    pub statics: usize,
    pub mapping: usize,
    pub kernel: usize,
}

impl Occurrences {
    pub fn any(&self) -> bool {
        *self != Occurrences::default()
    }
}

/// Searches all roots for a word. Allocates nothing: another thread may have been stopped in the middle of malloc.
pub fn seek(stopped: &StoppedWorld<'_>, left_out: &[Range<usize>], secret: Secret) -> Occurrences {
    let mut occurrences = Occurrences::default();
    let result =
        stopped.roots(RootKinds::ALL, left_out, &mut |root| seek_in(&root, secret, &mut occurrences));
    result.expect("roots are readable");
    occurrences
}

#[inline(never)]
fn seek_in(root: &Root, secret: Secret, occurrences: &mut Occurrences) {
    assert!((root.range.start | root.range.end).is_multiple_of(8) && !root.range.is_empty());
    let mut count = 0;
    let mut at = root.range.start;
    while at < root.range.end {
        // SAFETY: what is shown can be read, as words.
        count += usize::from(!unsafe { (at as *const usize).read_volatile() } == secret.hidden());
        at += 8;
    }
    match root.origin {
        Origin::Registers => occurrences.registers += count,
        Origin::Stack => occurrences.stack += count,
        Origin::Statics => occurrences.statics += count,
        Origin::Mapping | Origin::Code => occurrences.mapping += count,
        Origin::Kernel => occurrences.kernel += count,
    }
}

/// Stops the world and searches for a word.
pub fn search(secret: Secret) -> Occurrences {
    search_without(&[], secret)
}

pub fn search_without(left_out: &[Range<usize>], secret: Secret) -> Occurrences {
    let stopped = WORLD.stop().expect("all threads stop");
    seek(&stopped, left_out, secret)
}

/// A mapping of the test's own.
pub struct Mapping {
    pub start: usize,
    pub bytes: usize,
}

impl Mapping {
    pub fn new(bytes: usize, access: i32, flags: i32, fd: i32) -> Mapping {
        // SAFETY: a new mapping.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, flags, fd, 0) };
        assert_ne!(start, libc::MAP_FAILED, "mmap: {}", std::io::Error::last_os_error());
        // Huge pages would hold more than was touched; and the kernel joins it with no neighbour that is advised
        // otherwise.
        // SAFETY: the mapping just made.
        unsafe { libc::madvise(start, bytes, libc::MADV_NOHUGEPAGE) };
        Mapping { start: start as usize, bytes }
    }

    pub fn anonymous(bytes: usize) -> Mapping {
        Mapping::new(bytes, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1)
    }

    pub fn word(&self, offset: usize) -> *mut usize {
        assert!(offset + 8 <= self.bytes);
        (self.start + offset) as *mut usize
    }

    pub fn protect(&self, access: i32) {
        // SAFETY: the mapping is the test's.
        assert_eq!(unsafe { libc::mprotect(self.start as *mut _, self.bytes, access) }, 0);
    }

    pub fn range(&self) -> Range<usize> {
        self.start..self.start + self.bytes
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is the test's.
        unsafe { libc::munmap(self.start as *mut _, self.bytes) };
    }
}

/// Threads that do something until [`Workers::finish`].
pub struct Workers {
    end: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Workers {
    /// Starts threads; each calls `work` over and over with its number, and has begun when this returns.
    pub fn new(count: usize, work: impl Fn(usize) + Send + Sync + 'static) -> Workers {
        let end = Arc::new(AtomicBool::new(false));
        let (work, begun) = (Arc::new(work), Arc::new(AtomicU32::new(0)));
        let threads = (0..count)
            .map(|number| {
                let (end, work, begun) = (end.clone(), work.clone(), begun.clone());
                std::thread::spawn(move || {
                    begun.fetch_add(1, Ordering::SeqCst);
                    while !end.load(Ordering::Relaxed) {
                        work(number);
                    }
                })
            })
            .collect();
        while begun.load(Ordering::SeqCst) < count as u32 {
            std::thread::yield_now();
        }
        Workers { end, threads }
    }

    /// Ends and joins them: all run on.
    pub fn finish(self) {
        self.end.store(true, Ordering::SeqCst);
        for thread in self.threads {
            thread.join().expect("a thread runs to its end");
        }
    }
}

/// Runs something in a forked child, after [`World::after_fork_in_child`], and returns the child's exit status. The
/// child has one thread.
pub fn in_child(work: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the child calls nothing that another thread may have left locked but what glibc repairs in fork.
    match unsafe { libc::fork() } {
        -1 => panic!("fork: {}", std::io::Error::last_os_error()),
        0 => {
            WORLD.after_fork_in_child();
            let status = work();
            // SAFETY: `_exit` takes no pointers and does not return.
            unsafe { libc::_exit(status) }
        }
        child => {
            let mut status = 0;
            // SAFETY: the status is writable.
            while unsafe { libc::waitpid(child, &mut status, 0) } != child {}
            assert!(libc::WIFEXITED(status), "the child ended by a signal: {status:#x}");
            libc::WEXITSTATUS(status)
        }
    }
}

/// A flag that other threads wait for.
#[derive(Default)]
pub struct Flag(AtomicBool);

impl Flag {
    pub const fn new() -> Flag {
        Flag(AtomicBool::new(false))
    }

    pub fn raise(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    pub fn lower(&self) {
        self.0.store(false, Ordering::SeqCst);
    }

    pub fn is_up(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    pub fn wait(&self) {
        while !self.is_up() {
            std::thread::yield_now();
        }
    }

    pub fn as_ptr(&self) -> *mut bool {
        self.0.as_ptr()
    }
}
