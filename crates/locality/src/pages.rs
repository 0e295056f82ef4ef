//! Page faults for every memory size, and TLB misses for every number of entries: LRU stack distances of pages.
//!
//! Most references are to the page of the one before and change nothing, so this costs little beside the lines. A memory
//! of so many bytes holds whole pages; a TLB is the same with its entries for pages (fully associative).

use crate::distance::Distances;
use crate::distance::curve::{Curve, Misses};
use crate::distance::front::{Fallen, Lanes};
use crate::simulation::Maker;

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
    /// Of nothing so far.
    pub fn new() -> Pages {
        Pages { distances: Distances::new(), last: NONE }
    }

    /// Touches a page and gives its distance, which is to be recorded.
    pub fn touch(&mut self, page: u32) -> u32 {
        if page == self.last {
            return 0;
        }
        self.last = page;
        self.distances.touch(page)
    }

    /// Counts a reference with the distance that [`Pages::touch`] gave.
    pub fn record(&mut self, maker: Maker, distance: u32) {
        self.distances.record(maker, distance);
    }

    /// References of a maker to pages, one after the other. What `pages` holds afterwards is of no meaning; `room` is at
    /// least as long.
    #[inline(always)]
    pub fn references(&mut self, lanes: impl Lanes, maker: Maker, pages: &mut [u32], room: &mut [Fallen]) {
        let mut kept = 0;
        for at in 0..pages.len() {
            let page = pages[at];
            pages[kept] = page;
            kept += usize::from(page != self.last);
            self.last = page;
        }
        self.record_same(maker, (pages.len() - kept) as u64);
        self.distances.references(lanes, maker, &pages[..kept], room);
    }

    /// Counts references to the page touched last.
    pub fn record_same(&mut self, maker: Maker, times: u64) {
        self.distances.record_same(maker, times);
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

/// Misses of a fully associative TLB that has so many entries, each for one page of the curve.
pub fn tlb_misses(pages: &Curve, entries: u64) -> Misses {
    pages.misses(entries)
}

/// Faults in a memory of so many bytes.
pub fn faults(pages: &Curve, memory_bytes: u64) -> Misses {
    pages.misses_in(memory_bytes)
}
