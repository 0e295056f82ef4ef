//! The caches of all threads, in use or idle, which the collector enumerates.

use core::ptr;

use heaptoll_assertions::{assert_expensive, assert_internal};
use heaptoll_runtime::Region;

use crate::cache::Cache;
use crate::spans::HOMES;

/// All caches ever made. They lie outside the heap and are reused, never unmapped.
#[derive(Debug)]
pub struct Caches {
    region: Region,
    all: *mut Cache,
    idle: *mut Cache,
}

// SAFETY: the pointers point into `region`, which this structure owns.
unsafe impl Send for Caches {}

impl Caches {
    pub const fn new() -> Caches {
        Caches { region: Region::new(), all: ptr::null_mut(), idle: ptr::null_mut() }
    }

    /// Their address range.
    pub fn range(&self) -> core::ops::Range<usize> {
        self.region.mapped()
    }

    /// How much of that is mapped, in whole pages.
    pub fn mapped_bytes(&self) -> usize {
        self.region.mapped_bytes()
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        (self.region.end() - self.region.start()) / size_of::<Cache>()
    }

    /// Visits every cache, the empty idle ones included.
    pub fn each(&self, mut visit: impl FnMut(*mut Cache)) {
        let mut cache = self.all;
        while !cache.is_null() {
            visit(cache);
            // SAFETY: caches are never unmapped, and their links change under this lock only.
            cache = unsafe { (*cache).next };
        }
    }

    /// Whether a cache is in the list of those without a thread.
    fn is_idle(&self, wanted: *mut Cache) -> bool {
        let mut cache = self.idle;
        while !cache.is_null() && cache != wanted {
            // SAFETY: caches are never unmapped, and their links change under this lock only.
            cache = unsafe { (*cache).next_idle };
        }
        !cache.is_null()
    }

    /// An idle cache, or a new one. `None` when there is no memory.
    pub fn take(&mut self) -> Option<*mut Cache> {
        if !self.idle.is_null() {
            let cache = self.idle;
            // SAFETY: an idle cache has no thread, and the lock on `Caches` is held. fork may have copied it in the
            // middle of a call, so its counts begin again.
            unsafe {
                assert_internal!((*cache).thread == 0, "an idle cache has no thread");
                assert_internal!((*cache).is_empty(), "an idle cache holds no blocks");
                assert_internal!((*cache).next_idle != cache, "the list of idle caches ends");
                self.idle = (*cache).next_idle;
                (*cache).open();
            }
            return Some(cache);
        }
        let cache: *mut Cache = self.region.grow(size_of::<Cache>())?.as_ptr().cast();
        assert_internal!(cache.is_aligned(), "caches share no line of the processor's cache");
        assert_internal!(self.range().contains(&(cache as usize)), "caches lie in their region");
        let before = self.count() - 1;
        // SAFETY: fresh zeroed memory of a cache's size, which no other thread knows.
        unsafe {
            (*cache).open();
            (*cache).home = (before % HOMES) as u8;
            (*cache).next = self.all;
        }
        self.all = cache;
        Some(cache)
    }

    /// Makes a cache idle.
    ///
    /// # Safety
    /// [`Caches::take`] returned it, and no thread uses it any more.
    pub unsafe fn put_back(&mut self, cache: *mut Cache) {
        assert_internal!(self.range().contains(&(cache as usize)), "caches lie in their region");
        assert_expensive!(!self.is_idle(cache), "a cache is idle once");
        // SAFETY: caches are never unmapped, and no thread uses this one (this function's contract).
        unsafe {
            (*cache).thread = 0;
            (*cache).next_idle = self.idle;
        }
        self.idle = cache;
    }

    /// The newest of all caches: their links lead to the others.
    pub fn newest(&self) -> *mut Cache {
        self.all
    }
}

#[cfg(test)]
mod tests;
