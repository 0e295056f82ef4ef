//! The driver's tables by slot: where the block is, its requested size, and how many calls were made on the slot. All
//! resident before the first call.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use super::area::Area;

/// Where the block of each slot is; with `GENERATIONS`, and the number of calls made on the slot.
#[derive(Clone, Copy)]
pub struct Blocks<const GENERATIONS: bool> {
    area: Area,
    slots: usize,
}

impl<const GENERATIONS: bool> Blocks<GENERATIONS> {
    const STRIDE: usize = if GENERATIONS { 16 } else { 8 };

    /// All empty.
    pub fn new(slots: usize) -> io::Result<Blocks<GENERATIONS>> {
        let bytes = slots.checked_mul(Self::STRIDE).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Blocks { area: Area::new(bytes, bytes)?, slots })
    }

    /// Empties all.
    ///
    /// # Safety
    /// No other thread uses the table.
    pub unsafe fn clear(&self) {
        // SAFETY: within the area, which no other thread uses now: the caller guarantees it.
        unsafe { self.area.start().write_bytes(0, self.slots * Self::STRIDE) };
    }

    /// Slots.
    pub fn slots(&self) -> u32 {
        self.slots as u32
    }

    /// Whether a program's slot is one of ours.
    pub fn holds(&self, slot: u32) -> bool {
        (slot as usize) < self.slots
    }

    #[inline(always)]
    fn entry(&self, slot: u32) -> *mut *mut u8 {
        // SAFETY: slots of a program are below `slots`, which was checked when the block of words was read.
        unsafe { self.area.start().add(slot as usize * Self::STRIDE).cast() }
    }

    /// The block.
    ///
    /// # Safety
    /// The slot is in the table (`check`), and no other thread writes it now, by the program's order.
    #[inline(always)]
    pub unsafe fn get(&self, slot: u32) -> *mut u8 {
        // SAFETY: the caller guarantees a slot of the table that no other thread writes now.
        unsafe { *self.entry(slot) }
    }

    /// Puts a block there, or null.
    ///
    /// # Safety
    /// As [`Blocks::get`].
    #[inline(always)]
    pub unsafe fn set(&self, slot: u32, block: *mut u8) {
        // SAFETY: the caller guarantees a slot of the table that no other thread writes now.
        unsafe { *self.entry(slot) = block };
        if GENERATIONS {
            // One writer at a time, so that no read-modify-write is needed; the release shows the block with it.
            let generation = self.generation(slot);
            generation.store(generation.load(Ordering::Relaxed) + 1, Ordering::Release);
        }
    }

    /// Calls made on the slot. Only with `GENERATIONS`.
    #[inline(always)]
    pub fn generation(&self, slot: u32) -> &AtomicU64 {
        // SAFETY: the second word of an entry of 16 bytes is only ever accessed as this atomic.
        unsafe { AtomicU64::from_ptr(self.entry(slot).cast::<u64>().add(1)) }
    }

    /// Loads the slot's entry into the cache.
    #[inline(always)]
    pub fn prefetch(&self, slot: u32) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a prefetch faults nowhere; for an address outside of the table it does nothing.
        unsafe {
            let at = self.area.start().wrapping_add(slot as usize * Self::STRIDE);
            core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(at.cast());
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = slot;
    }
}

/// Requested sizes by slot; nothing when they are not needed.
#[derive(Clone, Copy)]
pub struct Sizes {
    area: Option<Area>,
}

impl Sizes {
    /// The size; 0 without a table.
    ///
    /// # Safety
    /// As [`Blocks::get`].
    pub unsafe fn get(&self, slot: u32) -> u64 {
        match self.area {
            // SAFETY: the table is as long as that of blocks; the caller guarantees a slot of it that no other thread
            // writes now.
            Some(area) => unsafe { *area.start().cast::<u64>().add(slot as usize) },
            None => 0,
        }
    }

    /// All 0.
    pub fn new(slots: usize, needed: bool) -> io::Result<Sizes> {
        Ok(Sizes { area: if needed { Some(Area::table::<u64>(slots)?) } else { None } })
    }

    /// Puts the size there and gives what was there; 0 without a table.
    ///
    /// # Safety
    /// As [`Blocks::get`].
    #[inline(always)]
    pub unsafe fn replace(&self, slot: u32, size: u64) -> u64 {
        match self.area {
            // SAFETY: the table is as long as that of blocks; the caller guarantees a slot of it that no other thread
            // writes now.
            Some(area) => unsafe { area.start().cast::<u64>().add(slot as usize).replace(size) },
            None => 0,
        }
    }
}
