//! Which blocks are not the program's, in mode `guard`: a bit for each block, in a table of its own, which no other mode
//! maps.
//!
//! The bit is set from the free of a block until a cache reserves it again, so that a second free always finds it. A block
//! that is taken and freed waits: it becomes available after a pass that began after its free and found no word that leads
//! to it.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use heaptoll_runtime::single_threaded;

use crate::class::BLOCKS_MAX;
use crate::guard_settings::{AtBound, GuardSettings};

/// The freed blocks of a span, of a large block in the first bit. In the row of its first unit. Threads set bits of their
/// own blocks without a lock.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Freed {
    bits: [AtomicU64; BLOCKS_MAX / 64],
}

const _: () = assert!(size_of::<Freed>() == BLOCKS_MAX / 8);

impl Freed {
    /// The bits of 64 blocks.
    #[inline(always)]
    pub fn word(&self, word: usize) -> u64 {
        self.bits[word].load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub fn has(&self, block: usize) -> bool {
        self.word(block / 64) >> (block % 64) & 1 != 0
    }

    /// Sets bits; returns those of them that were set.
    #[inline(always)]
    pub fn add(&self, word: usize, mask: u64) -> u64 {
        // What was written to the block before is visible to whoever finds it freed.
        self.bits[word].fetch_or(mask, Ordering::Release) & mask
    }

    /// Sets the bit of a block that the thread frees; returns false where it was set.
    #[inline(always)]
    pub fn add_own(&self, word: usize, bit: u64) -> bool {
        if !single_threaded() {
            return self.add(word, bit) == 0;
        }
        // An instruction that excludes other processors costs more than all else that free does. A signal handler must not
        // allocate here, as nowhere in free.
        let before = self.word(word);
        self.set(word, before | bit);
        before & bit == 0
    }

    /// Clears bits.
    pub fn remove(&self, word: usize, mask: u64) {
        self.bits[word].fetch_and(!mask, Ordering::Relaxed);
    }

    /// Replaces the bits of 64 blocks; no other thread changes them.
    pub fn set(&self, word: usize, bits: u64) {
        self.bits[word].store(bits, Ordering::Relaxed);
    }
}

/// The table of freed blocks, and what becomes of them.
#[derive(Debug)]
pub struct FreedTable {
    /// The rows, one a unit; 0 in other modes.
    pub rows: AtomicUsize,
    /// Rows of a unit are so far apart, a power of two: 1 where each has a second row, of blocks that were kept before.
    shift: AtomicU32,
    /// Freed blocks are cleared, so that they keep nothing.
    pub clears: AtomicBool,
    /// Whether large ones become inaccessible, and how many are now.
    pub faults: AtomicBool,
    pub inaccessible: AtomicUsize,
    /// Blocks that were written after their free, and one of them that is not reported yet.
    late: AtomicU64,
    late_at: AtomicUsize,
}

impl FreedTable {
    pub const fn new() -> FreedTable {
        FreedTable {
            rows: AtomicUsize::new(0),
            shift: AtomicU32::new(0),
            clears: AtomicBool::new(true),
            faults: AtomicBool::new(false),
            inaccessible: AtomicUsize::new(0),
            late: AtomicU64::new(0),
            late_at: AtomicUsize::new(0),
        }
    }

    /// Applies the settings, before there are rows.
    pub fn configure(&self, settings: &GuardSettings) {
        self.clears.store(settings.clear, Ordering::Relaxed);
        self.faults.store(settings.fault, Ordering::Relaxed);
        let releases = settings.waiting.is_some() && settings.at_bound == AtBound::Release;
        self.shift.store(releases.into(), Ordering::Relaxed);
    }

    /// Bytes of the rows of this number of units.
    pub fn bytes(&self, units: usize) -> usize {
        (units << self.shift.load(Ordering::Relaxed)) * size_of::<Freed>()
    }

    /// The row of a unit; null in other modes.
    #[inline(always)]
    pub fn row(&self, unit: usize) -> *const Freed {
        let rows = self.rows.load(Ordering::Relaxed) as *const Freed;
        if rows.is_null() { rows } else { rows.wrapping_add(unit << self.shift.load(Ordering::Relaxed)) }
    }

    /// Whether units have a second row.
    pub fn has_older(&self) -> bool {
        self.shift.load(Ordering::Relaxed) != 0
    }

    /// A block that becomes available was written after its free.
    #[cold]
    pub fn count_late(&self, address: usize) {
        self.late.fetch_add(1, Ordering::Relaxed);
        self.late_at.store(address, Ordering::Relaxed);
    }

    /// How many blocks were written after their free.
    pub fn late(&self) -> u64 {
        self.late.load(Ordering::Relaxed)
    }

    /// A block that was written after its free, to be reported.
    pub fn take_late(&self) -> Option<usize> {
        // Most calls find none, and must not take the line from another processor's cache.
        let found = self.late_at.load(Ordering::Relaxed) != 0;
        found.then(|| self.late_at.swap(0, Ordering::Relaxed)).filter(|&address| address != 0)
    }
}
