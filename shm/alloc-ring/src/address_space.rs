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
    /// Unmaps most of the process table, if that was not done before and this process, or the one from which it was
    /// forked, has no entry there.
    ///
    /// # Safety
    /// `header` is the whole mapping, made by `map`.
    pub(crate) unsafe fn leave_entries(&self, header: *mut Header, geometry: Geometry) {
        let further = geometry.further_entries();
        let gate = self.gate.load(Ordering::Relaxed).addr().wrapping_sub(header.addr());
        let is_left = self.entries.load(Ordering::Relaxed) <= LIMITED_ENTRIES;
        if !is_left && !further.is_empty() && !further.contains(&gate) {
            self.entries.store(LIMITED_ENTRIES, Ordering::Relaxed);
            // SAFETY: the mapping contains the range. Nothing in it is accessed any more: the gate lies in the one entry
            // that this process may use, and it claims others below `entries`.
            unsafe { sys::unmap(header.cast::<u8>().add(further.start), further.len()) };
        }
    }

    /// Unmaps what a limit of the address space leaves no room for: rings that this process has not used, and entries
    /// of processes. It need not be registered: a child of fork inherits the mapping.
    #[cold]
    pub(crate) fn leave_address_space(&self) {
        let _errno = Errno::keep();
        let Some(limit) = sys::address_space_limit() else { return };
        let header = self.header.load(Ordering::Acquire);
        if header.is_null() {
            return;
        }
        // SAFETY: `map` set `local` before `header`, and its mapping stays.
        let local = unsafe { &*self.local() };
        let pid = local.pid.load(Ordering::Relaxed);
        // The memory of a child of vfork is its parent's, whose limit this is not. Rings are claimed under the lock.
        if pid != 0 && pid != sys::getpid() as u32 || !lock(&local.lock, sys::gettid() as u32, pid) {
            return;
        }
        let geometry = self.geometry();
        let mapped = self.mapped.load(Ordering::Relaxed);
        let mut rings = mapped;
        while rings > FEWEST_RINGS && !geometry.fits(rings, limit) {
            rings = fewer(rings);
        }
        // SAFETY: `map` made the mapping.
        unsafe { self.leave_entries(header, geometry) };
        let is_used = |ring: usize| self.used[ring / 8].load(Ordering::Relaxed) & 1 << (ring % 8) != 0;
        let mut from = rings;
        for ring in (rings..mapped).filter(|&ring| is_used(ring)).chain([mapped]) {
            if ring > from {
                let start = ring_words(header, geometry, from).cast();
                // SAFETY: these rings lie in the mapping that `map` made. This process and its ancestors have used none of
                // them, and it will not: they are not below `mapped`, which is lowered under the lock.
                unsafe { sys::unmap(start, (ring - from) * geometry.ring_bytes()) };
            }
            from = ring + 1;
        }
        self.mapped.store(rings, Ordering::Relaxed);
        local.lock.store(0, Ordering::Release);
    }
}
