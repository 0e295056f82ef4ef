//! The interface of `include/tithe.h`: what a program calls that uses Tithe by name and not through malloc.
//!
//! Blocks are allocated and freed as by the malloc family; the rest is here: roots that the program adds, stacks it
//! registers, and the counters. [`tithe_api!`](crate::tithe_api) exports all of it as C functions, the same in the
//! shared object and in the static library.

use core::ffi::c_int;
use core::mem::offset_of;
use core::slice;
use core::sync::atomic::{AtomicUsize, Ordering};

use heaptoll_assertions::assert_internal;
use heaptoll_runtime::LARGEST;

use crate::class::{FREE, UNIT};
use crate::heap::{Heap, HeapGuards};
use crate::runs::blacklist_mark;
use crate::why::{Frame, Shares, Unavailable};

/// Number of registered stacks: as long as it is 0, a thread that ends need not search for its own.
static REGISTERED: AtomicUsize = AtomicUsize::new(0);

/// `struct tithe_stats`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Stats {
    pub size: u64,
    pub heap_bytes: u64,
    pub heap_high_bytes: u64,
    pub live_bytes: u64,
    pub allocated_bytes: u64,
    pub collections: u64,
    pub abandoned: u64,
    pub pause_total_ns: u64,
    pub pause_max_ns: u64,
    pub collected_bytes: u64,
    pub blacklisted_bytes: u64,
}

// The layout of include/tithe.h.
const _: () = {
    assert!(size_of::<Stats>() == 88 && offset_of!(Stats, size) == 0);
    assert!(offset_of!(Stats, heap_bytes) == 8 && offset_of!(Stats, heap_high_bytes) == 16);
    assert!(offset_of!(Stats, live_bytes) == 24 && offset_of!(Stats, allocated_bytes) == 32);
    assert!(offset_of!(Stats, collections) == 40 && offset_of!(Stats, abandoned) == 48);
    assert!(offset_of!(Stats, pause_total_ns) == 56 && offset_of!(Stats, pause_max_ns) == 64);
    assert!(offset_of!(Stats, collected_bytes) == 72 && offset_of!(Stats, blacklisted_bytes) == 80);
    assert!(size_of::<Stats>() as u64 <= STATS_MOST);
};

/// A structure of a later version is no longer than this, bytes: a larger value is an uninitialised size.
const STATS_MOST: u64 = 4096;

/// The calling thread, the same in a forked child.
fn this_thread() -> usize {
    // SAFETY: pthread_self takes no pointers and cannot fail.
    unsafe { libc::pthread_self() as usize }
}

/// Runs an action and restores errno after it.
fn keeping_errno<T>(action: impl FnOnce() -> T) -> T {
    // SAFETY: errno's address is valid for the calling thread.
    let errno = unsafe { *libc::__errno_location() };
    let done = action();
    // SAFETY: errno's address is valid for the calling thread.
    unsafe { *libc::__errno_location() = errno };
    done
}

impl Heap {
    /// `tithe_add_roots`.
    pub fn add_roots(&self, start: usize, end: usize) -> c_int {
        if start > end {
            return libc::EINVAL;
        }
        keeping_errno(|| match self.collector.lock().added.add(start, end, 0) {
            Ok(()) => 0,
            Err(_) => libc::ENOMEM,
        })
    }

    /// `tithe_remove_roots`.
    pub fn remove_roots(&self, start: usize, end: usize) -> c_int {
        keeping_errno(|| match self.collector.lock().added.remove(start, end) {
            Ok(()) => 0,
            Err(_) => libc::ENOENT,
        })
    }

    /// `tithe_register_thread`, of a thread that will call [`Heap::end_thread`] at its end.
    pub fn register_thread(&self, low: usize, high: usize) -> c_int {
        if low >= high {
            return libc::EINVAL;
        }
        keeping_errno(|| match self.collector.lock().added.add(low, high, this_thread()) {
            Ok(()) => {
                REGISTERED.fetch_add(1, Ordering::Relaxed);
                0
            }
            Err(_) => libc::ENOMEM,
        })
    }

    /// `tithe_unregister_thread`: all stacks that the calling thread has registered.
    pub fn unregister_thread(&self) -> c_int {
        keeping_errno(|| {
            let mut collector = self.collector.lock();
            let mut status = libc::ENOENT;
            while collector.added.remove_thread(this_thread()).is_ok() {
                assert_internal!(REGISTERED.load(Ordering::Relaxed) > 0, "every registered stack is counted");
                REGISTERED.fetch_sub(1, Ordering::Relaxed);
                status = 0;
            }
            status
        })
    }

    /// Unregisters the stacks of the calling thread, which ends.
    pub fn end_thread(&self) {
        if REGISTERED.load(Ordering::Relaxed) != 0 {
            self.unregister_thread();
        }
    }

    /// In a forked child: removes the stacks of the threads that fork did not copy.
    pub fn forget_other_threads(&self) {
        if REGISTERED.load(Ordering::Relaxed) == 0 {
            return;
        }
        let left = self.collector.lock().added.remove_other_threads(this_thread());
        REGISTERED.store(left, Ordering::Relaxed);
    }

    /// `tithe_stats`.
    ///
    /// # Safety
    /// `stats` is null or points to a structure that begins with its size and is that long.
    pub unsafe fn stats(&self, stats: *mut Stats) -> c_int {
        let known = size_of::<Stats>() as u64;
        // SAFETY: a pointer that is not null points to a structure that begins with its size (this function's
        // contract).
        let Some(size) = (!stats.is_null()).then(|| unsafe { (&raw const (*stats).size).read_unaligned() })
        else {
            return libc::EINVAL;
        };
        if !(known..=STATS_MOST).contains(&size) {
            return libc::EINVAL;
        }
        let filled = keeping_errno(|| self.counters(size));
        // SAFETY: the structure has `size` bytes (this function's contract), at least those of `Stats`. Fields of a
        // later version become zero.
        unsafe {
            stats.cast::<u8>().write_bytes(0, size as usize);
            stats.write_unaligned(filled);
        }
        0
    }

    /// `tithe_why`: 0 and EAGAIN when the answer is unavailable.
    ///
    /// # Safety
    /// `text` is null or points to `capacity` writable bytes.
    pub unsafe fn why_text(&self, address: usize, text: *mut u8, capacity: usize, frame: Frame) -> usize {
        let text = if text.is_null() || capacity == 0 {
            &mut []
        } else {
            // SAFETY: `text` points to `capacity` bytes (this function's contract), capped at the largest size of a
            // block.
            unsafe { slice::from_raw_parts_mut(text, capacity.min(LARGEST)) }
        };
        self.why(address, text, frame).unwrap_or_else(|Unavailable| {
            // SAFETY: errno's address is valid for the calling thread.
            unsafe { *libc::__errno_location() = libc::EAGAIN };
            0
        })
    }

    /// `tithe_held`.
    ///
    /// # Safety
    /// `shares` is null or points to such a structure.
    pub unsafe fn retained_bytes(&self, shares: *mut Shares, frame: Frame) -> c_int {
        if shares.is_null() {
            return libc::EINVAL;
        }
        match self.held(frame) {
            Ok(retained) => {
                // SAFETY: `shares` is not null, so it points to such a structure (this function's contract).
                unsafe { shares.write_unaligned(retained) };
                0
            }
            Err(Unavailable) => libc::EAGAIN,
        }
    }

    pub(crate) fn counters(&self, size: u64) -> Stats {
        let statistics = self.collector.lock().statistics;
        let HeapGuards { spans_by_class: _spans, units, caches } = self.lock_all();
        let mut ahead = 0;
        // SAFETY: caches are never unmapped; threads change this field under locks of spans alone, which are all held here.
        caches.each(|cache| ahead += unsafe { (*cache).counted } as u64);
        let heap = self.reservation.units() * UNIT;
        let blacklist_marks = [blacklist_mark(units.epoch), blacklist_mark(units.epoch.wrapping_sub(1))];
        let blacklist = (0..self.reservation.units()).filter(|&unit| {
            // SAFETY: the table has a row for every unit, and `unit` is below `units`.
            self.reservation.span_class(unit) == FREE
                && blacklist_marks.contains(&unsafe { self.reservation.blacklist().add(unit).read() })
        });
        assert_internal!(units.free_bytes() <= heap, "free units are units of the heap");
        assert_internal!(size >= size_of::<Stats>() as u64, "the caller's structure has all counters");
        Stats {
            size,
            heap_bytes: (heap - units.free_bytes()) as u64,
            heap_high_bytes: heap as u64,
            live_bytes: self.live_bytes() as u64,
            allocated_bytes: self.allocated_total.load(Ordering::Relaxed) - ahead,
            collections: statistics.collections,
            abandoned: statistics.abandoned,
            pause_total_ns: statistics.pause_total_ns,
            pause_max_ns: statistics.pause_max_ns,
            collected_bytes: statistics.collected_bytes,
            blacklisted_bytes: (blacklist.count() * UNIT) as u64,
        }
    }
}

/// Exports the functions of `include/tithe.h` over a static [`Process`](crate::Process).
#[macro_export]
macro_rules! tithe_api {
    ($process:ident) => {
        mod tithe_api {
            use core::ffi::{c_int, c_void};

            use $crate::api::{Stats, family};
            use $crate::why::{Frame, Shares};

            use super::$process;

            #[unsafe(no_mangle)]
            extern "C" fn tithe_malloc(bytes: usize) -> *mut c_void {
                family::malloc(&$process, bytes)
            }

            #[unsafe(no_mangle)]
            extern "C" fn tithe_malloc_atomic(bytes: usize) -> *mut c_void {
                $process.malloc_atomic(bytes)
            }

            #[unsafe(no_mangle)]
            extern "C" fn tithe_calloc(count: usize, bytes: usize) -> *mut c_void {
                family::calloc(&$process, count, bytes)
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn tithe_realloc(block: *mut c_void, bytes: usize) -> *mut c_void {
                // SAFETY: `block` is null or a live block of this heap, by the C caller's contract in tithe.h.
                unsafe { family::realloc(&$process, block, bytes) }
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn tithe_free(block: *mut c_void) {
                // SAFETY: `block` is null or a live block that the caller no longer uses, by the contract in tithe.h.
                unsafe { family::free(&$process, block) }
            }

            #[unsafe(no_mangle)]
            extern "C" fn tithe_usable_size(block: *const c_void) -> usize {
                $process.heap().usable_by_program(block.cast())
            }

            #[unsafe(no_mangle)]
            extern "C" fn tithe_collect() -> c_int {
                $process.collect_and_sweep()
            }

            #[unsafe(no_mangle)]
            extern "C" fn tithe_add_roots(start: *const c_void, end: *const c_void) -> c_int {
                $process.heap().add_roots(start as usize, end as usize)
            }

            #[unsafe(no_mangle)]
            extern "C" fn tithe_remove_roots(start: *const c_void, end: *const c_void) -> c_int {
                $process.heap().remove_roots(start as usize, end as usize)
            }

            #[unsafe(no_mangle)]
            extern "C" fn tithe_register_thread(low: *const c_void, high: *const c_void) -> c_int {
                $process.register_thread(low as usize, high as usize)
            }

            #[unsafe(no_mangle)]
            extern "C" fn tithe_unregister_thread() -> c_int {
                $process.heap().unregister_thread()
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn tithe_stats(stats: *mut Stats) -> c_int {
                // SAFETY: `stats` is null or points to a structure that begins with its size, by the contract in
                // tithe.h.
                unsafe { $process.heap().stats(stats) }
            }

            #[unsafe(no_mangle)]
            extern "C" fn tithe_is_live(address: *const c_void) -> c_int {
                $process.heap().is_live(address as usize)
            }

            /// Pushes the callee-saved registers onto the stack and passes their address on.
            #[unsafe(naked)]
            #[unsafe(no_mangle)]
            unsafe extern "C" fn tithe_why(address: *const c_void, text: *mut u8, capacity: usize) -> usize {
                core::arch::naked_asm!(
                    "push rbx",
                    "push rbp",
                    "push r12",
                    "push r13",
                    "push r14",
                    "push r15",
                    "mov rcx, rsp",
                    "sub rsp, 8",
                    "call {why}",
                    "add rsp, 56",
                    "ret",
                    why = sym why_from,
                )
            }

            unsafe extern "C" fn why_from(address: usize, text: *mut u8, capacity: usize, frame: Frame) -> usize {
                // SAFETY: `text` is null or points to `capacity` bytes, by the contract in tithe.h.
                unsafe { $process.heap().why_text(address, text, capacity, frame) }
            }

            /// As `tithe_why`.
            #[unsafe(naked)]
            #[unsafe(no_mangle)]
            unsafe extern "C" fn tithe_held(held: *mut Shares) -> c_int {
                core::arch::naked_asm!(
                    "push rbx",
                    "push rbp",
                    "push r12",
                    "push r13",
                    "push r14",
                    "push r15",
                    "mov rsi, rsp",
                    "sub rsp, 8",
                    "call {held}",
                    "add rsp, 56",
                    "ret",
                    held = sym held_from,
                )
            }

            unsafe extern "C" fn held_from(held: *mut Shares, frame: Frame) -> c_int {
                // SAFETY: `held` is null or points to such a structure, by the contract in tithe.h.
                unsafe { $process.heap().retained_bytes(held, frame) }
            }
        }
    };
}

// For the expansion of `tithe_api!`.
#[doc(hidden)]
pub use heaptoll_runtime::family;
