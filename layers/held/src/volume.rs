//! The volume that all threads hold together, and the times that it passed its bound.
//!
//! Volume and number of passings, the epoch, share one word, so that a free is one atomic operation and whether it
//! passes the bound is decided by the same one. A thread knows by the epoch that others have passed the bound since.
//!
//! What a thread holds from an earlier epoch is no longer part of the volume, though still held until its next free.
//! That part is counted beside, as `late`: volume and late together are always what all threads hold.

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

/// What became of a block's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Added {
    /// They are part of the volume.
    Held,
    /// They passed the bound: a new epoch, of this number, has begun without them and all before. The volume was this.
    Passed { epoch: u64, volume: u64 },
    /// Nothing yet: the epoch is another one.
    Behind,
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
    pub fn epoch(&self) -> u64 {
        self.word.load(Acquire) >> VOLUME_BITS
    }

    /// Adds a block's bytes for a thread that knows `epoch`. `alone`: there is no other thread. Both `bytes` and `bound`
    /// are at most [`MOST`].
    #[inline(always)]
    pub fn add(&self, epoch: u64, bytes: u64, bound: u64, alone: bool) -> Added {
        debug_assert!(bytes <= MOST && bound <= MOST);
        let mut word = self.word.load(Acquire);
        loop {
            let volume = (word & VOLUME) + bytes;
            let passes = volume > bound;
            // Where the epochs differ, more than the volume is left of this.
            let difference = word.wrapping_sub(epoch << VOLUME_BITS);
            if difference > VOLUME {
                return Added::Behind;
            }
            let next = (epoch + 1) & (u64::MAX >> VOLUME_BITS);
            let new = if passes { next << VOLUME_BITS } else { word + bytes };
            if alone {
                self.word.store(new, Relaxed);
            } else if let Err(now) = self.word.compare_exchange_weak(word, new, AcqRel, Acquire) {
                word = now;
                continue;
            }
            return if passes { Added::Passed { epoch: next, volume } } else { Added::Held };
        }
    }

    /// A thread gives back all that it holds since it passed the bound: `own` of `volume` is its.
    #[inline(always)]
    pub fn passed(&self, volume: u64, own: u64) {
        let all = volume.wrapping_add_signed(self.late.load(Relaxed));
        let others = volume.wrapping_sub(own) as i64;
        if others != 0 {
            self.late.fetch_add(others, Relaxed);
        }
        self.note(all);
    }

    /// The most that has ever been held may be this.
    #[inline(always)]
    pub fn note(&self, all: u64) {
        // A race between two threads can only lose to a volume of the same moment.
        if all > self.high.load(Relaxed) && (all as i64) > 0 {
            self.high.fetch_max(all, Relaxed);
        }
    }

    /// Takes bytes out that a thread of `epoch` gives back before the bound is passed, or after.
    pub fn take(&self, epoch: u64, bytes: u64) {
        let taken = self.word.fetch_update(AcqRel, Acquire, |word| {
            (word >> VOLUME_BITS == epoch).then(|| word - bytes.min(word & VOLUME))
        });
        if taken.is_err() {
            self.late.fetch_sub(bytes as i64, Relaxed);
        }
    }

    /// Whether the volume is above the bound: it can be only where nobody has begun a new epoch.
    pub fn above(&self, bound: u64) -> bool {
        self.word.load(Acquire) & VOLUME > bound
    }

    /// Adds without a bound, for those who give back what is too much one by one. Gives what all hold.
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

    /// In a child of fork, whose only thread holds so much. Gives the epoch.
    pub fn begin_anew(&self, held: u64) -> u64 {
        let epoch = self.epoch();
        self.word.store(epoch << VOLUME_BITS | held.min(MOST), Release);
        self.late.store(held.saturating_sub(MOST) as i64, Relaxed);
        self.high.store(held, Relaxed);
        epoch
    }
}
