//! Pages of the region, and a table of what each is for: a block of cells, a large object, the collector's own, or free.
//!
//! ```text
//!   own   own   cells   free   large ─────────────   cells ────── ...
//!  ├─────┼─────┼───────┼──────┼──────┼──────┼──────┼──────┼─────
//!                                ▲______│______│      first: each page leads to the first of its run
//! ```

use heaptoll_assertions::assert_internal;
use heaptoll_runtime::{PAGE, Region, WORD};
use heaptoll_wheel::REACH_BYTES;

use crate::support::Buffer;

/// What a page is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Use {
    Free = 0,
    /// The sentinels.
    Own = 1,
    /// Cells: a block of them or a large object.
    Cells = 2,
}

/// The table's entry of a page. Zero is a free one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// The first page of its run.
    pub first: u32,
    /// Of the first page: how many the run has.
    pub count: u32,
    /// Of the first page of a large object: bytes from there to the object.
    pub offset: u16,
    /// Of cells: their wheel.
    pub wheel: u8,
    pub is: Use,
}

const FREE: Page = Page { first: 0, count: 0, offset: 0, wheel: 0, is: Use::Free };

/// See the module.
#[derive(Debug)]
pub struct Pages {
    pub region: Region,
    table: Buffer<Page>,
    /// How many are free.
    free: usize,
    /// None is free below this one.
    lowest: usize,
    /// From this one on none was ever in use: they are zero.
    fresh: usize,
    /// Bytes that the heap may have.
    limit: usize,
    /// The system, or the limit, has refused memory in this call.
    pub refused: bool,
    /// It was the limit.
    pub at_limit: bool,
}

impl Pages {
    pub const fn new() -> Pages {
        Pages {
            region: Region::new(),
            table: Buffer::new(),
            free: 0,
            lowest: 0,
            fresh: 0,
            limit: REACH_BYTES - PAGE,
            refused: false,
            at_limit: false,
        }
    }

    /// Limits the heap, bytes: whole pages. Links reach no further than 32 GiB.
    pub fn limit(&mut self, bytes: usize) {
        self.limit = bytes.min(REACH_BYTES - PAGE);
    }

    /// Where numbers of cells begin: a word before the second granule. A word when there is no page yet.
    #[inline(always)]
    pub const fn base(&self) -> usize {
        self.region.start() + WORD
    }

    /// How many pages there are.
    pub const fn count(&self) -> usize {
        (self.region.end() - self.region.start()) / PAGE
    }

    /// Where the table lies.
    pub const fn table_range(&self) -> core::ops::Range<usize> {
        self.table.range()
    }

    /// The address of a page.
    #[inline(always)]
    pub const fn address(&self, number: usize) -> usize {
        self.region.start() + number * PAGE
    }

    /// The number of the page with an address of the region.
    #[inline(always)]
    pub const fn number(&self, address: usize) -> usize {
        (address - self.region.start()) / PAGE
    }

    /// The entry of a page of the region.
    #[inline(always)]
    pub fn page(&self, number: usize) -> &Page {
        assert_internal!(number < self.count(), "a page that is looked up is one of the region");
        // SAFETY: the table has an entry for each page of the region; `grow` reserves it before the region grows.
        unsafe { &*self.table.at(number) }
    }

    fn page_mut(&mut self, number: usize) -> &mut Page {
        // SAFETY: as in `page`.
        unsafe { &mut *self.table.at(number) }
    }

    /// Extends the region by `most` pages, or `least`, at least 1, if the system or the limit does not allow as many.
    /// `None` when these cannot be had either.
    pub fn grow(&mut self, least: usize, most: usize) -> Option<()> {
        // A call requests only once what it was refused.
        if self.refused {
            return None;
        }
        let left = self.limit.saturating_sub(self.count() * PAGE) / PAGE;
        if least > left {
            (self.refused, self.at_limit) = (true, true);
            return None;
        }
        let most = most.max(least).min(left);
        let grown = self.extend(least, most);
        self.refused = grown.is_none();
        grown
    }

    fn extend(&mut self, least: usize, most: usize) -> Option<()> {
        let before = self.count();
        self.table.reserve(before + most).or_else(|| self.table.reserve(before + least))?;
        let most = most.min(self.table.capacity() - before);
        self.region.grow_within(least * PAGE, most * PAGE)?;
        self.free += self.count() - before;
        Some(())
    }

    /// Takes the first consecutive free pages of a number: the first, and whether they are zero.
    pub fn take(&mut self, count: usize, page: Page) -> Option<(usize, bool)> {
        if self.free < count {
            return None;
        }
        let first = self.find_free(count)?;
        let clean = first >= self.fresh;
        self.fresh = self.fresh.max(first + count);
        self.set(first, count, Page { first: first as u32, count: 0, ..page });
        self.page_mut(first).count = count as u32;
        self.free -= count;
        Some((first, clean))
    }

    /// The first of `count` free pages; run by run of those in use.
    fn find_free(&mut self, count: usize) -> Option<usize> {
        let (mut at, mut found, mut lowest) = (self.lowest, 0, None);
        while at < self.count() {
            let page = *self.page(at);
            if page.is != Use::Free {
                (at, found) = (at + page.count as usize, 0);
                continue;
            }
            lowest = lowest.or(Some(at));
            (at, found) = (at + 1, found + 1);
            if found == count {
                break;
            }
        }
        // Taking these pages itself leaves none free below their end, if they are the lowest.
        self.lowest = lowest.unwrap_or(at);
        (found == count).then(|| at - count)
    }

    /// Gives a run back.
    pub fn release(&mut self, first: usize) {
        let count = self.page(first).count as usize;
        self.set(first, count, FREE);
        self.free += count;
        self.lowest = self.lowest.min(first);
    }

    /// Gives back the pages of a run before and after `count` of it from `first` on.
    pub fn trim(&mut self, run: usize, first: usize, count: usize) {
        let whole = *self.page(run);
        let end = run + whole.count as usize;
        assert_internal!(run <= first && first + count <= end, "what stays of a run is a part of it");
        self.set(run, whole.count as usize, FREE);
        self.set(first, count, Page { first: first as u32, count: 0, ..whole });
        self.page_mut(first).count = count as u32;
        self.free += whole.count as usize - count;
        self.lowest = self.lowest.min(run);
    }

    fn set(&mut self, first: usize, count: usize, page: Page) {
        (first..first + count).for_each(|number| *self.page_mut(number) = page);
    }

    /// Runs in use and free pages, in order: the first page and how many.
    pub fn runs(&self) -> impl Iterator<Item = (usize, Page)> {
        let mut at = 0;
        core::iter::from_fn(move || {
            let first = at;
            let page = (at < self.count()).then(|| *self.page(at))?;
            at += if page.is == Use::Free { self.free_from(at) } else { (page.count as usize).max(1) };
            Some((first, Page { count: (at - first) as u32, ..page }))
        })
    }

    /// How many pages from this one on are free.
    fn free_from(&self, number: usize) -> usize {
        (number..self.count()).take_while(|&page| self.page(page).is == Use::Free).count()
    }

    /// Whether what is counted of free pages is right.
    pub fn is_counted(&self) -> bool {
        let free = |&number: &usize| self.page(number).is == Use::Free;
        (0..self.count()).filter(free).count() == self.free
            && !(0..self.lowest.min(self.count())).any(|page| free(&page))
    }
}
