//! Page faults for every memory size, and TLB misses for every number of entries: LRU stack distances of pages.
//!
//! Most references are to the page of the one before and change nothing, so this costs little compared with the lines.
//! A memory of this many bytes holds whole pages; a TLB is the same with its entries for pages (fully associative).

use crate::distance::Distances;
use crate::distance::curve::Curve;
use crate::distance::front::{Fallen, Lanes};
use crate::misses::Misses;
use crate::split::Accessor;

/// No page.
const NONE: u32 = u32::MAX;

/// Page distances of a stream.
#[derive(Debug, Clone)]
pub struct Pages {
    distances: Distances,
    /// The page touched last.
    last: u32,
}

impl Default for Pages {
    fn default() -> Pages {
        Pages::new()
    }
}

impl Pages {
    /// No pages yet.
    pub fn new() -> Pages {
        Pages { distances: Distances::new(), last: NONE }
    }

    /// Touches a page and returns its distance, for [`Pages::record`].
    pub fn touch(&mut self, page: u32) -> u32 {
        if page == self.last {
            return 0;
        }
        self.last = page;
        self.distances.touch(page)
    }

    /// Counts a reference with the distance that [`Pages::touch`] returned.
    pub fn record(&mut self, accessor: Accessor, distance: u32) {
        self.distances.record(accessor, distance);
    }

    /// Processes references of an accessor to pages, one after the other. The content of `pages` is undefined
    /// afterwards; `scratch` is at least as long.
    #[inline(always)]
    pub fn references(
        &mut self,
        lanes: impl Lanes,
        accessor: Accessor,
        pages: &mut [u32],
        scratch: &mut [Fallen],
    ) {
        let mut kept = 0;
        for at in 0..pages.len() {
            let page = pages[at];
            pages[kept] = page;
            kept += usize::from(page != self.last);
            self.last = page;
        }
        self.record_same(accessor, (pages.len() - kept) as u64);
        self.distances.references(lanes, accessor, &pages[..kept], scratch);
    }

    /// Counts references to the page touched last.
    pub fn record_same(&mut self, accessor: Accessor, times: u64) {
        self.distances.record_same(accessor, times);
    }

    /// The distances.
    pub fn distances(&self) -> &Distances {
        &self.distances
    }

    /// Faults for every number of pages.
    pub fn curve(self, page_bytes: u64) -> Curve {
        self.distances.curve(page_bytes)
    }
}

/// Misses of a fully associative TLB with this many entries, each for one page of the curve.
pub fn tlb_misses(pages: &Curve, entries: u64) -> Misses {
    pages.misses(entries)
}

/// Faults in a memory of this many bytes.
pub fn faults(pages: &Curve, memory_bytes: u64) -> Misses {
    pages.misses_in(memory_bytes)
}
