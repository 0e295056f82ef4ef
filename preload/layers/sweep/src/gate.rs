//! The gate in front of the manager, a critical section: which threads are inside, and how a collection keeps others
//! out.
//!
//! A collection calls the manager's `free` while all other threads are stopped. One of them might be stopped in the
//! middle of the manager, with its locks held. So each thread records in a word of its own when it is inside, and a
//! collection that has stopped the threads reads these words: if any is inside, it closes the gate, lets all threads
//! run until those inside have left, and stops them again.
//!
//! The word is written and the gate is read by plain instructions. The processor may do the reading before the writing
//! is seen by others, but not across the signal that stops a thread: when the collector reads the word, it is there;
//! and the gate is closed while all are stopped, so that every thread that runs on sees it.
//!
//! A call from within the manager (of its own objects, or of the C library on its behalf) and one from a handler that
//! has interrupted it is *nested*: it goes through, whatever the gate's state.

use core::arch::asm;
use core::sync::atomic::{AtomicU32, Ordering, compiler_fence};

use heaptoll_roots::{StoppedWorld, is_readable};
use heaptoll_runtime::{futex, thread_word};

thread_word! {
    /// The thread's state.
    STATE: "heaptoll_sweep_thread"
}

/// Outside, and the hook at the thread's end is not set: what a new thread has.
const NEW: usize = 0;
/// The bit of threads that are inside.
const INSIDE: usize = 1;
const OUTSIDE: usize = 2;
/// Inside as seen by other threads, to the thread's end: the C library frees what it gave the thread, by ways of its
/// own. Until then the program's last destructors call as from outside.
const ENDING: usize = 5;
/// The thread forks, and holds the gate closed against all others.
const FORKING: usize = 8;
/// The bit of a thread that has entered from [`ENDING`] or [`FORKING`].
const DEEPER: usize = 16;

/// 1: closed.
static GATE: AtomicU32 = AtomicU32::new(0);
/// How often a thread left while it was closed. The collection sleeps on it.
static LEFT: AtomicU32 = AtomicU32::new(0);

/// How far from the thread pointer the word lies.
fn offset() -> usize {
    let offset: usize;
    // SAFETY: the linker turns the name into that distance.
    unsafe {
        asm!("mov {0}, qword ptr [rip + heaptoll_sweep_thread@GOTTPOFF]", out(reg) offset,
             options(pure, readonly, nostack, preserves_flags));
    }
    offset
}

/// How a call entered the manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// The thread was outside and is inside now, until [`leave`].
    Entered,
    /// The same, and the thread is new to the layer.
    First,
    /// The same, and the gate does not hold the thread: it is about to end, or forks.
    Passing,
    /// The thread was inside, and remains so.
    Nested,
}

/// Enters, which may have to wait for a collection to end.
#[inline(always)]
pub fn enter() -> Entry {
    if STATE::get() != OUTSIDE {
        return enter_otherwise();
    }
    STATE::set(INSIDE);
    compiler_fence(Ordering::SeqCst);
    if GATE.load(Ordering::Relaxed) != 0 {
        wait();
    }
    Entry::Entered
}

#[cold]
#[inline(never)]
fn enter_otherwise() -> Entry {
    match STATE::get() {
        state @ (ENDING | FORKING) => {
            STATE::set(state | DEEPER | INSIDE);
            compiler_fence(Ordering::SeqCst);
            return Entry::Passing;
        }
        state if state & INSIDE != 0 => return Entry::Nested,
        _ => {}
    }
    STATE::set(INSIDE);
    compiler_fence(Ordering::SeqCst);
    if GATE.load(Ordering::Relaxed) != 0 {
        wait();
    }
    Entry::First
}

/// Leaves.
#[inline(always)]
pub fn leave() {
    compiler_fence(Ordering::SeqCst);
    STATE::set(OUTSIDE);
    compiler_fence(Ordering::SeqCst);
    if GATE.load(Ordering::Relaxed) != 0 {
        wake_collector();
    }
}

/// Ends what [`enter`] has begun, whichever entry it returned.
#[inline(always)]
pub fn leave_from(entry: Entry) {
    match entry {
        Entry::Entered | Entry::First => leave(),
        Entry::Nested => {}
        Entry::Passing => {
            compiler_fence(Ordering::SeqCst);
            let ending = STATE::get() & ENDING == ENDING;
            STATE::set(if ending { ENDING } else { FORKING });
            compiler_fence(Ordering::SeqCst);
        }
    }
}

/// Whether the thread is outside.
pub fn is_outside() -> bool {
    matches!(STATE::get(), NEW | OUTSIDE)
}

/// Does something as a thread outside, which may collect; not for a thread that is inside, or forks.
pub fn outside<R>(work: impl FnOnce() -> R) -> Option<R> {
    let before = STATE::get();
    if before != ENDING {
        return is_outside().then(work);
    }
    // The manager's own work at the end of a thread goes inside: this call is the program's.
    STATE::set(OUTSIDE);
    let done = work();
    STATE::set(ENDING);
    Some(done)
}

/// From here on the thread counts as inside for others, except where it enters by a function of the layer's.
pub fn end() {
    STATE::set(ENDING);
}

/// Whether the thread is inside, within a call of the manager.
pub fn is_inside() -> bool {
    let state = STATE::get();
    state & INSIDE != 0 && state != ENDING
}

/// From here on the thread forks; returns the argument of [`end_fork`]. `None`: it is inside, and so in the child, too.
pub fn begin_fork() -> Option<usize> {
    let former = STATE::get();
    if former & INSIDE != 0 && former != ENDING {
        return None;
    }
    STATE::set(FORKING);
    compiler_fence(Ordering::SeqCst);
    Some(former)
}

/// The thread has forked, or is the child.
pub fn end_fork(former: Option<usize>) {
    if let Some(former) = former {
        STATE::set(former);
        compiler_fence(Ordering::SeqCst);
    }
}

/// Does something as a thread inside, without waiting; for the collector, and for what is no allocation.
pub fn inside<R>(work: impl FnOnce() -> R) -> R {
    let before = STATE::get();
    STATE::set(before | INSIDE);
    compiler_fence(Ordering::SeqCst);
    let done = work();
    compiler_fence(Ordering::SeqCst);
    STATE::set(before);
    compiler_fence(Ordering::SeqCst);
    if before & INSIDE == 0 && GATE.load(Ordering::Relaxed) != 0 {
        wake_collector();
    }
    done
}

/// Wakes the collector: a thread has left.
#[cold]
#[inline(never)]
fn wake_collector() {
    LEFT.fetch_add(1, Ordering::SeqCst);
    futex::wake_all(&LEFT);
}

/// Waits outside until the gate is open, and enters.
#[cold]
#[inline(never)]
fn wait() {
    loop {
        STATE::set(OUTSIDE);
        wake_collector();
        while GATE.load(Ordering::SeqCst) != 0 {
            futex::wait(&GATE, 1, None);
        }
        STATE::set(INSIDE);
        compiler_fence(Ordering::SeqCst);
        if GATE.load(Ordering::Relaxed) == 0 {
            return;
        }
    }
}

/// Whether a stopped thread is inside.
pub fn is_any_inside(stopped: &StoppedWorld<'_>) -> bool {
    let offset = offset();
    let mut found = false;
    stopped.thread_pointers(&mut |pointer| {
        let word = pointer.wrapping_add(offset);
        // A thread that the program made by itself may have anything for a thread pointer.
        if !found && is_readable(word) {
            // SAFETY: `is_readable` has shown that the word can be read, and all threads are stopped.
            found = unsafe { (word as *const usize).read_volatile() } & INSIDE != 0;
        }
    });
    found
}

/// Keeps other threads out. Called while all others are stopped, or by the only one that collects.
pub fn close() -> u32 {
    GATE.store(1, Ordering::SeqCst);
    LEFT.load(Ordering::SeqCst)
}

/// Waits for a thread to leave, as counted since [`close`], or for so many microseconds.
pub fn wait_for_leaving(seen: u32, patience_us: u64) {
    futex::wait(&LEFT, seen, Some(patience_us));
}

/// Lets all threads in.
pub fn open() {
    if GATE.swap(0, Ordering::SeqCst) != 0 {
        futex::wake_all(&GATE);
    }
}

/// In a child of fork, which has one thread.
pub fn after_fork_in_child() {
    GATE.store(0, Ordering::SeqCst);
}

const _: () = assert!((NEW | OUTSIDE | FORKING) & INSIDE == 0 && ENDING & INSIDE != 0);
const _: () = assert!((FORKING | DEEPER | INSIDE) & ENDING != ENDING);
