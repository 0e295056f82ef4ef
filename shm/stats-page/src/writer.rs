//! The writing side: a manager or layer finds the page, claims a slot per process and counts in it.
//!
//! It runs inside `malloc`, so it allocates nothing, takes no lock and keeps `errno`.

use core::ffi::{CStr, c_void};
use core::ptr;
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU8, AtomicU32, Ordering};

use crate::layout::{Header, IN_USE, Kind, Slot};
use crate::mapping::Mapping;

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
    /// Slots of the page at `header`, stored before it: a copy, for what stands in the page may change.
    slots: AtomicU32,
    /// Counted in where there is no page: a store to it costs less than a test before every count.
    detached: Slot,
    fallback: Wiped,
    kind: Kind,
    name: &'static str,
}

impl Writer {
    /// A writer that appears under `name`, of which at most 31 bytes are kept.
    pub const fn new(kind: Kind, name: &'static str) -> Writer {
        Writer {
            wiped: AtomicPtr::new(ptr::null_mut()),
            header: AtomicPtr::new(ptr::null_mut()),
            slots: AtomicU32::new(0),
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
        // A lost race leaves a claimed slot behind in state 0, which readers skip.
        let fresh = ptr::from_ref(self.take().unwrap_or(&self.detached)).cast_mut();
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

    /// The page's mapping; `None` when there is none.
    fn page(&self) -> Option<Mapping> {
        let known = self.header.load(Ordering::Acquire);
        if !known.is_null() {
            // SAFETY: `slots` is stored before `header` and only once, of the mapping that is then published or of one
            // with as many slots; that mapping is never unmapped.
            return Some(unsafe { Mapping::from_parts(known, self.slots.load(Ordering::Relaxed)) });
        }
        // SAFETY: getenv takes a C string and gives one or null, which is used at once.
        let path = unsafe { libc::getenv(VARIABLE.as_ptr()) };
        if path.is_null() {
            return None;
        }
        // SAFETY: as above.
        let made = Mapping::open(unsafe { CStr::from_ptr(path) })?;
        let (header, slots) = made.parts();
        let agreed = match self.slots.compare_exchange(0, slots, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => slots,
            Err(other) => other,
        };
        if agreed != slots {
            // Another thread found another number: the page is being changed, and this one does without.
            // SAFETY: our own mapping, which nobody else has seen.
            unsafe { made.close() };
            return None;
        }
        match self.header.compare_exchange(ptr::null_mut(), header, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Some(made),
            // The other mapping is as good, and has as many slots; ours stays mapped, once.
            // SAFETY: as at the top.
            Err(other) => Some(unsafe { Mapping::from_parts(other, slots) }),
        }
    }

    /// Claims the next slot and fills in everything but `state`.
    fn take(&self) -> Option<&'static Slot> {
        let slot = self.page()?.claim()?;
        slot.kind.store(self.kind as u32, Ordering::Relaxed);
        // SAFETY: no conditions.
        let (pid, parent) = unsafe { (libc::getpid(), libc::getppid()) };
        slot.pid.store(pid, Ordering::Relaxed);
        slot.parent_pid.store(parent, Ordering::Relaxed);
        slot.claimed_ns.store(monotonic_ns(), Ordering::Relaxed);
        put(&slot.writer, self.name.as_bytes());
        let mut path = [0u8; 4096];
        // SAFETY: a C string, and as many writable bytes.
        let read =
            unsafe { libc::readlink(c"/proc/self/exe".as_ptr(), path.as_mut_ptr().cast(), path.len()) };
        let read = usize::try_from(read).unwrap_or(0);
        let kept = read.min(slot.exe.len() - 1);
        put(&slot.exe, &path[read - kept..read]);
        Some(slot)
    }
}

/// Writes as much of a text as there is room for with a NUL behind it, which is there already.
fn put(place: &[AtomicU8], text: &[u8]) {
    for (byte, value) in place[..place.len() - 1].iter().zip(text) {
        byte.store(*value, Ordering::Relaxed);
    }
}

/// `CLOCK_MONOTONIC`, ns.
fn monotonic_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for the result; this clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}
