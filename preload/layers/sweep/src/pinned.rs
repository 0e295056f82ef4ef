//! Blocks that are never collected, and read as roots: those that were allocated from within the manager.
//!
//! The manager may keep their addresses in memory that is not read for roots. They are few: a dynamic thread-local
//! area, what a library allocates at its first call.

use heaptoll_roots::Buffer;
use heaptoll_runtime::Lock;

use core::sync::atomic::{AtomicUsize, Ordering};

static PINNED: Lock<Buffer<usize>> = Lock::new(Buffer::new());
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// Between these all of them ever were.
static LOWEST: AtomicUsize = AtomicUsize::new(usize::MAX);
static HIGHEST: AtomicUsize = AtomicUsize::new(0);

/// Whether there are any.
#[inline(always)]
pub fn any() -> bool {
    COUNT.load(Ordering::Relaxed) != 0
}

/// Whether a block may be one of them, without waiting for the lock.
#[inline(always)]
pub fn may_be(block: usize) -> bool {
    any() && (LOWEST.load(Ordering::Relaxed)..=HIGHEST.load(Ordering::Relaxed)).contains(&block)
}

/// Adds one. The thread is inside, as for the others below: none may be stopped with the lock held. False: no memory to
/// record it.
pub fn add(block: usize) -> bool {
    let mut pinned = PINNED.lock();
    LOWEST.fetch_min(block, Ordering::Relaxed);
    HIGHEST.fetch_max(block, Ordering::Relaxed);
    let added = pinned.push(block).is_ok();
    COUNT.store(pinned.as_slice().len(), Ordering::Relaxed);
    added
}

/// Takes one out, if it is one.
pub fn remove(block: usize) -> bool {
    if !may_be(block) {
        return false;
    }
    let mut pinned = PINNED.lock();
    let Some(at) = pinned.as_slice().iter().position(|&other| other == block) else { return false };
    pinned.remove(at..at + 1);
    COUNT.store(pinned.as_slice().len(), Ordering::Relaxed);
    true
}

/// The list itself, as words to be read. Called by a collector while all threads are stopped.
pub fn words() -> core::ops::Range<usize> {
    let pinned = PINNED.lock();
    let words = pinned.as_slice().as_ptr_range();
    words.start as usize..words.end as usize
}

/// The addresses of their list.
pub fn memory() -> core::ops::Range<usize> {
    PINNED.lock().range()
}

pub fn before_fork() {
    PINNED.before_fork();
}

pub fn after_fork() {
    PINNED.after_fork();
}

pub fn after_fork_in_child() {
    PINNED.after_fork_in_child();
}
