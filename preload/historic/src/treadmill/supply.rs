//! Where cells come from when a wheel has none that is free: blocks that hold no object, a collection, growth.

use core::ptr::{self, NonNull};

use heaptoll_assertions::assert_sound;
use heaptoll_runtime::{ADDRESSES, Heap, PAGE, Reason, WORD};

use crate::support::Aborted;
use crate::treadmill::Treadmill;
use crate::treadmill::blocks::{Cell, OWN_PAGES, is_large, large_offset, pages_of, pages_of_large, size_of};
use crate::treadmill::pages::{Page, Use};

/// Pages of a fresh heap: 256 KiB.
const FIRST: usize = 64;
/// A collection that reclaims less than this part of the heap makes it grow, and none is made before this part was
/// allocated since the last.
const PART: usize = 4;
/// A heap that gets no more memory is full when a collection reclaims less than this part of it.
const SHORT: usize = 16;

impl Treadmill {
    /// The heap's size, bytes.
    pub(crate) const fn bytes(&self) -> usize {
        self.pages.count() * PAGE
    }

    /// Takes a free cell of a class: black, and zero.
    #[inline(always)]
    pub(crate) fn take(&mut self, number: usize) -> Option<NonNull<u8>> {
        let (links, size) = (self.links(), size_of(number));
        let cell = self.wheel(number).take(links)?;
        self.used += size;
        // SAFETY: the cell was free, and has as many bytes; objects are not at address 0.
        unsafe {
            links.renew(cell, self.colour);
            let object = (cell + WORD) as *mut u8;
            ptr::write_bytes(object, 0, size - WORD);
            Some(NonNull::new_unchecked(object))
        }
    }

    /// An object of a class, by whatever supplies one.
    #[cold]
    #[inline(never)]
    pub(crate) fn refilled(&mut self, number: usize) -> Option<NonNull<u8>> {
        self.supplied(pages_of(number), |heap| heap.take(number).or_else(|| heap.cut(number)))
    }

    /// A large object, by whatever supplies one: pages of its own.
    #[cold]
    #[inline(never)]
    pub(crate) fn large(&mut self, wheel: usize, alignment: usize, bytes: usize) -> Option<NonNull<u8>> {
        let (pages, whole) = pages_of_large(alignment, bytes)?;
        if whole >= ADDRESSES / PAGE {
            return None;
        }
        self.supplied(whole, |heap| heap.take_large(wheel, alignment, pages, whole))
    }

    /// Adds the cells of a fresh block to a wheel, and takes the first.
    fn cut(&mut self, number: usize) -> Option<NonNull<u8>> {
        let page = Page { first: 0, count: 0, offset: 0, wheel: number as u8, is: Use::Cells };
        let (first, _) = self.pages.take(pages_of(number), page)?;
        let (links, wheel) = (self.links(), self.wheel(number));
        for cell in self.pages.cells(first) {
            // SAFETY: the cell is fresh.
            unsafe {
                wheel.add_free(links, cell.address);
                links.park(cell.address);
            }
        }
        self.take(number)
    }

    fn take_large(
        &mut self,
        wheel: usize,
        alignment: usize,
        pages: usize,
        whole: usize,
    ) -> Option<NonNull<u8>> {
        let offset = large_offset(alignment);
        let page = Page { first: 0, count: 0, offset: offset as u16, wheel: wheel as u8, is: Use::Cells };
        let (run, clean) = self.pages.take(whole, page)?;
        let object = (self.pages.address(run) + offset).next_multiple_of(alignment);
        let first = self.pages.number(object - offset);
        self.pages.trim(run, first, pages);
        let cell = self.pages.cells(first).next()?;
        let links = self.links();
        // SAFETY: the pages were free, and are this object's.
        unsafe {
            if !clean {
                ptr::write_bytes(object as *mut u8, 0, cell.usable());
            }
            self.wheel(wheel).add_black(links, cell.address);
            links.renew(cell.address, self.colour);
        }
        self.used += cell.size;
        NonNull::new(object as *mut u8)
    }

    /// What `take` finds, which needs so many consecutive pages at most: as the heap is, after a collection, after
    /// growth.
    fn supplied<T>(&mut self, pages: usize, take: impl Fn(&mut Treadmill) -> Option<T>) -> Option<T> {
        (self.pages.refused, self.pages.at_limit) = (false, false);
        if self.pages.count() == 0 {
            self.pages.grow(OWN_PAGES + 1, FIRST)?;
            self.pages.make_wheels();
        }
        let supplied = self.supply(pages, &take);
        if let (None, true, Some(reporter)) = (&supplied, self.pages.at_limit, self.reporter) {
            reporter.refused();
        }
        supplied
    }

    fn supply<T>(&mut self, pages: usize, take: &impl Fn(&mut Treadmill) -> Option<T>) -> Option<T> {
        if let Some(found) = self.find(take) {
            return Some(found);
        }
        let (mut reclaimed, mut more) = (None, self.pages.count() / 2);
        if self.used.saturating_sub(self.live) >= self.bytes() / PART {
            match self.collect_for(Reason::Allocation) {
                Ok(found) => reclaimed = Some(found.reclaimed_bytes),
                // By little, so that a program that has collections aborted for long stays small.
                Err(Aborted) => more = FIRST,
            }
        }
        if let Some(bytes) = reclaimed {
            if bytes < self.bytes() / PART {
                // Without more memory the next collection comes sooner.
                let _ = self.pages.grow(1, self.pages.count() / 2);
            }
            if self.is_full(bytes) {
                return None;
            }
            if let Some(found) = self.find(take) {
                return Some(found);
            }
        }
        if self.pages.grow(pages, pages.saturating_add(more)).is_some() {
            return take(self);
        }
        if reclaimed.is_some() {
            return None;
        }
        let bytes = self.collect_for(Reason::Pressure).ok()?.reclaimed_bytes;
        if self.is_full(bytes) { None } else { self.find(take) }
    }

    /// Whether no more memory is to be had, and a collection has reclaimed so little that a program at its limit would
    /// spend its time in collections.
    fn is_full(&self, reclaimed: usize) -> bool {
        self.pages.refused && reclaimed < self.bytes() / SHORT
    }

    /// What `take` finds in the heap as it is.
    fn find<T>(&mut self, take: &impl Fn(&mut Treadmill) -> Option<T>) -> Option<T> {
        take(self).or_else(|| self.after_giving_back(take))
    }

    /// Gives the pages of blocks without an object back, once after each collection; then what `take` finds.
    fn after_giving_back<T>(&mut self, take: &impl Fn(&mut Treadmill) -> Option<T>) -> Option<T> {
        if self.given_back {
            return None;
        }
        self.given_back = true;
        let mut run = OWN_PAGES;
        while run < self.pages.count() {
            let page = *self.pages.page(run);
            if page.is == Use::Cells && !is_large(page.wheel.into()) && self.is_unused(run) {
                self.give_back(run);
            }
            run += page.count.max(1) as usize;
        }
        assert_sound!(self.check());
        take(self)
    }

    /// Whether no cell of a block has an object.
    fn is_unused(&self, run: usize) -> bool {
        // SAFETY: they are cells of the heap.
        !self.pages.cells(run).any(|cell: Cell| unsafe { self.is_used(cell) })
    }

    fn give_back(&mut self, run: usize) {
        let links = self.links();
        for cell in self.pages.cells(run) {
            // SAFETY: the cell is free, and in its wheel.
            unsafe { links.unlink(cell.address) };
        }
        self.pages.release(run);
    }
}
