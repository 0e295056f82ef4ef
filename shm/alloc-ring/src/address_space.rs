//! The part of the file that a process with a limited address space keeps mapped.

use crate::atomic::Ordering;
use crate::attachment::Attachment;
use crate::layout::{Geometry, Header, LIMITED_ENTRIES};
use crate::lock::lock;
use crate::pointers::ring_words;
use crate::sys::{self, Errno};

/// One ring can be shared by all threads.
pub(crate) const FEWEST_RINGS: usize = 1;

/// The next smaller number of rings to try.
pub(crate) fn fewer(rings: usize) -> usize {
    (rings / 2).max(FEWEST_RINGS)
}

impl Attachment {
    /// Unmaps most of the process table, if that was not done before.
    ///
    /// # Safety
    /// `header` is the whole mapping, and this process has no entry after the first [`LIMITED_ENTRIES`].
    pub(crate) unsafe fn leave_entries(&self, header: *mut Header, geometry: Geometry) {
        let further = geometry.further_entries();
        if self.entries.load(Ordering::Relaxed) > LIMITED_ENTRIES && !further.is_empty() {
            self.entries.store(LIMITED_ENTRIES, Ordering::Relaxed);
            // SAFETY: the mapping contains the range, and by this function's contract and by `entries` nothing in it is
            // accessed any more.
            unsafe { sys::unmap(header.cast::<u8>().add(further.start), further.len()) };
        }
    }

    /// Unmaps what a limit of the address space leaves no room for: rings that this process has not used, and entries
    /// of processes. The process is registered.
    #[cold]
    pub(crate) fn leave_address_space(&self) {
        let _errno = Errno::keep();
        let Some(limit) = sys::address_space_limit() else { return };
        // SAFETY: the caller has found this process registered, so `map` has set `local` and `header`.
        let (local, header) = unsafe { (&*self.local(), self.mapped_header()) };
        // Rings are claimed under it.
        if !lock(&local.lock, sys::gettid() as u32, local.pid.load(Ordering::Relaxed)) {
            return;
        }
        let geometry = self.geometry();
        let mapped = self.mapped.load(Ordering::Relaxed);
        let mut rings = mapped;
        while rings > FEWEST_RINGS && !geometry.fits(rings, limit) {
            rings = fewer(rings);
        }
        let header = core::ptr::from_ref(header).cast_mut();
        if (local.index.load(Ordering::Relaxed) as usize) < LIMITED_ENTRIES {
            // SAFETY: `map` made the mapping, and this process's entry is among the first.
            unsafe { self.leave_entries(header, geometry) };
        }
        let is_used = |ring: usize| self.used[ring / 8].load(Ordering::Relaxed) & 1 << (ring % 8) != 0;
        let mut from = rings;
        for ring in (rings..mapped).filter(|&ring| is_used(ring)).chain([mapped]) {
            if ring > from {
                let start = ring_words(header, geometry, from).cast();
                // SAFETY: these rings lie in the mapping that `map` made. This process has used none of them, and will
                // not: they are not below `mapped`, which is lowered under the lock.
                unsafe { sys::unmap(start, (ring - from) * geometry.ring_bytes()) };
            }
            from = ring + 1;
        }
        self.mapped.store(rings, Ordering::Relaxed);
        local.lock.store(0, Ordering::Release);
    }
}
