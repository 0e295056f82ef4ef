//! The memory that each thread keeps for its walks, and its ownership.
//!
//! Each thread has a block of memory of its own, found by a thread-local word. Blocks of threads that have ended are
//! reused: their end is not reported, so a new thread searches for some whose owner the kernel no longer knows. A child
//! of fork finds all blocks zeroed, so without owner, and its thread takes a new one.

use core::cell::UnsafeCell;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use heaptoll_runtime::{thread_pointer, thread_word};

use crate::call_stack_cache::CallStackCache;
use crate::hints::Hints;
use crate::system;
use crate::walk::Readable;

/// Blocks at most: further threads have none, and walk each time.
const MOST: usize = 1024;
/// Owners about which a new thread queries the kernel, at most.
const OWNER_CHECKS: usize = 8;
/// Value of the thread's word: there is no block for it.
const NONE: usize = 1;
/// Bits of a kernel's thread number.
const NUMBER_BITS: u32 = 22;

thread_word! {
    /// The address of the calling thread's block; 0 in a new thread.
    WORD: "heaptoll_stacks_thread"
}

/// A thread's memory.
pub struct Thread {
    /// The thread pointer without its six lower bits, which are zero, and the kernel's number of the thread; 0: free.
    owner: AtomicU64,
    /// Set while the thread uses it: a signal handler then does without.
    pub busy: AtomicBool,
    local: UnsafeCell<Local>,
    /// Calls that found their call stack in the cache.
    pub hits: Tally,
    /// Calls that walked.
    pub walks: Tally,
    /// Rules computed from tables.
    pub rules: Tally,
}

/// A number that one thread counts and others read.
pub struct Tally(AtomicU64);

impl Tally {
    /// Counts `more`, on the thread that counts; a signal handler's counts may be lost.
    pub fn add(&self, more: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
    }
}

/// The members that only the owning thread accesses, while it is busy.
pub struct Local {
    /// Its stack.
    pub stack: Readable,
    /// Where the words are by which the cache is searched.
    pub hints: Hints,
    /// Call stacks that it has been at.
    pub call_stack_cache: CallStackCache,
}

impl Thread {
    /// Enters; `None` when the thread has entered already: this is a signal handler's call.
    #[inline(always)]
    pub fn enter(&self) -> Option<ThreadGuard<'_>> {
        if self.busy.load(Ordering::Relaxed) {
            return None;
        }
        self.busy.store(true, Ordering::Relaxed);
        core::sync::atomic::compiler_fence(Ordering::SeqCst);
        Some(ThreadGuard(self))
    }

    #[inline(always)]
    fn belongs(&self) -> bool {
        self.owner.load(Ordering::Relaxed) >> NUMBER_BITS == (thread_pointer() >> 6) as u64
    }
}

/// Exclusive access to a thread's memory, until it is dropped.
pub struct ThreadGuard<'a>(&'a Thread);

impl<'a> ThreadGuard<'a> {
    /// The thread.
    #[inline(always)]
    pub fn thread(&self) -> &'a Thread {
        self.0
    }

    /// The memory.
    #[inline(always)]
    pub fn local(&mut self) -> &mut Local {
        // SAFETY: only the owning thread has a guard, since `current` and `claim` return its own block, and `busy`
        // keeps its signal handlers from entering.
        unsafe { &mut *self.0.local.get() }
    }
}

impl Drop for ThreadGuard<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        core::sync::atomic::compiler_fence(Ordering::SeqCst);
        self.0.busy.store(false, Ordering::Relaxed);
    }
}

/// All blocks.
pub struct Threads {
    blocks: [AtomicPtr<Thread>; MOST],
    /// Number of blocks.
    made: AtomicUsize,
    /// Where the next search for a free one begins.
    next: AtomicUsize,
    /// The thread pointer of the program's first thread; the first thread of a child that it forks has the same.
    first: AtomicUsize,
    /// Where the first thread's stack ends; 0: not known.
    first_end: AtomicUsize,
}

impl Threads {
    /// None yet.
    pub const fn new() -> Threads {
        Threads {
            blocks: [const { AtomicPtr::new(ptr::null_mut()) }; MOST],
            made: AtomicUsize::new(0),
            next: AtomicUsize::new(0),
            first: AtomicUsize::new(0),
            first_end: AtomicUsize::new(0),
        }
    }

    /// Notes the first thread's pointer and the end of its stack. Called on the program's first thread.
    pub fn prepare(&self) {
        // SAFETY: getauxval takes no pointers and reads the process's auxiliary vector. The kernel lays these bytes
        // above the first frame.
        let end = unsafe { libc::getauxval(libc::AT_RANDOM) } as usize;
        self.first_end.store(end, Ordering::Relaxed);
        self.first.store(thread_pointer(), Ordering::Relaxed);
    }

    /// Where the calling thread's own stack ends: the C library keeps what the thread pointer points to at the end of
    /// the stacks of all threads but the first.
    fn stack_end(&self) -> usize {
        let pointer = thread_pointer();
        if pointer == self.first.load(Ordering::Relaxed) {
            self.first_end.load(Ordering::Relaxed)
        } else {
            pointer
        }
    }

    /// The calling thread's block, if it has one already.
    #[inline(always)]
    pub fn current(&self) -> Option<&Thread> {
        let block = NonNull::new(WORD::get() as *mut Thread).filter(|_| WORD::get() > NONE)?;
        // SAFETY: the word holds a block's address or one of the two values that are none, which the filter excludes;
        // blocks are never unmapped.
        let block = unsafe { block.as_ref() };
        block.belongs().then_some(block)
    }

    /// The calling thread's block, claimed for it when it has none; `None` when none is available.
    pub fn claim(&self) -> Option<&Thread> {
        if WORD::get() == NONE {
            return None;
        }
        let block = self.current().or_else(|| {
            let block = self.free().or_else(|| self.make())?;
            // SAFETY: the block has just become this thread's, and its word does not point there yet, so no signal
            // handler uses it.
            unsafe { (*block.local.get()).stack = Readable::new(self.stack_end()) };
            Some(block)
        });
        WORD::set(block.map_or(NONE, |block| ptr::from_ref(block) as usize));
        block
    }

    fn owner() -> u64 {
        ((thread_pointer() >> 6) as u64) << NUMBER_BITS | u64::from(system::thread())
    }

    /// A block without a live owner.
    fn free(&self) -> Option<&Thread> {
        let made = self.made.load(Ordering::Relaxed).min(MOST);
        let first = self.next.fetch_add(OWNER_CHECKS, Ordering::Relaxed);
        (0..made.min(OWNER_CHECKS)).find_map(|n| {
            // SAFETY: null or a block, which is never unmapped.
            let block = unsafe { self.blocks[(first + n) % made].load(Ordering::Acquire).as_ref() }?;
            let owner = block.owner.load(Ordering::Relaxed);
            if owner != 0 && system::lives(owner as u32 & ((1 << NUMBER_BITS) - 1)) {
                return None;
            }
            block
                .owner
                .compare_exchange(owner, Threads::owner(), Ordering::Acquire, Ordering::Relaxed)
                .ok()?;
            // Its former owner may have ended while it was busy.
            block.busy.store(false, Ordering::Relaxed);
            Some(block)
        })
    }

    fn make(&self) -> Option<&Thread> {
        let at = self.made.load(Ordering::Relaxed);
        if at >= MOST {
            return None;
        }
        let block = system::map(size_of::<Thread>(), true)?.cast::<Thread>();
        // SAFETY: new zeroed memory of the size of a `Thread`, for which all zeroes is valid.
        let thread = unsafe { block.as_ref() };
        thread.owner.store(Threads::owner(), Ordering::Relaxed);
        let at = self.made.fetch_add(1, Ordering::Relaxed);
        match self.blocks.get(at) {
            Some(place) => place.store(block.as_ptr(), Ordering::Release),
            // Other threads took the last entries. It is the thread's all the same, for as long as it lives.
            None => self.made.store(MOST, Ordering::Relaxed),
        }
        Some(thread)
    }

    /// Sums of hits, walks and rules over all blocks.
    pub fn figures(&self) -> [u64; 3] {
        let mut sums = [0; 3];
        for place in &self.blocks[..self.made.load(Ordering::Relaxed).min(MOST)] {
            // SAFETY: null or a block, which is never unmapped; the figures may be slightly out of date.
            if let Some(block) = unsafe { place.load(Ordering::Acquire).as_ref() } {
                let figures = [&block.hits, &block.walks, &block.rules];
                sums.iter_mut()
                    .zip(figures)
                    .for_each(|(sum, figure)| *sum += figure.0.load(Ordering::Relaxed));
            }
        }
        sums
    }
}

// SAFETY: the pointers are atomics; a block's `local` is accessed by its owner alone, which `owner` establishes by
// compare-and-swap.
unsafe impl Sync for Threads {}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;

    #[test]
    fn a_thread_has_one_block_and_blocks_are_used_again() {
        static THREADS: Threads = Threads::new();
        for _ in 0..200 {
            std::thread::spawn(|| {
                assert!(THREADS.current().is_none());
                let first = ptr::from_ref(THREADS.claim().unwrap());
                assert!(
                    ptr::eq(first, THREADS.current().unwrap()) && ptr::eq(first, THREADS.claim().unwrap())
                );
                let guard = THREADS.current().unwrap().enter().unwrap();
                assert!(THREADS.current().unwrap().enter().is_none(), "as in a signal handler");
                drop(guard);
                let mut guard = THREADS.current().unwrap().enter().unwrap();
                guard.local().stack.begin(&raw const first as usize);
                assert!(
                    guard.local().stack.own(),
                    "the thread's stack ends where the thread pointer points to"
                );
                drop(guard);
                assert!(THREADS.current().unwrap().enter().is_some());
            })
            .join()
            .unwrap();
        }
        let made = THREADS.made.load(Ordering::Relaxed);
        assert!(made < 20, "{made} blocks for one thread at a time");
    }

    #[test]
    fn threads_at_one_time_have_different_blocks() {
        static THREADS: Threads = Threads::new();
        let barrier = std::sync::Barrier::new(16);
        let blocks: std::collections::HashSet<usize> = std::thread::scope(|scope| {
            let threads: std::vec::Vec<_> = (0..16)
                .map(|_| {
                    scope.spawn(|| {
                        let block = ptr::from_ref(THREADS.claim().unwrap()) as usize;
                        barrier.wait();
                        block
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(blocks.len(), 16);
    }
}
