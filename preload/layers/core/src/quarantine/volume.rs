//! The volume that all threads hold together, and the times that it passed its bound.
//!
//! Volume and number of passings, the epoch, share one word, so that a free is one atomic operation and whether it
//! passes the bound is decided by the same one. A thread knows by the epoch that others have passed the bound since.
//!
//! What a thread holds from an earlier epoch is no longer part of the volume, though still held until its next free.
//! That part is counted separately, as `late`: volume and late together are always what all threads hold.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicI64, AtomicU64};

const VOLUME_BITS: u32 = 40;
const VOLUME: u64 = (1 << VOLUME_BITS) - 1;

/// The largest bound, and the most that one block counts for: 512 GiB.
pub const MOST: u64 = 1 << (VOLUME_BITS - 1);

/// The volume; alone on its cache line, which all threads write to.
#[repr(C, align(128))]
pub struct Volume {
    /// The epoch above, the volume below.
    word: AtomicU64,
    late: AtomicI64,
    high: AtomicU64,
}

/// The result for a block's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddResult {
    /// They are part of the volume.
    Held,
    /// They passed the bound: a new epoch has begun without them and all before. The volume was this.
    Passed { epoch: Epoch, volume: u64 },
    /// Nothing yet: the epoch is another one, or another thread was faster.
    Not,
}

/// The number of an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Epoch(pub(crate) u64);

impl Epoch {
    const fn of(word: u64) -> Epoch {
        Epoch(word & !VOLUME)
    }

    #[inline(always)]
    const fn next(self) -> Epoch {
        Epoch(self.0.wrapping_add(VOLUME + 1))
    }
}

impl Default for Volume {
    fn default() -> Volume {
        Volume::new()
    }
}

impl Volume {
    /// Nothing held.
    pub const fn new() -> Volume {
        Volume { word: AtomicU64::new(0), late: AtomicI64::new(0), high: AtomicU64::new(0) }
    }

    /// The present epoch.
    #[inline(always)]
    pub fn epoch(&self) -> Epoch {
        Epoch::of(self.word.load(Acquire))
    }

    /// Adds a block's bytes for a thread that knows `epoch`. `single_threaded`: there is no other thread. `bound` is at
    /// most [`MOST`].
    #[inline(always)]
    pub fn add(&self, epoch: Epoch, bytes: u64, bound: u64, single_threaded: bool) -> AddResult {
        debug_assert!(bytes < 1 << 63 && bound <= MOST);
        let word = self.word.load(Acquire);
        // Where the epochs differ, more than a volume is left of this.
        let volume = word.wrapping_sub(epoch.0);
        if volume > VOLUME {
            return AddResult::Not;
        }
        let volume = volume + bytes;
        if volume <= bound {
            return if self.exchange(word, word + bytes, single_threaded) {
                AddResult::Held
            } else {
                AddResult::Not
            };
        }
        let epoch = epoch.next();
        if self.exchange(word, epoch.0, single_threaded) {
            AddResult::Passed { epoch, volume }
        } else {
            AddResult::Not
        }
    }

    #[inline(always)]
    fn exchange(&self, old: u64, new: u64, single_threaded: bool) -> bool {
        if single_threaded {
            self.word.store(new, Relaxed);
            return true;
        }
        self.word.compare_exchange(old, new, AcqRel, Relaxed).is_ok()
    }

    /// A thread gives back all that it holds since it passed the bound: of `volume`, `own` is its part.
    #[inline(always)]
    pub fn passed(&self, volume: u64, own: u64) {
        let all = volume.wrapping_add_signed(self.late.load(Relaxed));
        if all > self.high.load(Relaxed) {
            self.raise_high(all);
        }
        if volume != own {
            self.late.fetch_add(volume.wrapping_sub(own) as i64, Relaxed);
        }
    }

    /// Raises the high-water mark to this, if it is higher.
    #[cold]
    #[inline(never)]
    pub fn raise_high(&self, all: u64) {
        // Between two loads other threads may have moved: a negative result is ignored.
        if all < 1 << 63 {
            self.high.fetch_max(all, Relaxed);
        }
    }

    /// Takes bytes out that a thread of `epoch` gives back before the bound is passed, or after.
    pub fn take(&self, epoch: Epoch, bytes: u64) {
        let taken = self.word.fetch_update(AcqRel, Acquire, |word| {
            (Epoch::of(word) == epoch).then(|| word - bytes.min(word & VOLUME))
        });
        if taken.is_err() {
            self.late.fetch_sub(bytes as i64, Relaxed);
        }
    }

    /// Whether the volume is above the bound: possible only where no thread has begun a new epoch.
    pub fn above(&self, bound: u64) -> bool {
        self.word.load(Acquire) & VOLUME > bound
    }

    /// Adds without a bound, for threads that give back what is too much one by one. Returns what all hold.
    pub fn add_freely(&self, bytes: u64) -> u64 {
        let word = self.word.fetch_add(bytes, AcqRel) + bytes;
        (word & VOLUME).wrapping_add_signed(self.late.load(Relaxed))
    }

    /// What all threads hold, bytes.
    pub fn held(&self) -> u64 {
        // Between two loads, other threads may have moved: never less than nothing.
        (self.word.load(Acquire) & VOLUME).saturating_add_signed(self.late.load(Relaxed))
    }

    /// The most that has ever been, bytes.
    pub fn high(&self) -> u64 {
        self.high.load(Relaxed)
    }

    /// In a child of fork, whose only thread holds so much. Returns the epoch.
    pub fn restart(&self, held: u64) -> Epoch {
        let epoch = self.epoch();
        self.word.store(epoch.0 | held.min(MOST), Release);
        self.late.store(held.saturating_sub(MOST) as i64, Relaxed);
        self.high.store(held, Relaxed);
        epoch
    }
}
