//! The pool: where parallel markers leave work for each other, and notice that there is none left.
//!
//! Each marker has a stack of its own and comes here only when another one waits, or when its own stack is empty. A
//! marker that finds the pool empty waits; when all wait, everything is marked. That suffices, as a marker waits with
//! an empty stack, so that none is left who could add work.

use core::sync::atomic::Ordering;

use heaptoll_assertions::assert_internal;

use crate::sync::{AtomicUsize, Exclusive, WakeUps};

/// At least as many as ever wait.
const ALL: u32 = i32::MAX as u32;

/// Work that any marker may take, newest first.
pub struct Pool<T> {
    /// Markers that wait. Changed under the lock, read by all: a marker with work reads here whether to share.
    idle: AtomicUsize,
    /// Counts the events for which markers wait.
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

// SAFETY: only the holder of the lock reaches the state, and entries are copied.
unsafe impl<T: Copy + Send> Sync for Pool<T> {}
// SAFETY: any thread may use the memory of the entries.
unsafe impl<T: Copy + Send> Send for Pool<T> {}

impl<T: Copy> Pool<T> {
    /// A pool over memory for `capacity` entries, used by one marker.
    ///
    /// # Safety
    /// The memory is writable and used for nothing else as long as the pool is used.
    pub unsafe fn new(entries: *mut T, capacity: usize) -> Pool<T> {
        Pool {
            idle: AtomicUsize::new(0),
            wake_ups: WakeUps::new(),
            state: Exclusive::new(State { entries, capacity, length: 0, markers: 1, over: false }),
        }
    }

    /// Counts one marker more, before it starts.
    pub fn join(&self) {
        self.state.locked(|state| {
            assert_internal!(!state.over, "no marker joins when everything is marked");
            state.markers += 1;
        });
    }

    /// Counts one marker less: it will not start. Called by a marker, so that one is left at least.
    pub fn leave(&self) {
        self.state.locked(|state| {
            assert_internal!(state.markers > 1, "the marker that counts another off is one itself");
            state.markers -= 1;
        });
    }

    /// Whether a marker waits for work.
    #[inline(always)]
    pub fn is_wanted(&self) -> bool {
        self.idle.load(Ordering::Relaxed) != 0
    }

    /// Leaves work to others; returns how many of the entries found space, the first ones.
    pub fn give(&self, entries: &[T]) -> usize {
        let given = self.state.locked(|state| {
            assert_internal!(
                !state.over || entries.is_empty(),
                "no marker has work left when everything is marked"
            );
            assert_internal!(
                self.idle.load(Ordering::Relaxed) < state.markers,
                "a marker that gives work does not wait"
            );
            let given = entries.len().min(state.capacity - state.length);
            // SAFETY: `given` is at most the free capacity after `length`.
            unsafe { state.entries.add(state.length).copy_from_nonoverlapping(entries.as_ptr(), given) };
            state.length += given;
            assert_internal!(state.length <= state.capacity, "a pool holds no more than its capacity");
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

    /// Takes work for an empty stack: as much as `entries` holds or there is, but at most half for each waiting marker.
    /// Waits for it; 0 when everything is marked.
    pub fn take(&self, entries: &mut [T]) -> usize {
        let mut waits = false;
        loop {
            let found = self.state.locked(|state| {
                if state.length > 0 {
                    assert_internal!(!state.over, "the pool is empty when everything is marked");
                    assert_internal!(
                        self.idle.load(Ordering::Relaxed) >= usize::from(waits),
                        "a marker that waits is counted"
                    );
                    let others = self.idle.load(Ordering::Relaxed) - usize::from(waits);
                    let taken = state.length.div_ceil(others + 1).min(entries.len());
                    assert_internal!(
                        (1..=state.length).contains(&taken),
                        "a marker takes some of what is there"
                    );
                    state.length -= taken;
                    // SAFETY: `give` has written `length` entries, of which these are the last.
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
                assert_internal!(
                    self.idle.load(Ordering::Relaxed) <= state.markers,
                    "no more markers wait than there are"
                );
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
