//! The file, open and mapped by the tool, for as long as anybody here uses it.

use std::ffi::c_void;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::ptr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::layout::{Control, Geometry, Header, Process};
use crate::places::{control, process_entry, ring_words};

#[derive(Debug)]
pub(crate) struct Map {
    pub path: PathBuf,
    /// Holds the lock.
    #[expect(dead_code, reason = "open for as long as the map lives: it holds the lock")]
    pub file: File,
    pub geometry: Geometry,
    pub base: *mut u8,
    /// No ring from here on has been adopted.
    pub highest: AtomicUsize,
    /// Entries of processes that have been told of and have not ended.
    pub live: Mutex<Vec<usize>>,
}

// SAFETY: everything in the mapping is atomic, and the mapping stays until this is dropped.
unsafe impl Send for Map {}
// SAFETY: as above.
unsafe impl Sync for Map {}

impl Map {
    pub fn header(&self) -> &Header {
        // SAFETY: the mapping begins with a header and stays as long as `self`.
        unsafe { &*self.base.cast::<Header>() }
    }

    pub fn live(&self) -> MutexGuard<'_, Vec<usize>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn process(&self, index: usize) -> &Process {
        assert!(index < self.geometry.processes);
        // SAFETY: an entry of the table, in the mapping.
        unsafe { &*process_entry(self.base.cast(), index) }
    }

    pub fn control(&self, ring: usize) -> &Control {
        assert!(ring < self.geometry.rings);
        // SAFETY: a ring of the directory, in the mapping.
        unsafe { &*control(self.base.cast(), self.geometry, ring) }
    }

    pub fn words(&self, ring: usize) -> *const AtomicU64 {
        assert!(ring < self.geometry.rings);
        ring_words(self.base.cast(), self.geometry, ring)
    }

    /// Makes a ring nobody's, and gives its memory back.
    pub fn recycle(&self, ring: usize) {
        let bytes = self.geometry.ring_bytes();
        let words = self.words(ring);
        // SAFETY: the ring lies in the mapping, at a multiple of a page, and nobody uses it. Where the file system
        // cannot punch holes the words are zeroed one by one: the next owner counts on zeroes.
        unsafe {
            if !bytes.is_multiple_of(crate::layout::PAGE)
                || libc::madvise(words.cast_mut().cast::<c_void>(), bytes, libc::MADV_REMOVE) != 0
            {
                for n in 0..self.geometry.ring_words() {
                    if (*words.add(n)).load(Ordering::Relaxed) != 0 {
                        (*words.add(n)).store(0, Ordering::Relaxed);
                    }
                }
            }
        }
        let control = self.control(ring);
        control.consumer.0.taken.store(0, Ordering::Relaxed);
        control.consumer.0.waiting.store(0, Ordering::Relaxed);
        control.owner.0.busy.store(0, Ordering::Relaxed);
        control.owner.0.next.store(0, Ordering::Relaxed);
        control.owner.0.who.store(0, Ordering::Release);
        self.header().registry.0.ring_hint.fetch_min(ring as u32, Ordering::AcqRel);
        self.freed();
    }

    /// Makes all rings of a process that is dead nobody's, those too that it had not told of.
    pub fn recycle_all(&self, process: usize) {
        let registry = &self.header().registry.0;
        // Claims go upwards from the hint; the first rings are shared ones, which are claimed from the bottom.
        let hint = registry.ring_hint.load(Ordering::Acquire) as usize;
        let end = self
            .highest
            .load(Ordering::Relaxed)
            .max(hint)
            .max(self.geometry.shared_rings(self.geometry.rings));
        for ring in 0..(end + 64).min(self.geometry.rings) {
            if self.control(ring).owner.0.who.load(Ordering::Acquire) >> 32 == process as u64 + 1 {
                self.recycle(ring);
            }
        }
    }

    /// Tells those who wait that something has become free.
    pub fn freed(&self) {
        let registry = &self.header().registry.0;
        registry.freed.fetch_add(1, Ordering::SeqCst);
        if registry.waiting.load(Ordering::SeqCst) != 0 {
            crate::sys::futex_wake(&registry.freed);
        }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: our own mapping; those who point into it hold this alive.
        unsafe { libc::munmap(self.base.cast::<c_void>(), self.geometry.bytes(self.geometry.rings)) };
    }
}

/// Maps all of a file.
pub(crate) fn map(file: &File, bytes: usize) -> std::io::Result<*mut u8> {
    // SAFETY: a fresh mapping wherever the kernel likes; a child that the tool forks does not need it.
    unsafe {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_NORESERVE;
        let map = libc::mmap(ptr::null_mut(), bytes, protection, flags, file.as_raw_fd(), 0);
        if map == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error());
        }
        Ok(map.cast())
    }
}
