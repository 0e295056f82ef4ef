//! The writing side: a manager or layer maps the page, claims a slot per process and counts in it.
//!
//! It runs inside `malloc`, so it allocates nothing, takes no lock and preserves `errno`.

use core::ffi::{CStr, c_void};
use core::ptr;
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU8, AtomicU32, Ordering};

use heaptoll_assertions::assert_internal;

use crate::layout::{Header, IN_USE, Slot, WriterKind};
use crate::mapping::Mapping;

const VARIABLE: &CStr = c"HEAPTOLL_STATS";

/// Per-process state that a child of fork must not inherit: it lies on a page that the kernel wipes in the child, which
/// therefore claims a slot of its own at its first count. No fork handler is needed, whose registration may allocate.
#[repr(C)]
struct Wiped {
    slot: AtomicPtr<Slot>,
    pid: AtomicI32,
}

/// A writer of one slot per process. Each manager or layer has one static of it.
pub struct Writer {
    wiped: AtomicPtr<Wiped>,
    header: AtomicPtr<Header>,
    /// Slots of the page at `header`, stored before it: a copy, since the page's own figure may change.
    slots: AtomicU32,
    /// The slot for a process without a page: a store to it costs less than a test before every count.
    detached: Slot,
    fallback: Wiped,
    kind: WriterKind,
    name: &'static str,
}

impl Writer {
    /// A writer that reports under `name`, of which at most 31 bytes are kept.
    pub const fn new(kind: WriterKind, name: &'static str) -> Writer {
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

    /// The slot of this process; one that is never read when there is no page or no slot left.
    #[inline(always)]
    pub fn slot(&self) -> &Slot {
        let wiped = self.wiped.load(Ordering::Acquire);
        if !wiped.is_null() {
            // SAFETY: `wiped_cell` stores in `self.wiped` only a mapping that is never unmapped, or `self.fallback`.
            let slot = unsafe { (*wiped).slot.load(Ordering::Acquire) };
            if !slot.is_null() {
                // SAFETY: `claim` stores `self.detached` or a slot in the page's mapping, which stays.
                return unsafe { &*slot };
            }
        }
        self.claim()
    }

    /// Whether the calling process is the one for which the current slot was claimed. False in a child of `vfork`,
    /// which shares its parent's memory. Claims a slot if there is none.
    pub fn owned_by_caller(&self) -> bool {
        let _ = self.slot();
        let wiped = self.wiped.load(Ordering::Acquire);
        if wiped.is_null() {
            return true;
        }
        // SAFETY: `wiped_cell` stores in `self.wiped` only a mapping that is never unmapped, or `self.fallback`; getpid
        // takes no pointers and cannot fail.
        unsafe { (*wiped).pid.load(Ordering::Relaxed) == libc::getpid() }
    }

    /// Whether counts go to a page that the tool reads.
    pub fn attached(&self) -> bool {
        !ptr::eq(self.slot(), &self.detached)
    }

    #[cold]
    #[inline(never)]
    fn claim(&self) -> &Slot {
        // SAFETY: `__errno_location` returns the address of the calling thread's errno.
        let errno = unsafe { *libc::__errno_location() };
        let wiped = self.wiped_cell();
        // A lost race leaves a claimed slot in state 0, which readers skip.
        let fresh = ptr::from_ref(self.take().unwrap_or(&self.detached)).cast_mut();
        // SAFETY: `wiped_cell` returns a mapping that is never unmapped, or `self.fallback`.
        let cell = unsafe { &*wiped };
        let slot =
            match cell.slot.compare_exchange(ptr::null_mut(), fresh, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {
                    // SAFETY: getpid takes no pointers and cannot fail; `fresh` is `self.detached` or a slot that
                    // `take` claimed in the page's mapping, which stays.
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
        // SAFETY: `__errno_location` returns the address of the calling thread's errno; `slot` was stored by this
        // function, here or on another thread, as `self.detached` or a slot in the page's mapping, which stays.
        unsafe {
            *libc::__errno_location() = errno;
            &*slot
        }
    }

    /// The cell that the kernel wipes on fork, made at the first call.
    fn wiped_cell(&self) -> *mut Wiped {
        let known = self.wiped.load(Ordering::Acquire);
        if !known.is_null() {
            return known;
        }
        // SAFETY: with a null address mmap maps memory that nothing uses; its failure is checked below.
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
            // SAFETY: the range is the mapping just made. If the kernel does not support the advice, a child counts in
            // its parent's slot, which keeps the sum right.
            unsafe { libc::madvise(made, 4096, libc::MADV_WIPEONFORK) };
            made.cast::<Wiped>()
        };
        match self.wiped.compare_exchange(ptr::null_mut(), made, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => made,
            Err(other) => {
                if !ptr::eq(made, &self.fallback) {
                    // SAFETY: mmap returned this mapping above, and the exchange has not published it.
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
            // SAFETY: `slots` is stored before `header` and only once, from the mapping that is then published or from
            // one with as many slots; that mapping is never unmapped.
            return Some(unsafe { Mapping::from_parts(known, self.slots.load(Ordering::Relaxed)) });
        }
        let made = Mapping::open(heaptoll_process::environment::variable(VARIABLE)?)?;
        let (header, slots) = made.parts();
        let agreed = match self.slots.compare_exchange(0, slots, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => slots,
            Err(other) => other,
        };
        if agreed != slots {
            // Another thread found another number: the page is being changed, and this thread does without.
            // SAFETY: `made` was mapped above, and no pointer to it has been published.
            unsafe { made.close() };
            return None;
        }
        assert_internal!(
            self.slots.load(Ordering::Relaxed) == slots,
            "a mapping is published with its slots"
        );
        match self.header.compare_exchange(ptr::null_mut(), header, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Some(made),
            // The other mapping is equivalent and has as many slots; ours stays mapped, once.
            // SAFETY: `other` is a mapping that another thread has published with `slots` slots, and is never unmapped.
            Err(other) => Some(unsafe { Mapping::from_parts(other, slots) }),
        }
    }

    /// Claims the next slot and fills in everything but `state`.
    fn take(&self) -> Option<&'static Slot> {
        let slot = self.page()?.claim()?;
        slot.kind.store(self.kind as u32, Ordering::Relaxed);
        // SAFETY: getpid and getppid take no pointers and cannot fail.
        let (pid, parent) = unsafe { (libc::getpid(), libc::getppid()) };
        slot.pid.store(pid, Ordering::Relaxed);
        slot.parent_pid.store(parent, Ordering::Relaxed);
        slot.claimed_ns.store(monotonic_ns(), Ordering::Relaxed);
        put(&slot.writer, self.name.as_bytes());
        let mut path = [0u8; 4096];
        // SAFETY: readlink reads a C literal and writes at most `path.len()` bytes to `path`.
        let read =
            unsafe { libc::readlink(c"/proc/self/exe".as_ptr(), path.as_mut_ptr().cast(), path.len()) };
        let read = usize::try_from(read).unwrap_or(0);
        let kept = read.min(slot.exe.len() - 1);
        assert_internal!(kept < slot.exe.len(), "a path leaves its final NUL");
        put(&slot.exe, &path[read - kept..read]);
        Some(slot)
    }
}

/// Writes as much of a text as fits before the final NUL, which is there already.
fn put(destination: &[AtomicU8], text: &[u8]) {
    for (byte, value) in destination[..destination.len() - 1].iter().zip(text) {
        byte.store(*value, Ordering::Relaxed);
    }
}

/// `CLOCK_MONOTONIC`, ns.
fn monotonic_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: clock_gettime writes to `time`, a local variable; this clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}
