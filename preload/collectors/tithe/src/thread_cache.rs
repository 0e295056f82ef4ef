//! The cache of a thread, from its opening at the thread's first call to its closing at the thread's end.

use core::sync::atomic::Ordering;

use heaptoll_assertions::assert_internal;

use crate::cache::Cache;
use crate::heap::Heap;

impl Heap {
    /// Opens a cache for the thread with the kernel's number `thread`. `None` when there is no memory.
    pub fn open_cache(&self, thread: i32) -> Option<*mut Cache> {
        let mut caches = self.caches.lock();
        let before = caches.mapped_bytes();
        let cache = caches.take()?;
        let grown = caches.mapped_bytes() - before;
        self.cache_count.store(caches.count(), Ordering::Relaxed);
        self.auxiliary_bytes.fetch_add(grown, Ordering::Relaxed);
        drop(caches);
        assert_internal!(thread > 0, "a cache is opened for a thread");
        // SAFETY: `take` has returned it to this caller only; no thread uses it yet.
        unsafe { (*cache).thread = thread };
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
            assert_internal!(cache.has_thread(), "a cache is closed once");
            self.flush_all(cache);
            assert_internal!(cache.is_empty(), "a closed cache holds no blocks");
        }
        let mut caches = self.caches.lock();
        // SAFETY: no thread uses the cache any more (this function's contract), which `open_cache` took.
        unsafe {
            self.uncount_ahead(&mut (*cache).counted);
            self.waiting.fetch_add(core::mem::take(&mut (*cache).waiting), Ordering::Relaxed);
            caches.put_back(cache);
        }
    }

    /// In a forked child: closes the caches of the threads that fork did not copy.
    ///
    /// # Safety
    /// The caller is the only thread.
    pub unsafe fn close_other_caches(&self, own: *mut Cache) {
        // The lock is held if a signal handler forked that interrupted this thread inside it; the thread will continue
        // there.
        let Some(caches) = self.caches.try_lock() else { return };
        let mut cache = caches.newest();
        drop(caches);
        while !cache.is_null() {
            // SAFETY: caches are never unmapped, and the threads of the others do not exist in the child.
            unsafe {
                if cache != own && (*cache).has_thread() {
                    self.close_cache(cache);
                }
                cache = (*cache).next;
            }
        }
    }
}
