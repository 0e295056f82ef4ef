//! The brk segment of a program over glibc, computed from its blocks.
//!
//! A sample of a process shows its heap as it is at that time, and a short program has ended before the first one. But
//! how far glibc moves the segment's end follows from the blocks that it hands out: when a block does not fit in front
//! of the end, the end goes to the block's own end plus the top's least size and `M_TOP_PAD`, rounded up to a page
//! (`sysmalloc` in glibc's malloc.c; `M_TOP_PAD` is 128 KiB unless a program changes it by mallopt). Releases of the
//! top (`M_TRIM_THRESHOLD`) are not followed: they make no peak higher.

/// Addresses of a brk segment lie below, those of mappings above.
const MAPPINGS: u64 = 0x7000_0000_0000;
const PAGE: u64 = 4096;
/// `DEFAULT_TOP_PAD`.
const TOP_PAD: u64 = 128 << 10;
/// The least that stays after the last block, `MINSIZE`.
const LEAST_TOP: u64 = 32;
/// Usable bytes of a block that lie in the next chunk.
const SHARED: u64 = 8;

/// What the blocks show of the segment.
#[derive(Debug, Default)]
pub struct Brk {
    /// First address of a page in which the lowest block lies; 0 before the first.
    start: u64,
    end: u64,
}

impl Brk {
    /// A block was allocated, with this many usable bytes.
    #[inline(always)]
    pub fn block(&mut self, address: u64, usable: u64) {
        let end = address.wrapping_add(usable).wrapping_sub(SHARED);
        if end.wrapping_add(LEAST_TOP) > self.end && address < MAPPINGS && end < MAPPINGS {
            self.grow(address, end);
        }
    }

    #[cold]
    fn grow(&mut self, address: u64, end: u64) {
        if self.start == 0 {
            self.start = address & !(PAGE - 1);
        }
        self.end = (end + TOP_PAD + LEAST_TOP).next_multiple_of(PAGE);
    }

    /// The segment's largest size, bytes; 0 when no block lay in it.
    pub fn bytes(&self) -> u64 {
        self.end - self.start
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_segment_grows_as_glibc_grows_it() {
        let mut brk = Brk::default();
        // A mapped block is not part of it.
        brk.block(0x7fff_f7a0_0010, 1 << 20);
        assert_eq!(brk.bytes(), 0);
        // glibc's first segment is 33 pages: a small block, 128 KiB.
        brk.block(0x5555_5555_92a0, 24);
        assert_eq!(brk.bytes(), 33 * PAGE);
        brk.block(0x5555_5555_92a0 + (100 << 10), 24);
        assert_eq!(brk.bytes(), 33 * PAGE, "it fits");
        brk.block(0x5555_5555_9000 + (140 << 10) + 0x10, 24);
        assert_eq!(brk.bytes(), (140 << 10) + 33 * PAGE);
    }

    #[test]
    fn nonsense_does_no_harm() {
        let mut brk = Brk::default();
        for (address, usable) in
            [(8, 0), (0, 0), (u64::MAX, u64::MAX), (16, u64::MAX), (MAPPINGS - 8, 1 << 40)]
        {
            brk.block(address, usable);
        }
        let _ = brk.bytes();
    }
}
