//! What a process keeps, on a page that the kernel wipes in a child of fork.
//!
//! So a child notices at its first event that it needs an entry of its own, however it was made. (Fork handlers are not
//! run by `_Fork` and `clone`, and registering one may allocate.)

use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use heaptoll_events::layout::{CollectionRecord, RequestRecord};

/// Chunks of threads that have ended, kept for others.
const SPARE: usize = 128;

/// A process's. All zero: the process has had no event.
#[repr(C)]
pub struct Process {
    /// Its entry's number, and 1.
    pub entry: AtomicU32,
    /// There was none left: 1. It is not asked for again.
    pub without: AtomicU32,
    /// Held while the spares are looked at: 1.
    lock: AtomicU32,
    spares: AtomicU32,
    spare: [Spare; SPARE],
    /// Of each collector.
    pub collecting: [Collecting; heaptoll_controls::MOST],
}

/// The rest of a chunk.
#[repr(C)]
struct Spare {
    next: AtomicPtr<RequestRecord>,
    end: AtomicPtr<RequestRecord>,
}

/// What a collector's listener keeps. It is called under the collector's lock.
#[repr(C)]
pub struct Collecting {
    /// When its collection began, in ticks; 0: there is none.
    pub started: AtomicU64,
    pub reason: AtomicU32,
    pub next: AtomicPtr<CollectionRecord>,
    pub end: AtomicPtr<CollectionRecord>,
}

/// The page; before there is one, [`NOBODY`].
static PAGE: AtomicPtr<Process> = AtomicPtr::new(ptr::addr_of!(NOBODY).cast_mut());

/// Stays as it is.
static NOBODY: Process = Process {
    entry: AtomicU32::new(0),
    without: AtomicU32::new(0),
    lock: AtomicU32::new(1),
    spares: AtomicU32::new(0),
    spare: [const { Spare { next: AtomicPtr::new(ptr::null_mut()), end: AtomicPtr::new(ptr::null_mut()) } };
        SPARE],
    collecting: [const {
        Collecting {
            started: AtomicU64::new(0),
            reason: AtomicU32::new(0),
            next: AtomicPtr::new(ptr::null_mut()),
            end: AtomicPtr::new(ptr::null_mut()),
        }
    }; heaptoll_controls::MOST],
};

const BYTES: usize = 4096;
const _: () = assert!(size_of::<Process>() <= BYTES);

/// This process's.
#[inline(always)]
pub fn current() -> &'static Process {
    // SAFETY: the page stays mapped, or it is a static; all of it is atomic.
    unsafe { &*PAGE.load(Ordering::Acquire) }
}

/// Makes the page, once. Whether it succeeded.
pub fn prepare() -> bool {
    // SAFETY: a new mapping; it is given back when it cannot be made to be wiped, before anybody else has seen it.
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
        // Collectors leave out what is named so. Where the kernel has no such names, they read a page more.
        libc::prctl(libc::PR_SET_VMA, libc::PR_SET_VMA_ANON_NAME, page, BYTES, c"heaptoll events".as_ptr());
        PAGE.store(page.cast::<Process>(), Ordering::Release);
    }
    true
}

impl Process {
    /// Keeps the rest of a chunk whose thread ends. Where that is not possible at once, the rest stays empty.
    pub fn keep(&self, next: *mut RequestRecord, end: *mut RequestRecord) {
        self.locked(|spares| {
            if let Some(spare) = self.spare.get(spares as usize) {
                spare.next.store(next, Ordering::Relaxed);
                spare.end.store(end, Ordering::Relaxed);
                self.spares.store(spares + 1, Ordering::Relaxed);
            }
        });
    }

    /// The rest of a chunk that was kept.
    pub fn spare(&self) -> Option<(*mut RequestRecord, *mut RequestRecord)> {
        self.locked(|spares| {
            let left = spares.checked_sub(1)?;
            let spare = &self.spare[left as usize % SPARE];
            self.spares.store(left, Ordering::Relaxed);
            Some((spare.next.load(Ordering::Relaxed), spare.end.load(Ordering::Relaxed)))
        })?
    }

    /// Nobody waits here: the thread that holds the lock may have been stopped, or may be this one, before a signal.
    fn locked<T>(&self, with: impl FnOnce(u32) -> T) -> Option<T> {
        self.lock.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).ok()?;
        let result = with(self.spares.load(Ordering::Relaxed));
        self.lock.store(0, Ordering::Release);
        Some(result)
    }
}

/// A place in the page as a listener's context: the number of the collector.
pub fn context(collector: usize) -> *mut c_void {
    ptr::without_provenance_mut(collector)
}
