//! What a producer keeps in its process's own memory, which a child of fork finds wiped.

use core::cell::Cell;
use core::mem::size_of;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64};

use crate::layout::{Control, Process};
use crate::word::PREDICTED;

/// One ring's writer. All zero: wiped, or never claimed.
///
/// It belongs to one thread (or to who holds [`Life::shared_lock`]), and to the signal handlers that interrupt it.
#[repr(C, align(64))]
pub(crate) struct State {
    /// What the gate must be for the short way: the gate, or 0 when each event goes the general way, or
    /// [`gate::BUSY`](crate::layout::gate::BUSY) while words are written.
    pub fast: AtomicU32,
    /// The gate when it was last looked into.
    pub seen: Cell<u32>,
    /// Where the next word goes.
    pub at: Cell<*mut AtomicU64>,
    /// The end of the current block.
    pub limit: Cell<*mut AtomicU64>,
    /// The lap bit of the current lap, in its place.
    pub lap: Cell<u64>,
    /// The current block's number since the ring was claimed, modulo 2^32.
    pub block: Cell<u32>,
    /// The thread's index in its process; in a shared ring, of the last that wrote.
    pub thread: Cell<u32>,
    /// The ring's first word. Null: wiped.
    pub ring: Cell<*mut AtomicU64>,
    /// The ring's control words.
    pub control: Cell<*const Control>,
    /// Usable sizes last told, by size; 0: not told.
    pub usable: [Cell<u16>; PREDICTED],
}

/// Bytes from one state to the next.
pub(crate) const STATE_BYTES: usize = size_of::<State>();

/// What a process keeps. All zero: wiped; the process has not registered.
#[repr(C, align(64))]
pub(crate) struct Life {
    /// Held while a process or thread registers: 0 free, 1 held.
    pub lock: AtomicU32,
    /// Held while a thread writes to the shared ring: 0 free, otherwise the holder's index plus one.
    pub shared_lock: AtomicU32,
    /// The process's entry. Null: not registered.
    pub process: AtomicPtr<Process>,
    /// The entry's number.
    pub index: AtomicU32,
    /// The image's number.
    pub image: AtomicU32,
    /// The process number at registration.
    pub pid: AtomicU32,
    /// The state of the ring that threads share. Null: none yet.
    pub shared: AtomicPtr<State>,
    /// For threads without a ring of their own: zero for ever, so that they never take the short way.
    pub nobody: State,
}

impl State {
    /// Nothing is known of any ring.
    pub fn wiped(&self) -> bool {
        self.ring.get().is_null()
    }

    /// Begins at the beginning of a ring that nothing has been written to.
    pub fn begin(&self, ring: *mut AtomicU64, control: *const Control, block_words: usize, thread: u32) {
        self.seen.set(0);
        self.at.set(ring);
        // SAFETY: a block lies within its ring.
        self.limit.set(unsafe { ring.add(block_words) });
        self.lap.set(crate::word::LAP);
        self.block.set(0);
        self.thread.set(thread);
        self.control.set(control);
        for entry in &self.usable {
            if entry.get() != 0 {
                entry.set(0);
            }
        }
        self.fast.store(0, core::sync::atomic::Ordering::Relaxed);
        self.ring.set(ring);
    }

    /// The ring's control words.
    ///
    /// # Safety
    /// Not wiped.
    pub unsafe fn control(&self) -> &Control {
        // SAFETY: a state that is not wiped has a ring, whose control words lie in a mapping that stays.
        unsafe { &*self.control.get() }
    }

    /// Words left in the current block.
    pub fn room(&self) -> usize {
        (self.limit.get() as usize - self.at.get() as usize) / size_of::<u64>()
    }
}
