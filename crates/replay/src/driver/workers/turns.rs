//! Exact order: one thread at a time has the turn and passes it on, as the trace states. One that waits spins for some
//! µs, then sleeps.

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// Polls of a condition before a thread sleeps: some µs.
pub const SPINS: u32 = 100;
/// How long a thread sleeps before it checks again whether the replay has failed, ns.
const NAP: i64 = 50_000_000;

/// How a thread waits for its turn.
#[derive(Default)]
struct TurnFlag {
    /// 1 while the thread sleeps or is about to.
    asleep: AtomicU32,
}

/// Who has the turn.
pub struct Turns {
    /// The number of the run that has it.
    turn: AtomicU64,
    flags: Vec<TurnFlag>,
    /// Threads that passed it for the last time.
    leaving: AtomicU64,
}

impl Turns {
    pub fn new(threads: usize) -> Turns {
        Turns {
            turn: AtomicU64::new(0),
            flags: (0..threads).map(|_| TurnFlag::default()).collect(),
            leaving: AtomicU64::new(0),
        }
    }

    /// Begins a repetition.
    pub fn reset(&self) {
        self.turn.store(0, Ordering::Relaxed);
        self.leaving.store(0, Ordering::Relaxed);
    }

    /// Threads that have made their last call.
    pub fn leaving(&self) -> u64 {
        self.leaving.load(Ordering::Acquire)
    }

    /// Whether it is this run's turn.
    #[inline(always)]
    pub fn has(&self, run: u64) -> bool {
        self.turn.load(Ordering::Acquire) == run
    }

    /// Waits until it is the turn of `run`, which is `thread`'s; false when `stop` is set.
    #[inline]
    pub fn wait(&self, run: u64, thread: usize, stop: &AtomicBool) -> bool {
        for _ in 0..SPINS {
            if self.has(run) {
                return true;
            }
            std::hint::spin_loop();
        }
        let asleep = &self.flags[thread].asleep;
        let nap = libc::timespec { tv_sec: 0, tv_nsec: NAP };
        loop {
            asleep.store(1, Ordering::SeqCst);
            // The thread that passes the turn stores it first and then checks whether we sleep: one of us sees the
            // other.
            if self.turn.load(Ordering::SeqCst) == run {
                asleep.store(0, Ordering::Relaxed);
                return true;
            }
            if stop.load(Ordering::SeqCst) {
                return false;
            }
            futex(asleep, libc::FUTEX_WAIT, 1, &nap);
        }
    }

    /// A thread that the replay joins has made its last call.
    #[inline]
    pub fn leave(&self) {
        self.leaving.fetch_add(1, Ordering::Release);
    }

    /// Gives the turn to the next run, which is `thread`'s. Only the holder of the turn calls this.
    #[inline]
    pub fn pass(&self, thread: u32) {
        self.turn.store(self.turn.load(Ordering::Relaxed) + 1, Ordering::SeqCst);
        if let Some(flag) = self.flags.get(thread as usize)
            && flag.asleep.swap(0, Ordering::SeqCst) == 1
        {
            futex(&flag.asleep, libc::FUTEX_WAKE, 1, ptr::null());
        }
    }
}

fn futex(word: &AtomicU32, operation: libc::c_int, value: u32, timeout: *const libc::timespec) {
    // SAFETY: `word` is a live atomic; `timeout` is null or the caller's live timespec.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), operation | libc::FUTEX_PRIVATE_FLAG, value, timeout)
    };
}
