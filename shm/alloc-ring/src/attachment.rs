//! This process's connection to the shared file: the mapping, the process's private memory, and the geometry and budget
//! that the header stated when the file was mapped.

use core::cell::UnsafeCell;
use core::ffi::{CStr, c_char};
use core::ptr;
use core::sync::atomic::AtomicUsize;

use crate::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering};
use crate::layout::{FACTS_BYTES, Geometry, Header, MOST_RINGS};
use crate::state::{ProcessLocal, State};
use crate::thread_word::mark;

/// Writes the requested facts about this process; returns how many bytes it wrote. When it is called, the first byte
/// holds the request's options, the others are zero. Called on a thread of the program, outside of the manager; it must
/// not wait for other threads of the program.
pub type FactsHook = fn(&mut [u8; FACTS_BYTES]) -> usize;

/// [`Attachment::stage`].
pub(crate) mod stage {
    pub const NEW: u32 = 0;
    pub const ATTACHING: u32 = 1;
    pub const ATTACHED: u32 = 2;
    pub const DETACHED: u32 = 3;
}

/// One a process, in a static. Nothing is mapped yet when it is made.
pub(crate) struct Attachment {
    /// See [`stage`].
    pub stage: AtomicU32,
    /// The mapping. Never unmapped.
    pub header: AtomicPtr<Header>,
    /// Where each part lies, as the header stated when the file was mapped: the program may have overwritten the header
    /// since. Written while attaching.
    pub geometry: UnsafeCell<Geometry>,
    /// Blocks that all rings together may have, as the header stated then.
    pub budget: AtomicU32,
    /// The group of the process table that was found to have memory last.
    pub entry_group: AtomicU32,
    /// Rings in the mapping.
    pub mapped: AtomicUsize,
    /// Process entries that are mapped, the first ones.
    pub entries: AtomicUsize,
    /// The gate of this process; until it has registered, that of its parent. Null before the first registration.
    pub gate: AtomicPtr<AtomicU32>,
    /// The process's private memory.
    pub local: AtomicPtr<ProcessLocal>,
    /// Inode of the namespace of our process number; 0 unknown.
    pub namespace: AtomicU64,
    /// 1: it is the namespace of the tool's process number.
    pub same_namespace: AtomicU32,
    /// See [`FactsHook`].
    pub facts: AtomicPtr<()>,
    /// The path of the object that the layer forwards to, NUL-terminated; null before it is known.
    pub manager: AtomicPtr<c_char>,
    /// Rings whose states this process or its ancestors have used, a bit each. Not wiped by a fork.
    pub used: [AtomicU8; MOST_RINGS / 8],
    /// The file's path, NUL-terminated. Written while attaching.
    pub path: UnsafeCell<[u8; 256]>,
}

// SAFETY: everything but `path` and `geometry` is atomic; `Attachment::map` writes these on the one thread that
// attaches, before it stores `header`, and they are only read afterwards.
unsafe impl Sync for Attachment {}

impl Attachment {
    pub(crate) const fn new() -> Attachment {
        Attachment {
            stage: AtomicU32::new(stage::NEW),
            header: AtomicPtr::new(ptr::null_mut()),
            geometry: UnsafeCell::new(Geometry { processes: 0, rings: 0, ring_log2: 0, block_log2: 0 }),
            budget: AtomicU32::new(0),
            entry_group: AtomicU32::new(0),
            mapped: AtomicUsize::new(0),
            entries: AtomicUsize::new(0),
            gate: AtomicPtr::new(ptr::null_mut()),
            local: AtomicPtr::new(ptr::null_mut()),
            namespace: AtomicU64::new(0),
            manager: AtomicPtr::new(ptr::null_mut()),
            same_namespace: AtomicU32::new(0),
            facts: AtomicPtr::new(ptr::null_mut()),
            used: [const { AtomicU8::new(0) }; MOST_RINGS / 8],
            path: UnsafeCell::new([0; 256]),
        }
    }

    /// The path of the object that the layer forwards to, where that is known.
    pub(crate) fn manager(&self) -> Option<&'static CStr> {
        let path = self.manager.load(Ordering::Acquire);
        // SAFETY: null, or what `Rings::served_by` took from a static C string.
        (!path.is_null()).then(|| unsafe { CStr::from_ptr(path) })
    }

    /// The process's private memory.
    pub(crate) fn local(&self) -> *const ProcessLocal {
        self.local.load(Ordering::Acquire)
    }

    /// The gate of this process; until it has registered, that of the process from which it was forked.
    #[inline(always)]
    pub(crate) fn gate(&self) -> u32 {
        // SAFETY: only producers call this, and they exist only once this process or its parent has registered, which
        // sets `gate` to a word of the mapping, which stays.
        unsafe { (*self.gate.load(Ordering::Relaxed)).load(Ordering::Relaxed) }
    }

    /// The mapped header.
    ///
    /// # Safety
    /// This process is attached.
    pub(crate) unsafe fn mapped_header(&self) -> &Header {
        // SAFETY: the caller has checked that this process is attached, so `map` has set `header`; the mapping stays.
        unsafe { &*self.header.load(Ordering::Acquire) }
    }

    /// Where each part of the file lies.
    pub(crate) fn geometry(&self) -> Geometry {
        // SAFETY: `map`, on the one thread that attached, wrote it before it published the header; callers have the
        // header.
        unsafe { *self.geometry.get() }
    }

    /// Whether a word of a thread without a ring of its own was made in this process, not before a fork.
    pub(crate) fn current(&self, word: usize) -> bool {
        // SAFETY: only `register_locked` makes such a word, after `attach` has set `local`; that mapping stays.
        let local = unsafe { &*self.local() };
        !local.process.load(Ordering::Acquire).is_null()
            && local.image.load(Ordering::Relaxed) as u8 == mark::image(word)
    }

    /// The state through which a thread with this word writes.
    pub(crate) fn state_of(&self, word: usize) -> Option<*const State> {
        if word & mark::OWN != 0 {
            Some((word - mark::OWN) as *const State)
        } else if mark::is_shared(word) {
            // SAFETY: only `register_locked` makes such a word, after `attach` has set `local`; that mapping stays.
            Some(unsafe { &raw const (*self.local()).unassigned })
        } else {
            None
        }
    }

    /// From now on events of this process, and of children that it forks, are dropped.
    pub(crate) fn detach(&self) {
        self.stage.store(stage::DETACHED, Ordering::Release);
        let local = self.local();
        if !local.is_null() {
            // SAFETY: `local` is not null, and the private memory and the entries stay mapped.
            unsafe {
                let process = (*local).process.load(Ordering::Acquire);
                if !process.is_null() {
                    (*process).detached.store(1, Ordering::Release);
                }
            }
        }
    }
}
