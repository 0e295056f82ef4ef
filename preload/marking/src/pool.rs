//! The pool: where threads that mark side by side leave work for each other, and notice that there is none left.
//!
//! Each marker has a stack of its own and comes here only when another one waits, or when its own stack is empty. A
//! marker that finds the pool empty waits; when all wait, everything is marked. That suffices, as a marker waits with
//! an empty stack, so that nobody is left who could give.

use core::sync::atomic::Ordering;

use crate::sync::{AtomicUsize, Exclusive, WakeUps};

/// As many as ever wait.
const ALL: u32 = i32::MAX as u32;

/// Work that anybody may take, newest first.
pub struct Pool<T> {
    /// Markers that wait. Changed by who holds the lock, read by all: who has work looks here whether to share.
    idle: AtomicUsize,
    /// Counts what those who wait may wait for.
    wake_ups: WakeUps,
    state: Exclusive<State<T>>,
}

struct State<T> {
    entries: *mut T,
    capacity: usize,
    length: usize,
    markers: usize,
    /// All waited at once.
    over: bool,
}

// SAFETY: the state is reached by who holds the lock only, and entries are copied.
unsafe impl<T: Copy + Send> Sync for Pool<T> {}
// SAFETY: the entries are memory that anybody may use.
unsafe impl<T: Copy + Send> Send for Pool<T> {}

impl<T: Copy> Pool<T> {
    /// A pool over memory for `capacity` entries, used by one marker.
    ///
    /// # Safety
    /// The memory is writable and nobody else's as long as the pool is used.
    pub unsafe fn new(entries: *mut T, capacity: usize) -> Pool<T> {
        Pool {
            idle: AtomicUsize::new(0),
            wake_ups: WakeUps::new(),
            state: Exclusive::new(State { entries, capacity, length: 0, markers: 1, over: false }),
        }
    }

    /// Counts one marker more, before it comes.
    pub fn join(&self) {
        self.state.locked(|state| state.markers += 1);
    }

    /// Counts one marker less: it will not come. Called by a marker, so that one is left at least.
    pub fn leave(&self) {
        self.state.locked(|state| state.markers -= 1);
    }

    /// Whether a marker waits for work.
    #[inline(always)]
    pub fn is_wanted(&self) -> bool {
        self.idle.load(Ordering::Relaxed) != 0
    }

    /// Leaves work to others; says how many of the entries there was room for, the first ones.
    pub fn give(&self, entries: &[T]) -> usize {
        let given = self.state.locked(|state| {
            let given = entries.len().min(state.capacity - state.length);
            // SAFETY: there is room for that many.
            unsafe { state.entries.add(state.length).copy_from_nonoverlapping(entries.as_ptr(), given) };
            state.length += given;
            if given > 0 {
                self.wake_ups.increment();
            }
            given
        });
        if given > 0 && self.is_wanted() {
            self.wake_ups.wake(1);
        }
        given
    }

    /// Takes work for an empty stack: as much as `entries` holds or there is, but at most half for each who waits.
    /// Waits for it; 0 when everything is marked.
    pub fn take(&self, entries: &mut [T]) -> usize {
        let mut waits = false;
        loop {
            let found = self.state.locked(|state| {
                if state.length > 0 {
                    let others = self.idle.load(Ordering::Relaxed) - usize::from(waits);
                    let taken = state.length.div_ceil(others + 1).min(entries.len());
                    state.length -= taken;
                    // SAFETY: that many entries were given.
                    unsafe {
                        entries.as_mut_ptr().copy_from_nonoverlapping(state.entries.add(state.length), taken);
                    }
                    if waits {
                        self.idle.fetch_sub(1, Ordering::Relaxed);
                    }
                    return Ok(taken);
                }
                if !waits {
                    waits = true;
                    self.idle.fetch_add(1, Ordering::Relaxed);
                }
                if state.over || self.idle.load(Ordering::Relaxed) == state.markers {
                    state.over = true;
                    self.wake_ups.increment();
                    return Ok(0);
                }
                Err(self.wake_ups.count())
            });
            match found {
                Ok(0) => {
                    self.wake_ups.wake(ALL);
                    return 0;
                }
                Ok(taken) => return taken,
                Err(known) => self.wake_ups.wait(known),
            }
        }
    }
}
