//! The caches of all threads: opened for threads that start, closed for those that end, enumerated by the collector.

use core::ptr;
use core::sync::atomic::Ordering;

use heaptoll_assertions::{assert_expensive, assert_internal};
use heaptoll_runtime::{PAGE, Region};

use crate::cache::Cache;
use crate::heap::Heap;

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
        self.region.start()..self.region.end()
    }

    /// How much of that is mapped, in whole pages.
    pub fn mapped_bytes(&self) -> usize {
        self.range().len().next_multiple_of(PAGE)
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

    fn take(&mut self) -> Option<*mut Cache> {
        if !self.idle.is_null() {
            let cache = self.idle;
            // SAFETY: an idle cache has no thread, and the lock on `Caches` is held. fork may have copied it in the
            // middle of a call, so its counts begin again.
            unsafe {
                assert_internal!((*cache).thread == 0, "an idle cache has no thread");
                assert_internal!((*cache).pending_count == 0, "an idle cache has reserved no blocks");
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
        // SAFETY: fresh zeroed memory of a cache's size, which no other thread knows.
        unsafe {
            (*cache).open();
            (*cache).next = self.all;
        }
        self.all = cache;
        Some(cache)
    }
}

impl Heap {
    /// Opens a cache for the thread with the kernel's number `thread`. `None` when there is no memory.
    pub fn open_cache(&self, thread: i32) -> Option<*mut Cache> {
        let mut caches = self.caches.lock();
        let before = caches.mapped_bytes();
        let cache = caches.take()?;
        let grown = caches.mapped_bytes() - before;
        self.auxiliary_bytes.fetch_add(grown, Ordering::Relaxed);
        drop(caches);
        // SAFETY: `take` has returned it to this caller only; no thread uses it yet.
        unsafe {
            assert_internal!(thread != 0, "a cache is opened for a thread");
            assert_internal!(
                (*cache).heap.is_null() || ptr::eq((*cache).heap, self),
                "a cache stays with its heap"
            );
            (*cache).heap = self;
            (*cache).thread = thread;
        }
        if grown > 0 {
            self.report_size(&self.units.lock());
        }
        Some(cache)
    }

    /// Closes the cache of a thread that ends: its blocks return to their spans.
    ///
    /// # Safety
    /// The cache is this heap's, and no thread uses it any more.
    pub unsafe fn close_cache(&self, cache: *mut Cache) {
        {
            // SAFETY: no thread uses the cache any more (this function's contract).
            let cache = unsafe { &mut *cache };
            assert_internal!(cache.thread != 0, "a cache is closed once");
            assert_internal!(ptr::eq(cache.heap, self), "a cache is closed by its heap");
            self.flush_all(cache);
            assert_internal!(cache.is_empty(), "a closed cache holds no blocks");
        }
        let mut caches = self.caches.lock();
        assert_internal!(caches.range().contains(&(cache as usize)), "caches lie in their region");
        assert_expensive!(!caches.is_idle(cache), "a cache is idle once");
        // SAFETY: no thread uses the cache any more (this function's contract).
        unsafe {
            (*cache).thread = 0;
            (*cache).pending_count = 0;
            (*cache).next_idle = caches.idle;
        }
        caches.idle = cache;
    }

    /// In a forked child: closes the caches of the threads that fork did not copy.
    ///
    /// # Safety
    /// The caller is the only thread.
    pub unsafe fn close_other_caches(&self, own: *mut Cache) {
        // The lock is held if a signal handler forked that interrupted this thread inside it; the thread will continue
        // there.
        let Some(caches) = self.caches.try_lock() else { return };
        let mut cache = caches.all;
        drop(caches);
        while !cache.is_null() {
            // SAFETY: caches are never unmapped, and the threads of the others do not exist in the child.
            unsafe {
                if cache != own && (*cache).thread != 0 {
                    self.close_cache(cache);
                }
                cache = (*cache).next;
            }
        }
    }
}

#[cfg(test)]
mod tests;
