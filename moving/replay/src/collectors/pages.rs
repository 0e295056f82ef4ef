//! Pages of a heap: addresses reserved once, of which so many pages may be in use.
//!
//! More addresses are reserved than pages may be in use, so that a run of pages is found wherever the heap has the
//! pages for it, as in MMTk's discontiguous spaces.

use std::path::Path;

use heaptoll_moving_answers::PAGE;

use crate::error::Error;

/// Bytes of a page.
pub const PAGE_BYTES: usize = PAGE as usize;
/// The largest heap, pages: 8 GiB.
const MOST: usize = 1 << 21;
/// Pages reserved for each that may be in use, and in any case.
const SPARE: (usize, usize) = (3, 1 << 12);

/// See the module.
#[derive(Debug)]
pub struct Pages {
    base: usize,
    /// A bit a page: whether it is in use.
    taken: Vec<u64>,
    /// Words of `taken` below this one have no page that is free.
    lowest: usize,
    used: usize,
    limit: usize,
}

impl Pages {
    /// Those of a heap of so many pages, of which the collector's tables take so many bytes a page.
    ///
    /// # Errors
    /// The system has no addresses; the heap is larger than any.
    pub fn reserve(heap_pages: usize, table_bytes_a_page: usize) -> Result<Pages, Error> {
        if heap_pages > MOST {
            return Err(Error::Refused("a heap of more than 8 GiB"));
        }
        let limit = heap_pages * PAGE_BYTES / (PAGE_BYTES + table_bytes_a_page);
        let words = (heap_pages * SPARE.0 + SPARE.1).div_ceil(64);
        let (bytes, nowhere) = (words * 64 * PAGE_BYTES, std::ptr::null_mut());
        let (access, kind) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
        );
        // SAFETY: a new mapping of our own.
        let base = unsafe { libc::mmap(nowhere, bytes, access, kind, -1, 0) };
        if base == libc::MAP_FAILED {
            let reason = std::io::Error::last_os_error();
            return Err(Error::system("reserve memory for", Path::new("the heap"))(reason));
        }
        Ok(Pages { base: base as usize, taken: vec![0; words], lowest: 0, used: 0, limit })
    }

    /// The address of the first.
    pub fn base(&self) -> usize {
        self.base
    }

    /// How many are reserved: what a table of all pages needs.
    pub fn reserved(&self) -> usize {
        self.taken.len() * 64
    }

    /// How many are in use.
    pub fn used(&self) -> usize {
        self.used
    }

    /// How many may be in use.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// How many more may be taken.
    pub fn left(&self) -> usize {
        self.limit.saturating_sub(self.used)
    }

    /// The number of the page with an address of the heap.
    #[inline(always)]
    pub fn number(&self, address: usize) -> usize {
        (address - self.base) / PAGE_BYTES
    }

    /// The address of a page.
    #[inline(always)]
    pub fn address(&self, number: usize) -> usize {
        self.base + number * PAGE_BYTES
    }

    /// Whether an address is one of the reserved.
    pub fn contains(&self, address: usize) -> bool {
        address >= self.base && self.number(address) < self.reserved()
    }

    /// Whether a page is in use.
    pub fn is_taken(&self, number: usize) -> bool {
        self.taken[number / 64] >> (number % 64) & 1 == 1
    }

    /// Takes consecutive pages, whatever the limit: the number of the first. None when addresses are used up.
    pub fn take(&mut self, count: usize) -> Option<usize> {
        let mut first = self.free_from(self.lowest * 64)?;
        if count > 1 {
            while let Some(taken) = (first..first + count).rev().find(|&page| self.is_out(page)) {
                first = self.free_from(taken + 1)?;
            }
        } else {
            self.lowest = first / 64;
        }
        (first..first + count).for_each(|page| self.taken[page / 64] |= 1 << (page % 64));
        self.used += count;
        Some(first)
    }

    /// Gives pages back.
    pub fn release(&mut self, first: usize, count: usize) {
        (first..first + count).for_each(|page| self.taken[page / 64] &= !(1 << (page % 64)));
        self.lowest = self.lowest.min(first / 64);
        self.used -= count;
    }

    fn is_out(&self, page: usize) -> bool {
        page >= self.reserved() || self.is_taken(page)
    }

    /// The first free page from this one on.
    fn free_from(&self, page: usize) -> Option<usize> {
        let first = page / 64;
        let mut below = (1_u64 << (page % 64)) - 1;
        for (number, word) in self.taken.iter().enumerate().skip(first) {
            let free = !(word | below);
            below = 0;
            if free != 0 {
                return Some(number * 64 + free.trailing_zeros() as usize);
            }
        }
        None
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the mapping of `reserve`; who drops the pages has no use of what is in them.
        unsafe { libc::munmap(self.base as *mut libc::c_void, self.reserved() * PAGE_BYTES) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_taken_from_the_lowest_on_and_again_when_they_were_released() {
        let mut pages = Pages::reserve(100, 0).unwrap();
        assert_eq!([pages.take(1), pages.take(3), pages.take(1)], [Some(0), Some(1), Some(4)]);
        pages.release(1, 3);
        assert_eq!([pages.take(4), pages.take(2), pages.take(1)], [Some(5), Some(1), Some(3)]);
        assert_eq!((pages.used(), pages.left(), pages.is_taken(8), pages.is_taken(9)), (9, 91, true, false));
    }

    #[test]
    fn no_more_is_taken_than_is_reserved() {
        let mut pages = Pages::reserve(1, 0).unwrap();
        let reserved = pages.reserved();
        assert_eq!(pages.take(reserved + 1), None);
        assert_eq!(pages.take(reserved - 1), Some(0));
        assert_eq!([pages.take(2), pages.take(1), pages.take(1)], [None, Some(reserved - 1), None]);
    }

    #[test]
    fn tables_are_a_part_of_the_heap_and_a_heap_has_a_largest_size() {
        assert_eq!(Pages::reserve(1000, 96).unwrap().limit(), 977);
        assert!(Pages::reserve(MOST + 1, 0).is_err());
    }
}
