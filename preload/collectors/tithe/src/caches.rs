//! The caches of all threads: given out to threads that come, taken back from those that go, found by the collector.

use core::ptr;
use core::sync::atomic::Ordering;

use heaptoll_floor::{PAGE, Region};

use crate::cache::Cache;
use crate::heap::Heap;

/// All caches there ever were. They lie apart from the heap and are used again, never given back.
#[derive(Debug)]
pub struct Caches {
    region: Region,
    all: *mut Cache,
    idle: *mut Cache,
}

// SAFETY: the pointers lead into the region, which is its own.
unsafe impl Send for Caches {}

impl Caches {
    pub const fn new() -> Caches {
        Caches { region: Region::new(), all: ptr::null_mut(), idle: ptr::null_mut() }
    }

    /// Where they lie.
    pub fn range(&self) -> core::ops::Range<usize> {
        self.region.start()..self.region.end()
    }

    /// How much of that is mapped, in whole pages.
    pub fn mapped_bytes(&self) -> usize {
        self.range().len().next_multiple_of(PAGE)
    }

    /// Shows every cache, idle ones too: these are empty.
    pub fn each(&self, mut visit: impl FnMut(*mut Cache)) {
        let mut cache = self.all;
        while !cache.is_null() {
            visit(cache);
            // SAFETY: caches are never given back, and their links change under this lock only.
            cache = unsafe { (*cache).next };
        }
    }

    fn take(&mut self) -> Option<*mut Cache> {
        if !self.idle.is_null() {
            let cache = self.idle;
            // SAFETY: an idle cache is nobody's.
            self.idle = unsafe { (*cache).next_idle };
            return Some(cache);
        }
        let cache: *mut Cache = self.region.grow(size_of::<Cache>())?.as_ptr().cast();
        // SAFETY: fresh zeroed memory, which is a cache without room.
        unsafe {
            (*cache).open();
            (*cache).next = self.all;
        }
        self.all = cache;
        Some(cache)
    }
}

impl Heap {
    /// A cache for the thread that the kernel calls `thread`. `None` when there is no memory.
    pub fn open_cache(&self, thread: i32) -> Option<*mut Cache> {
        let mut caches = self.caches.lock();
        let before = caches.mapped_bytes();
        let cache = caches.take()?;
        let grown = caches.mapped_bytes() - before;
        self.auxiliary_bytes.fetch_add(grown, Ordering::Relaxed);
        drop(caches);
        // SAFETY: it is nobody's yet.
        unsafe {
            (*cache).heap = self;
            (*cache).thread = thread;
        }
        if grown > 0 {
            self.report_size(&self.units.lock());
        }
        Some(cache)
    }

    /// Takes a cache back whose thread ends: its blocks go to their spans.
    ///
    /// # Safety
    /// The cache is this heap's and nobody uses it any more.
    pub unsafe fn close_cache(&self, cache: *mut Cache) {
        {
            // SAFETY: the caller's word.
            self.flush_all(unsafe { &mut *cache });
        }
        let mut caches = self.caches.lock();
        // SAFETY: the caller's word.
        unsafe {
            (*cache).thread = 0;
            (*cache).pending_count = 0;
            (*cache).next_idle = caches.idle;
        }
        caches.idle = cache;
    }

    /// In a forked child: takes back the caches of the threads that stayed behind.
    ///
    /// # Safety
    /// The caller is the only thread.
    pub unsafe fn close_other_caches(&self, own: *mut Cache) {
        // It is held where a handler forked that interrupted this very thread in there, which will go on with it.
        let Some(caches) = self.caches.try_lock() else { return };
        let mut cache = caches.all;
        drop(caches);
        while !cache.is_null() {
            // SAFETY: caches are never given back; whose thread stayed behind is nobody's.
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
