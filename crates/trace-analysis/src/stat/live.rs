//! A live object while a trace is summed up, in 32 bytes.

use crate::objects::{MAX_SIZE, Object};

/// A slot: of a live object, or of none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Live {
    /// Requested bytes, 48 bits; above them how often it was resized, 16 bits.
    size: u64,
    /// Usable bytes, 48 bits; above them whether there is an object.
    usable: u64,
    /// Byte clock after its allocation, the lower half. The bits above it are in `usable`.
    clock: u32,
    /// Number of the allocation among those of its thread, the lower half.
    number: u32,
    /// Thread that allocated it.
    pub thread: u32,
    /// Site that allocated it.
    pub site: u32,
}

const ALIVE: u64 = 1 << 48;
/// Bits 49 to 63 of `usable`: 15 bits of the clock above its lower half.
const CLOCK_SHIFT: u32 = 49;
const CLOCK_BITS: u32 = 32 + (64 - CLOCK_SHIFT);
/// Most resizes counted of one object.
const MAX_RESIZES: u64 = u16::MAX as u64;

impl Object for Live {
    #[inline(always)]
    fn is_alive(&self) -> bool {
        self.usable & ALIVE != 0
    }
}

impl Live {
    /// A new object. `size` and `usable` are at most [`MAX_SIZE`].
    #[inline(always)]
    pub fn new(size: u64, usable: u64, clock: u64, number: u64, thread: u32, site: u32) -> Live {
        debug_assert!(size <= MAX_SIZE && usable <= MAX_SIZE);
        Live {
            size,
            usable: usable | ALIVE | (clock >> 32) << CLOCK_SHIFT,
            clock: clock as u32,
            number: number as u32,
            thread,
            site,
        }
    }

    /// Requested bytes.
    #[inline(always)]
    pub fn size(&self) -> u64 {
        self.size & MAX_SIZE
    }

    /// Usable bytes.
    #[inline(always)]
    pub fn usable(&self) -> u64 {
        self.usable & MAX_SIZE
    }

    /// How often it was resized; 65,535 means that or more.
    #[inline(always)]
    pub fn resizes(&self) -> u64 {
        self.size >> 48
    }

    /// Bytes allocated since it was allocated, modulo 2^47: an object that lives while 128 TiB are allocated is taken
    /// for a young one.
    #[inline(always)]
    pub fn age_bytes(&self, clock: u64) -> u64 {
        let birth = u64::from(self.clock) | (self.usable >> CLOCK_SHIFT) << 32;
        clock.wrapping_sub(birth) & ((1 << CLOCK_BITS) - 1)
    }

    /// Allocations of its thread since it was allocated, modulo 2^32, where `number` is that thread's count of
    /// allocations.
    #[inline(always)]
    pub fn age_allocations(&self, number: u64) -> u32 {
        (number as u32).wrapping_sub(self.number)
    }

    /// Sets another size.
    #[inline(always)]
    pub fn resize(&mut self, size: u64, usable: u64) {
        debug_assert!(size <= MAX_SIZE && usable <= MAX_SIZE);
        self.size = size | (self.resizes() + 1).min(MAX_RESIZES) << 48;
        self.usable = usable | self.usable & !MAX_SIZE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_takes_32_bytes_and_keeps_all_its_members() {
        assert_eq!(size_of::<Live>(), 32);
        assert!(!Live::default().is_alive());
        let clock = 0x7fff_ffff_fff0;
        let mut live = Live::new(MAX_SIZE, MAX_SIZE - 1, clock, u64::from(u32::MAX), 7, 9);
        assert!(live.is_alive());
        assert_eq!((live.size(), live.usable(), live.resizes()), (MAX_SIZE, MAX_SIZE - 1, 0));
        assert_eq!(live.age_bytes(clock), 0);
        assert_eq!(live.age_bytes(clock + 4096), 4096, "over the end of the 47 bits");
        assert_eq!(live.age_allocations((1 << 32) + 2), 3);
        for _ in 0..70_000 {
            live.resize(3, 24);
        }
        assert_eq!((live.size(), live.usable(), live.resizes()), (3, 24, 65_535));
        assert_eq!((live.age_bytes(clock + 1), live.thread, live.site), (1, 7, 9));
    }
}
