//! What a thread keeps for its walks, and whose it is.
//!
//! Each thread has a block of memory of its own, found by a thread-local word. Blocks of threads that have ended are
//! used again: nobody tells their end, so a new thread looks for some whose owner the kernel does not know any more. A
//! child of fork finds all blocks zeroed, so without owner, and its thread takes one anew.

use core::cell::UnsafeCell;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use crate::seen::Seen;
use crate::walk::Readable;
use crate::{system, word};

/// Blocks at most: threads beyond do without, and walk each time.
const MOST: usize = 1024;
/// Owners that a new thread asks the kernel for, at most.
const ASKED: usize = 8;
/// In the thread's word: there is no block for it.
const NONE: usize = 1;
/// Bits of a kernel's thread number.
const NUMBER_BITS: u32 = 22;

/// A thread's memory.
pub struct Thread {
    /// The thread pointer without its six lower bits, which are zero, and the kernel's number of the thread; 0: free.
    owner: AtomicU64,
    /// Set while the thread is within it: then a signal handler does without.
    pub busy: AtomicBool,
    mine: UnsafeCell<Mine>,
}

/// What of it only its thread touches, while it is busy.
pub struct Mine {
    /// Its stack.
    pub stack: Readable,
    /// Stacks that it has been at.
    pub seen: Seen,
    /// Calls that found their stack there.
    pub hits: u64,
    /// Calls that walked.
    pub walks: u64,
    /// Rules worked out from tables.
    pub rules: u64,
}

impl Thread {
    /// Enters; `None` when the thread is within already: this is a signal handler's call.
    #[inline(always)]
    pub fn enter(&self) -> Option<Within<'_>> {
        if self.busy.load(Ordering::Relaxed) {
            return None;
        }
        self.busy.store(true, Ordering::Relaxed);
        core::sync::atomic::compiler_fence(Ordering::SeqCst);
        Some(Within(self))
    }

    #[inline(always)]
    fn belongs(&self) -> bool {
        self.owner.load(Ordering::Relaxed) >> NUMBER_BITS == (word::thread_pointer() >> 6) as u64
    }
}

/// The right to a thread's memory, until it is dropped.
pub struct Within<'a>(&'a Thread);

impl Within<'_> {
    /// The memory.
    #[inline(always)]
    pub fn mine(&mut self) -> &mut Mine {
        // SAFETY: only the owning thread gets here, and `busy` keeps its signal handlers out.
        unsafe { &mut *self.0.mine.get() }
    }
}

impl Drop for Within<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        core::sync::atomic::compiler_fence(Ordering::SeqCst);
        self.0.busy.store(false, Ordering::Relaxed);
    }
}

/// All blocks.
pub struct Threads {
    blocks: [AtomicPtr<Thread>; MOST],
    /// Blocks made.
    made: AtomicUsize,
    /// Where the next search for a free one begins.
    next: AtomicUsize,
    /// The thread pointer of the program's first thread, which a child that it forks has too,
    first: AtomicUsize,
    /// and where its stack ends; 0: not known.
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

    /// Called on the program's first thread.
    pub fn prepare(&self) {
        // The kernel lays these bytes above the first frame.
        // SAFETY: no conditions.
        let end = unsafe { libc::getauxval(libc::AT_RANDOM) } as usize;
        self.first_end.store(end, Ordering::Relaxed);
        self.first.store(word::thread_pointer(), Ordering::Relaxed);
    }

    /// Where the calling thread's own stack ends: the C library keeps what the thread pointer points to at the end of
    /// the stacks of all threads but the first.
    fn stack_end(&self) -> usize {
        let pointer = word::thread_pointer();
        if pointer == self.first.load(Ordering::Relaxed) {
            self.first_end.load(Ordering::Relaxed)
        } else {
            pointer
        }
    }

    /// The calling thread's block, if it has one already.
    #[inline(always)]
    pub fn mine(&self) -> Option<&Thread> {
        let block = NonNull::new(word::get() as *mut Thread).filter(|_| word::get() > NONE)?;
        // SAFETY: the word holds a block's address or one of the two that are none; blocks are never given back.
        let block = unsafe { block.as_ref() };
        block.belongs().then_some(block)
    }

    /// The calling thread's block, taken for it when it has none; `None` when there is none to be had.
    pub fn take(&self) -> Option<&Thread> {
        if word::get() == NONE {
            return None;
        }
        let block = self.mine().or_else(|| {
            let block = self.free().or_else(|| self.make())?;
            // SAFETY: the block is this thread's since just now, and its word does not lead there yet.
            unsafe { (*block.mine.get()).stack = Readable::new(self.stack_end()) };
            Some(block)
        });
        word::set(block.map_or(NONE, |block| ptr::from_ref(block) as usize));
        block
    }

    fn owner() -> u64 {
        ((word::thread_pointer() >> 6) as u64) << NUMBER_BITS | u64::from(system::thread())
    }

    /// A block that nobody owns any more.
    fn free(&self) -> Option<&Thread> {
        let made = self.made.load(Ordering::Relaxed).min(MOST);
        let first = self.next.fetch_add(ASKED, Ordering::Relaxed);
        (0..made.min(ASKED)).find_map(|n| {
            // SAFETY: null or a block, which is never given back.
            let block = unsafe { self.blocks[(first + n) % made].load(Ordering::Acquire).as_ref() }?;
            let owner = block.owner.load(Ordering::Relaxed);
            if owner != 0 && system::lives(owner as u32 & ((1 << NUMBER_BITS) - 1)) {
                return None;
            }
            block
                .owner
                .compare_exchange(owner, Threads::owner(), Ordering::Acquire, Ordering::Relaxed)
                .ok()?;
            // It may have ended within.
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
        // SAFETY: new zeroed memory, and all zeroes are a `Thread`.
        let thread = unsafe { block.as_ref() };
        thread.owner.store(Threads::owner(), Ordering::Relaxed);
        let at = self.made.fetch_add(1, Ordering::Relaxed);
        match self.blocks.get(at) {
            Some(place) => place.store(block.as_ptr(), Ordering::Release),
            // Others were faster to the last ones. It is the thread's all the same, for as long as it lives.
            None => self.made.store(MOST, Ordering::Relaxed),
        }
        Some(thread)
    }

    /// Sums of hits, walks and rules over all blocks.
    pub fn figures(&self) -> [u64; 3] {
        let mut sums = [0; 3];
        for place in &self.blocks[..self.made.load(Ordering::Relaxed).min(MOST)] {
            // SAFETY: null or a block; the figures may be a moment old.
            if let Some(block) = unsafe { place.load(Ordering::Acquire).as_ref() } {
                let mine = block.mine.get();
                // SAFETY: within the block.
                let figures = unsafe { [(*mine).hits, (*mine).walks, (*mine).rules] };
                sums.iter_mut().zip(figures).for_each(|(sum, figure)| *sum += figure);
            }
        }
        sums
    }
}

// SAFETY: blocks are handed to one thread at a time, by their owner.
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
                assert!(THREADS.mine().is_none());
                let first = ptr::from_ref(THREADS.take().unwrap());
                assert!(ptr::eq(first, THREADS.mine().unwrap()) && ptr::eq(first, THREADS.take().unwrap()));
                let within = THREADS.mine().unwrap().enter().unwrap();
                assert!(THREADS.mine().unwrap().enter().is_none(), "as in a signal handler");
                drop(within);
                let mut within = THREADS.mine().unwrap().enter().unwrap();
                within.mine().stack.begin(&raw const first as usize);
                assert!(
                    within.mine().stack.own(),
                    "the thread's stack ends where the thread pointer points to"
                );
                drop(within);
                assert!(THREADS.mine().unwrap().enter().is_some());
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
                        let block = ptr::from_ref(THREADS.take().unwrap()) as usize;
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
