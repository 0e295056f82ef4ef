//! The state of a process, on a page that the kernel wipes in a child of fork.
//!
//! So a child finds at its first event that it needs an entry of its own, however it was made. (`_Fork` and `clone` do
//! not run fork handlers, and registering one may allocate.)

use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use heaptoll_event_log::layout::{CollectionRecord, RequestRecord};

/// Maximum number of chunks of ended threads that are kept for other threads.
const SPARE: usize = 128;

/// The state of a process. All zero: the process has had no event.
#[repr(C)]
pub struct Process {
    /// Its entry's number plus one; 0: none.
    pub entry: AtomicU32,
    /// 1: there was no entry left, and none is requested again.
    pub without: AtomicU32,
    /// 1 while a thread uses the spares.
    lock: AtomicU32,
    spares: AtomicU32,
    spare: [Spare; SPARE],
    /// For each collector.
    pub collecting: [CollectorState; heaptoll_next::controls::MOST],
}

/// The rest of a chunk.
#[repr(C)]
struct Spare {
    next: AtomicPtr<RequestRecord>,
    end: AtomicPtr<RequestRecord>,
}

/// The state of a collector's listener, which is called under the collector's lock.
#[repr(C)]
pub struct CollectorState {
    /// When the current collection began, in ticks; 0: there is none.
    pub started: AtomicU64,
    pub reason: AtomicU32,
    pub next: AtomicPtr<CollectionRecord>,
    pub end: AtomicPtr<CollectionRecord>,
}

/// The page; [`UNPREPARED`] until it is made.
static PAGE: AtomicPtr<Process> = AtomicPtr::new(ptr::addr_of!(UNPREPARED).cast_mut());

/// Never changes: its lock is held.
static UNPREPARED: Process = Process {
    entry: AtomicU32::new(0),
    without: AtomicU32::new(0),
    lock: AtomicU32::new(1),
    spares: AtomicU32::new(0),
    spare: [const { Spare { next: AtomicPtr::new(ptr::null_mut()), end: AtomicPtr::new(ptr::null_mut()) } };
        SPARE],
    collecting: [const {
        CollectorState {
            started: AtomicU64::new(0),
            reason: AtomicU32::new(0),
            next: AtomicPtr::new(ptr::null_mut()),
            end: AtomicPtr::new(ptr::null_mut()),
        }
    }; heaptoll_next::controls::MOST],
};

const BYTES: usize = 4096;
const _: () = assert!(size_of::<Process>() <= BYTES);

/// The state of this process.
#[inline(always)]
pub fn current() -> &'static Process {
    // SAFETY: `PAGE` points to a static or to the page that `prepare` made, which stays mapped; all of it is atomic.
    unsafe { &*PAGE.load(Ordering::Acquire) }
}

/// Makes the page, once; returns whether it succeeded.
pub fn prepare() -> bool {
    // SAFETY: with a null address mmap maps memory that nothing uses; it is unmapped, before a pointer to it is
    // published, if madvise fails. prctl reads a C literal.
    unsafe {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let how = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let page = libc::mmap(ptr::null_mut(), BYTES, access, how, -1, 0);
        if page == libc::MAP_FAILED {
            return false;
        }
        if libc::madvise(page, BYTES, libc::MADV_WIPEONFORK) != 0 {
            libc::munmap(page, BYTES);
            return false;
        }
        // Collectors skip mappings of this name. If the kernel does not support names, they scan one page more.
        libc::prctl(libc::PR_SET_VMA, libc::PR_SET_VMA_ANON_NAME, page, BYTES, c"heaptoll events".as_ptr());
        PAGE.store(page.cast::<Process>(), Ordering::Release);
    }
    true
}

impl Process {
    /// Keeps the rest of a chunk whose thread ends. If the lock is held, the rest stays unused.
    pub fn keep(&self, next: *mut RequestRecord, end: *mut RequestRecord) {
        self.locked(|spares| {
            if let Some(spare) = self.spare.get(spares as usize) {
                spare.next.store(next, Ordering::Relaxed);
                spare.end.store(end, Ordering::Relaxed);
                self.spares.store(spares + 1, Ordering::Relaxed);
            }
        });
    }

    /// Takes the rest of a chunk that was kept.
    pub fn spare(&self) -> Option<(*mut RequestRecord, *mut RequestRecord)> {
        self.locked(|spares| {
            let left = spares.checked_sub(1)?;
            let spare = &self.spare[left as usize % SPARE];
            self.spares.store(left, Ordering::Relaxed);
            Some((spare.next.load(Ordering::Relaxed), spare.end.load(Ordering::Relaxed)))
        })?
    }

    /// Does not wait for the lock: its holder may be stopped, or may be this thread, interrupted by a signal.
    fn locked<T>(&self, with: impl FnOnce(u32) -> T) -> Option<T> {
        self.lock.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).ok()?;
        let result = with(self.spares.load(Ordering::Relaxed));
        self.lock.store(0, Ordering::Release);
        Some(result)
    }
}

/// The context of a listener: the number of its collector.
pub fn context(collector: usize) -> *mut c_void {
    ptr::without_provenance_mut(collector)
}
