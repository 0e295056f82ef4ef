//! The ledger: every live block's requested size, their sum, and the most that the sum has been.

use core::cell::UnsafeCell;
use core::sync::atomic::Ordering::Relaxed;

use heaptoll_next::blocks::Blocks;
use heaptoll_next::family::fatal;
use heaptoll_statspage::Slot;

/// Requested sizes of live blocks.
pub struct Ledger {
    sizes: Blocks,
    live: u64,
    high: u64,
}

impl Ledger {
    const fn new() -> Ledger {
        Ledger { sizes: Blocks::new(), live: 0, high: 0 }
    }

    /// A new block. One that is there already was given back past this layer.
    pub fn add(&mut self, block: usize, size: usize) {
        match self.sizes.insert(block, size) {
            Ok(lost) => self.live -= lost.unwrap_or(0) as u64,
            // Without this block every later figure would be wrong, and look right.
            Err(_) => fatal(c"heaptoll: the live layer has no memory left for its table of blocks\n"),
        }
        self.live += size as u64;
        self.high = self.high.max(self.live);
    }

    /// Takes a block out and gives its size; 0 for one that was made past this layer.
    pub fn remove(&mut self, block: usize) -> usize {
        let size = self.lift(block).unwrap_or(0);
        self.live -= size as u64;
        size
    }

    /// Takes a block out for the time of its resizing, in which its bytes stay live.
    pub fn lift(&mut self, block: usize) -> Option<usize> {
        self.sizes.remove(block)
    }

    /// The bytes of a lifted block are no longer live.
    pub fn settle(&mut self, size: usize) {
        self.live -= size as u64;
    }

    /// Puts a lifted block back as it was.
    pub fn put_back(&mut self, block: usize, size: usize) {
        self.settle(size);
        self.add(block, size);
    }

    /// Writes the sums to the statistics page.
    pub fn publish(&self, slot: &Slot) {
        slot.live_bytes.store(self.live, Relaxed);
        slot.live_high_bytes.store(self.high, Relaxed);
    }

    /// In a child of fork: what its parent once held is not the child's.
    pub fn begin_anew(&mut self) {
        self.high = self.live;
    }
}

/// A ledger behind a lock. The lock is POSIX's, which takes nothing from the heap.
pub struct Locked {
    mutex: UnsafeCell<libc::pthread_mutex_t>,
    ledger: UnsafeCell<Ledger>,
}

// SAFETY: the mutex is made for sharing, and the ledger is touched only by its holder.
unsafe impl Sync for Locked {}

impl Locked {
    pub const fn new() -> Locked {
        Locked {
            mutex: UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER),
            ledger: UnsafeCell::new(Ledger::new()),
        }
    }

    /// Works on the ledger. `work` must not allocate.
    #[inline(always)]
    pub fn with<T>(&self, work: impl FnOnce(&mut Ledger) -> T) -> T {
        self.lock();
        // SAFETY: the mutex is ours, and `work` cannot come back here, since it does not allocate.
        let answer = work(unsafe { &mut *self.ledger.get() });
        self.unlock();
        answer
    }

    /// Takes the lock, to hold it over a fork.
    pub fn lock(&self) {
        // SAFETY: an initialised mutex of the default kind; it is never destroyed.
        unsafe { libc::pthread_mutex_lock(self.mutex.get()) };
    }

    /// Gives it back; the caller took it.
    pub fn unlock(&self) {
        // SAFETY: as above; the caller holds it, in a child of fork as the copy of the thread that took it.
        unsafe { libc::pthread_mutex_unlock(self.mutex.get()) };
    }
}
