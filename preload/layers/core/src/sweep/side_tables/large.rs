//! Large blocks, by number.

use core::ops::Range;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use heaptoll_runtime::Region;

use super::block::NoMemory;

/// A large block, or nothing.
#[repr(C)]
pub struct LargeEntry {
    pub start: AtomicUsize,
    /// 0 when there is none.
    pub bytes: AtomicUsize,
    /// 1 when it is marked; where there is none, the number of the next free entry and one.
    pub mark: AtomicU32,
    _rest: u32,
}

/// What the tables' lock guards.
pub struct LargeSupply {
    region: Region,
    free: u32,
}

impl LargeSupply {
    pub const fn new() -> LargeSupply {
        LargeSupply { region: Region::new(), free: 0 }
    }

    pub fn range(&self) -> Range<usize> {
        self.region.start()..self.region.end()
    }

    pub fn fail_every(&mut self, every: u64) {
        self.region.fail_every(every);
    }
}

/// The table.
pub struct Large {
    entries: AtomicUsize,
    /// Entries that were ever used.
    length: AtomicUsize,
}

impl Large {
    pub const fn new() -> Large {
        Large { entries: AtomicUsize::new(0), length: AtomicUsize::new(0) }
    }

    /// An entry that was given out once.
    #[inline(always)]
    pub fn entry(&self, number: usize) -> &LargeEntry {
        // SAFETY: entries are never given back, and the region grows in place.
        unsafe { &*(self.entries.load(Ordering::Acquire) as *const LargeEntry).add(number) }
    }

    /// All entries, taken or not.
    pub fn entries(&self) -> &[LargeEntry] {
        let entries = self.entries.load(Ordering::Acquire) as *const LargeEntry;
        if entries.is_null() {
            return &[];
        }
        // SAFETY: entries are never given back, and the first `length` are initialised.
        unsafe { core::slice::from_raw_parts(entries, self.length.load(Ordering::Acquire)) }
    }

    /// Gives a block a number. The caller holds the lock.
    pub fn add(&self, supply: &mut LargeSupply, start: usize, bytes: usize) -> Result<usize, NoMemory> {
        let number = if supply.free != 0 {
            let number = supply.free as usize - 1;
            supply.free = self.entry(number).mark.swap(0, Ordering::Relaxed);
            number
        } else {
            let length = self.length.load(Ordering::Relaxed);
            if (length + 1) * size_of::<LargeEntry>() > supply.region.end() - supply.region.start() {
                supply.region.grow(heaptoll_runtime::PAGE).ok_or(NoMemory)?;
                self.entries.store(supply.region.start(), Ordering::Release);
            }
            self.length.store(length + 1, Ordering::Release);
            length
        };
        let entry = self.entry(number);
        entry.start.store(start, Ordering::Relaxed);
        entry.bytes.store(bytes, Ordering::Release);
        Ok(number)
    }

    /// Frees a number. The caller holds the lock.
    pub fn forget(&self, supply: &mut LargeSupply, number: usize) {
        let entry = self.entry(number);
        entry.bytes.store(0, Ordering::Relaxed);
        entry.mark.store(supply.free, Ordering::Relaxed);
        supply.free = number as u32 + 1;
    }
}
