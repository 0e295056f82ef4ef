//! The system, in place of `shm/alloc-ring/src/sys.rs`. No time passes that ends a long sleep, so a lost wake-up is a
//! deadlock, which loom finds; any other delay may be over at once.

use core::ffi::{CStr, c_int};
use core::ops::Range;
use std::panic::Location;
use std::time::Duration;

use crate::atomic::AtomicU32;
use crate::layout::PAGE;
use crate::mutant::{self, Change};
use crate::world;

/// A point in time. If the world is hasty, every delay that is checked is over, except those of half a second and more,
/// after which something counts as lost.
#[derive(Debug, Clone, Copy)]
pub struct Instant;

impl Instant {
    pub fn now() -> Instant {
        Instant
    }

    pub fn elapsed(&self) -> Duration {
        Duration::from_millis(if world::is_hasty() { 100 } else { 0 })
    }
}

/// There is none here.
pub struct Errno;

impl Errno {
    pub fn keep() -> Errno {
        Errno
    }
}

pub fn now_ns() -> u64 {
    1_000
}

/// A sleep of less than this is a poll, of more is meant to be ended by a wake-up.
const POLL_NS: u64 = 2_000_000;

#[track_caller]
pub fn futex_wait(word: &AtomicU32, expected: u32, ns: u64) {
    if ns < POLL_NS {
        return loom::thread::yield_now();
    }
    world::step();
    world::futex_wait(word.address(), || word.of_futex() == expected);
}

#[track_caller]
pub fn futex_wake(word: &AtomicU32) {
    if mutant::change_at(Location::caller()) == Change::Skip {
        return;
    }
    world::step();
    world::futex_wake(word.address());
}

/// Other threads run before the next poll, or not.
pub fn spin() {}

pub fn yield_now() {
    loom::thread::yield_now();
}

/// The file needs no name here.
pub fn variable(_name: &str) -> Option<&'static CStr> {
    Some(c"rings")
}

pub fn getpid() -> i32 {
    world::numbers().0
}

pub fn getppid() -> i32 {
    0
}

pub fn gettid() -> i32 {
    world::numbers().1
}

pub fn exists(pid: i32) -> bool {
    !world::has_ended(pid)
}

pub fn thread_exists(_pid: i32, tid: i32) -> bool {
    !world::has_ended(tid)
}

/// One namespace.
pub fn namespace() -> u64 {
    1
}

/// Processes have no path here, so that none is written byte by byte.
pub fn exe(_into: &mut [u8]) -> usize {
    0
}

pub fn unlink(_path: &CStr) {}

/// The file of the world.
pub struct Descriptor;

impl Descriptor {
    pub fn open(_path: &CStr) -> Result<Descriptor, c_int> {
        Ok(Descriptor)
    }

    pub fn length(&self) -> usize {
        world::file().1
    }

    /// Both sides map it at one address.
    pub fn map(&self, bytes: usize) -> *mut u8 {
        assert!(bytes <= self.length());
        world::file().0
    }

    /// The tool runs.
    pub fn locked(&self) -> Option<bool> {
        Some(true)
    }
}

pub fn whole_pages(bytes: Range<usize>) -> Range<usize> {
    bytes.start / PAGE * PAGE..bytes.end.next_multiple_of(PAGE)
}

/// The world's file stays mapped.
///
/// # Safety
/// None.
pub unsafe fn unmap(_map: *mut u8, _bytes: usize) {}

pub fn wiped_on_fork(bytes: usize) -> *mut u8 {
    world::private_memory(bytes)
}

pub fn address_space_limit() -> Option<usize> {
    None
}
