//! The kernel's scan of `/proc/self/pagemap` (Linux 6.7 and later): pages by category, holes skipped, and protected against
//! unnoticed writes in the same pass if so requested.

/// The request's number: `_IOWR('f', 16, struct pm_scan_arg)`.
pub const SCAN: u64 = 0xC060_6610;

/// Protects the pages that are shown again.
pub const PROTECT: u64 = 1 << 0;
/// Fails where a mapping does not record writes, and does not pass over it.
pub const CHECK_TRACKED: u64 = 1 << 1;

/// Categories of pages.
pub const WRITTEN: u64 = 1 << 1;
pub const FILE: u64 = 1 << 2;
pub const PRESENT: u64 = 1 << 3;
pub const SWAPPED: u64 = 1 << 4;
pub const ZERO: u64 = 1 << 5;

/// Ranges given by one scan.
pub const REGIONS: usize = 512;

/// The kernel's `struct pm_scan_arg`.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Scan {
    pub size: u64,
    pub flags: u64,
    pub start: u64,
    pub end: u64,
    pub walk_end: u64,
    pub regions: u64,
    pub regions_length: u64,
    pub max_pages: u64,
    pub inverted: u64,
    pub all_of: u64,
    pub any_of: u64,
    pub output_categories: u64,
}

/// The kernel's `struct page_region`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Region {
    pub start: u64,
    pub end: u64,
    pub categories: u64,
}

// The layouts of the kernel's structures, and its request's number, which has the size of the first.
const _: () = {
    assert!(size_of::<Scan>() == 96 && size_of::<Region>() == 24);
    assert!(core::mem::offset_of!(Scan, walk_end) == 32 && core::mem::offset_of!(Scan, regions) == 40);
    assert!(core::mem::offset_of!(Scan, output_categories) == 88);
    assert!(SCAN >> 16 & 0x3fff == size_of::<Scan>() as u64);
};
