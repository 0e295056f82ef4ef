//! The writing side: a manager or layer finds the page, claims a slot per process and counts in it.
//!
//! It runs inside `malloc`, so it allocates nothing, takes no lock and keeps `errno`.

use core::ffi::{CStr, c_void};
use core::ptr;
use core::sync::atomic::{AtomicI32, AtomicPtr, Ordering};

use crate::layout::{HEADER_BYTES, Header, IN_USE, Kind, MAGIC, SLOT_BYTES, Slot, VERSION};

const VARIABLE: &CStr = c"HEAPTOLL_STATS";

/// What a process forgets when it forks: it lies on a page that the kernel wipes in the child, which therefore claims
/// a slot of its own at its first count. No fork handler is needed, whose registration may allocate.
#[repr(C)]
struct Wiped {
    slot: AtomicPtr<Slot>,
    pid: AtomicI32,
}

/// A writer of one slot per process. One static of it belongs into each manager or layer.
pub struct Writer {
    wiped: AtomicPtr<Wiped>,
    header: AtomicPtr<Header>,
    /// Counted in where there is no page: a store to it costs less than a test before every count.
    detached: Slot,
    fallback: Wiped,
    kind: Kind,
    name: &'static str,
}

// SAFETY: all mutable state is atomic; the byte arrays of `detached` are never written.
unsafe impl Sync for Writer {}

impl Writer {
    /// A writer that appears under `name`, of which at most 31 bytes are kept.
    pub const fn new(kind: Kind, name: &'static str) -> Writer {
        Writer {
            wiped: AtomicPtr::new(ptr::null_mut()),
            header: AtomicPtr::new(ptr::null_mut()),
            detached: Slot::detached(),
            fallback: Wiped { slot: AtomicPtr::new(ptr::null_mut()), pid: AtomicI32::new(0) },
            kind,
            name,
        }
    }

    /// The slot of this process; one that nobody reads when there is no page or no slot left.
    #[inline(always)]
    pub fn slot(&self) -> &Slot {
        let wiped = self.wiped.load(Ordering::Acquire);
        if !wiped.is_null() {
            // SAFETY: a non-null `wiped` is a mapping that is never unmapped, or `self.fallback`.
            let slot = unsafe { (*wiped).slot.load(Ordering::Acquire) };
            if !slot.is_null() {
                // SAFETY: a non-null slot is `self.detached` or lies in the page's mapping, which stays.
                return unsafe { &*slot };
            }
        }
        self.claim()
    }

    /// Whether the caller is the process that the current slot was claimed for. False in a child of `vfork`, which
    /// shares its parent's memory. Claims a slot if there is none.
    pub fn owned_by_caller(&self) -> bool {
        let _ = self.slot();
        let wiped = self.wiped.load(Ordering::Acquire);
        if wiped.is_null() {
            return true;
        }
        // SAFETY: see `slot`; getpid has no conditions.
        unsafe { (*wiped).pid.load(Ordering::Relaxed) == libc::getpid() }
    }

    /// Whether counts go to a page that somebody reads.
    pub fn attached(&self) -> bool {
        !ptr::eq(self.slot(), &self.detached)
    }

    #[cold]
    #[inline(never)]
    fn claim(&self) -> &Slot {
        // SAFETY: errno's address is valid for the calling thread.
        let errno = unsafe { *libc::__errno_location() };
        let wiped = self.wiped_cell();
        let header = self.page();
        // A lost race leaves a claimed slot behind in state 0, which readers skip.
        let fresh = if header.is_null() { None } else { self.take(header) };
        let fresh = fresh.unwrap_or(ptr::from_ref(&self.detached).cast_mut());
        // SAFETY: `wiped` is a mapping that is never unmapped, or `self.fallback`.
        let cell = unsafe { &*wiped };
        let slot =
            match cell.slot.compare_exchange(ptr::null_mut(), fresh, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {
                    // SAFETY: getpid has no conditions; `fresh` is valid as `slot` explains.
                    unsafe {
                        cell.pid.store(libc::getpid(), Ordering::Relaxed);
                        if !ptr::eq(fresh, &self.detached) {
                            (*fresh).state.store(IN_USE, Ordering::Release);
                        }
                    }
                    fresh
                }
                Err(other) => other,
            };
        // SAFETY: as above; `slot` is valid as `slot` explains.
        unsafe {
            *libc::__errno_location() = errno;
            &*slot
        }
    }

    /// The cell that a fork wipes, made at the first call.
    fn wiped_cell(&self) -> *mut Wiped {
        let known = self.wiped.load(Ordering::Acquire);
        if !known.is_null() {
            return known;
        }
        // SAFETY: a fresh anonymous mapping; its failure is tested.
        let made = unsafe {
            libc::mmap(
                ptr::null_mut(),
                4096,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        let made = if made == libc::MAP_FAILED {
            ptr::from_ref(&self.fallback).cast_mut()
        } else {
            // SAFETY: the range is the mapping just made. Where the kernel lacks it, a child counts on its parent's
            // slot, which is still right in sum.
            unsafe { libc::madvise(made, 4096, libc::MADV_WIPEONFORK) };
            made.cast::<Wiped>()
        };
        match self.wiped.compare_exchange(ptr::null_mut(), made, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => made,
            Err(other) => {
                if !ptr::eq(made, &self.fallback) {
                    // SAFETY: our own mapping, which nobody else has seen.
                    unsafe { libc::munmap(made.cast::<c_void>(), 4096) };
                }
                other
            }
        }
    }

    /// The page's mapping; null when there is none.
    fn page(&self) -> *mut Header {
        let known = self.header.load(Ordering::Acquire);
        if !known.is_null() {
            return known;
        }
        let made = map_page();
        if made.is_null() {
            return made;
        }
        match self.header.compare_exchange(ptr::null_mut(), made, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => made,
            // The other mapping is as good; ours stays mapped, once, rather than be measured again for unmapping.
            Err(other) => other,
        }
    }

    /// Claims the next slot and fills in everything but `state`.
    fn take(&self, header: *mut Header) -> Option<*mut Slot> {
        // SAFETY: `header` comes from `map_page`, which checked that the file holds all its slots; the slot's number
        // is ours alone, so its byte arrays have no other writer and, before `state` is stored, no reader.
        unsafe {
            let number = (*header).claimed.fetch_add(1, Ordering::AcqRel);
            if number >= (*header).slots.load(Ordering::Relaxed) {
                return None;
            }
            let slot = header.cast::<u8>().add(HEADER_BYTES + number as usize * SLOT_BYTES).cast::<Slot>();
            (*slot).kind.store(self.kind as u32, Ordering::Relaxed);
            (*slot).pid.store(libc::getpid(), Ordering::Relaxed);
            (*slot).parent_pid.store(libc::getppid(), Ordering::Relaxed);
            (*slot).claimed_ns.store(monotonic_ns(), Ordering::Relaxed);
            let name = self.name.as_bytes();
            let writer = &mut (*slot).writer;
            let length = name.len().min(writer.len() - 1);
            ptr::copy_nonoverlapping(name.as_ptr(), writer.as_mut_ptr(), length);
            let mut path = [0u8; 4096];
            let read = libc::readlink(c"/proc/self/exe".as_ptr(), path.as_mut_ptr().cast(), path.len());
            let read = usize::try_from(read).unwrap_or(0);
            let exe = &mut (*slot).exe;
            let kept = read.min(exe.len() - 1);
            ptr::copy_nonoverlapping(path.as_ptr().add(read - kept), exe.as_mut_ptr(), kept);
            Some(slot)
        }
    }
}

/// `CLOCK_MONOTONIC`, ns.
fn monotonic_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for the result; this clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

/// Opens and maps the page that the environment names; null when there is none or it is not one.
fn map_page() -> *mut Header {
    // SAFETY: the path from getenv is a C string; `status` is a valid place for fstat's result; the header is read
    // only after its length was checked, and the mapping is given back when it is not a page.
    unsafe {
        let path = libc::getenv(VARIABLE.as_ptr());
        if path.is_null() {
            return ptr::null_mut();
        }
        let file = libc::open(path, libc::O_RDWR | libc::O_CLOEXEC);
        if file < 0 {
            return ptr::null_mut();
        }
        let mut status: libc::stat = core::mem::zeroed();
        let length = if libc::fstat(file, &mut status) == 0 { status.st_size as usize } else { 0 };
        let map = if length >= HEADER_BYTES {
            libc::mmap(ptr::null_mut(), length, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, file, 0)
        } else {
            libc::MAP_FAILED
        };
        libc::close(file);
        if map == libc::MAP_FAILED {
            return ptr::null_mut();
        }
        let header = map.cast::<Header>();
        let good = (*header).magic.load(Ordering::Relaxed) == MAGIC
            && (*header).version.load(Ordering::Relaxed) == VERSION
            && (*header).header_bytes.load(Ordering::Relaxed) as usize == HEADER_BYTES
            && (*header).slot_bytes.load(Ordering::Relaxed) as usize == SLOT_BYTES
            && (length - HEADER_BYTES) / SLOT_BYTES >= (*header).slots.load(Ordering::Relaxed) as usize;
        if good {
            return header;
        }
        libc::munmap(map, length);
        ptr::null_mut()
    }
}
