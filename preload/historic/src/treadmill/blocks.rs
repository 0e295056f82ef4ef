//! Blocks of cells: where the cells of a size class lie in their pages, and which cell a word points into.
//!
//! ```text
//!  page                     page + first
//!  ├─ ... ─────────┬────────┼─────────────────┬────────┼─────────────────┬──
//!                  │ links  │ object 0        │ links  │ object 1        │
//!  └───────────────┴────────┴─────────────────┴────────┴─────────────────┴──
//!                           ├─── a pointer to here ────┤ is one to object 0
//! ```
//!
//! An object begins at a multiple of the largest power of two that divides its cell's size (or of a page), so that
//! aligned requests are served by a class. The word after an object belongs to it, so that a pointer to its end, which C
//! allows, keeps it.

use heaptoll_runtime::{PAGE, WORD};
use heaptoll_wheel::class::{CLASSES, LARGEST, class_for, pages_of_block, size_of_class};
use heaptoll_wheel::{Links, SENTINEL_BYTES, Wheel};

use crate::treadmill::pages::{Page, Pages, Use};

/// The wheel of large objects; those of classes come before. Then come as many for objects without pointers.
const LARGE: usize = CLASSES;
/// Wheels of objects that may have pointers.
pub const SCANNED: usize = CLASSES + 1;
/// All wheels.
pub const WHEELS: usize = 2 * SCANNED;
/// Pages of their sentinels.
pub const OWN_PAGES: usize = (WORD + WHEELS * SENTINEL_BYTES).div_ceil(PAGE);
/// Bytes of a large object's pages that it cannot have: its links and the word after it.
const LARGE_EXTRA: usize = 2 * WORD;
/// Where a large object begins in its first page, unless it is aligned to more.
const LARGE_OFFSET: usize = 16;

const _: () = assert!(SCANNED <= 64 && WHEELS <= u8::MAX as usize);

/// A cell of the heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    /// Of its links.
    pub address: usize,
    /// Its bytes, those of the links and of the object.
    pub size: usize,
    /// The number of its wheel.
    pub wheel: usize,
}

impl Cell {
    /// The object's address.
    #[inline(always)]
    pub const fn object(self) -> usize {
        self.address + WORD
    }

    /// Bytes that the program may use.
    #[inline(always)]
    pub const fn usable(self) -> usize {
        self.size - WORD
    }
}

/// How the cells of a class lie in a block.
#[derive(Debug, Clone, Copy)]
struct Layout {
    size: u16,
    /// Bytes from the block's begin to the first object.
    first: u16,
    count: u16,
    /// Divides by the size: rounded up, of 2^32.
    reciprocal: u32,
}

/// Those of all wheels; nothing for those of large objects.
static LAYOUTS: [Layout; WHEELS] = {
    let mut layouts = [Layout { size: 0, first: 0, count: 0, reciprocal: 0 }; WHEELS];
    let mut class = 0;
    while class < CLASSES {
        let size = size_of_class(class);
        let first = 1 << if size.trailing_zeros() < 12 { size.trailing_zeros() } else { 12 };
        let count = (pages_of_block(class) * PAGE - first) / size;
        let reciprocal = (1_u64 << 32).div_ceil(size as u64) as u32;
        layouts[class] = Layout { size: size as u16, first: first as u16, count: count as u16, reciprocal };
        layouts[SCANNED + class] = layouts[class];
        class += 1;
    }
    layouts
};

/// Whether a wheel is of large objects.
#[inline(always)]
pub const fn is_large(wheel: usize) -> bool {
    wheel == LARGE || wheel == SCANNED + LARGE
}

/// Whether the objects of a wheel may have pointers.
#[inline(always)]
pub const fn is_scanned(wheel: usize) -> bool {
    wheel < SCANNED
}

/// The wheel for a request; that of large objects where no class is large enough.
#[inline(always)]
pub fn wheel_for(bytes: usize) -> usize {
    if bytes <= LARGEST - WORD { class_for(bytes + WORD) } else { LARGE }
}

/// The wheel for an aligned request.
pub fn wheel_for_aligned(alignment: usize, bytes: usize) -> usize {
    let fits = |&class: &usize| usize::from(LAYOUTS[class].first).is_multiple_of(alignment);
    (wheel_for(bytes)..CLASSES).find(fits).unwrap_or(LARGE)
}

/// Bytes of the cells of a wheel of a class.
#[inline(always)]
pub fn size_of(wheel: usize) -> usize {
    usize::from(LAYOUTS[wheel].size)
}

/// Pages of a block of cells of a class's wheel.
pub fn pages_of(wheel: usize) -> usize {
    pages_of_block(wheel % SCANNED)
}

/// Pages of a large object, and of a run in which it can be aligned.
pub fn pages_of_large(alignment: usize, bytes: usize) -> Option<(usize, usize)> {
    let pages = bytes.checked_add(large_offset(alignment) + LARGE_EXTRA)?.div_ceil(PAGE);
    Some((pages, pages.checked_add(alignment.saturating_sub(PAGE) / PAGE)?))
}

/// Bytes from a large object's first page to it.
pub fn large_offset(alignment: usize) -> usize {
    alignment.clamp(LARGE_OFFSET, PAGE)
}

impl Pages {
    /// The cell that an address points into, at its object or the word after it.
    #[inline(always)]
    pub fn find(&self, address: usize) -> Option<Cell> {
        if !self.region.contains(address) {
            return None;
        }
        let page = self.page(self.number(address));
        if page.is != Use::Cells {
            return None;
        }
        let (run, wheel) = (page.first as usize, usize::from(page.wheel));
        let block = self.address(run);
        if is_large(wheel) {
            let cell = self.large(run, self.page(run));
            return (address >= cell.object()).then_some(cell);
        }
        let layout = &LAYOUTS[wheel];
        let into = (address - block).checked_sub(layout.first.into())?;
        let index = ((into as u64 * u64::from(layout.reciprocal)) >> 32) as usize;
        (index < layout.count.into()).then(|| layout.cell(block, index, wheel))
    }

    fn large(&self, run: usize, page: &Page) -> Cell {
        let (offset, bytes) = (usize::from(page.offset), page.count as usize * PAGE);
        let address = self.address(run) + offset - WORD;
        Cell { address, size: bytes - offset, wheel: page.wheel.into() }
    }

    /// The cells of a run of pages, in order of address.
    pub fn cells(&self, run: usize) -> impl Iterator<Item = Cell> {
        let page = *self.page(run);
        let wheel = usize::from(page.wheel);
        let count = match is_large(wheel) {
            true => 1,
            false => usize::from(LAYOUTS[wheel].count),
        };
        let block = self.address(run);
        (0..count).map(move |index| match is_large(wheel) {
            true => self.large(run, &page),
            false => LAYOUTS[wheel].cell(block, index, wheel),
        })
    }

    /// Makes the wheels of a heap whose first pages are there.
    pub fn make_wheels(&mut self) {
        let own = Page { first: 0, count: 0, offset: 0, wheel: 0, is: Use::Own };
        let taken = self.take(OWN_PAGES, own);
        debug_assert_eq!(taken, Some((0, true)));
        let (links, base) = (Links::new(self.base()), self.base());
        for number in 0..WHEELS {
            // SAFETY: the first pages are the collector's own, and hold the sentinels of all wheels.
            unsafe { Wheel::new(links, base + number * SENTINEL_BYTES) };
        }
    }
}

impl Layout {
    #[inline(always)]
    fn cell(&self, block: usize, index: usize, wheel: usize) -> Cell {
        let size = usize::from(self.size);
        Cell { address: block + usize::from(self.first) + index * size - WORD, size, wheel }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reciprocal_divides_every_distance_in_a_block() {
        for (class, layout) in LAYOUTS[..CLASSES].iter().enumerate() {
            for into in 0..pages_of_block(class) * PAGE {
                let index = ((into as u64 * u64::from(layout.reciprocal)) >> 32) as usize;
                assert_eq!(index, into / usize::from(layout.size), "{into} of {layout:?}");
            }
        }
    }

    #[test]
    fn objects_and_the_words_after_them_lie_in_their_block_as_aligned_as_their_size() {
        for (class, layout) in LAYOUTS[..CLASSES].iter().enumerate() {
            let (size, bytes) = (usize::from(layout.size), pages_of_block(class) * PAGE);
            let last = layout.cell(0, usize::from(layout.count) - 1, class);
            assert!(last.object() + size <= bytes, "{layout:?}");
            assert!(bytes - last.object() - size < size + usize::from(layout.first), "{layout:?}");
            assert!(layout.cell(0, 0, class).object().is_multiple_of(16), "{layout:?}");
            assert!(size.is_multiple_of(layout.first.into()), "{layout:?}");
        }
    }

    #[test]
    fn aligned_requests_of_up_to_a_page_have_a_class() {
        for bits in 5..=12 {
            let wheel = wheel_for_aligned(1 << bits, 100);
            assert!(!is_large(wheel) && size_of(wheel) >= 108, "2^{bits}");
        }
        assert!(is_large(wheel_for_aligned(1 << 13, 100)) && is_large(wheel_for(LARGEST - 7)));
        assert_eq!((size_of(wheel_for(0)), size_of(wheel_for(LARGEST - 8))), (32, LARGEST));
    }
}
