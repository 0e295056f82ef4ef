//! What a producer keeps in its process's own memory, which a child of fork finds wiped.

use core::cell::Cell;
use core::mem::size_of;
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering, compiler_fence};

use crate::layout::{Control, MOST_RINGS, Process, gate};
use crate::word::PREDICTED;

/// One ring's writer. All zero: wiped, or never claimed.
///
/// It belongs to one thread (or to who holds [`Life::shared_lock`]), and to the signal handlers that interrupt it.
#[repr(C, align(64))]
pub(crate) struct State {
    /// 1 while the owner looks at this or changes it: a signal handler that finds it so must keep off.
    busy: AtomicU32,
    /// What the gate must be for the short way; 0: each event goes the general way.
    pub fast: Cell<u32>,
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
    /// Blocks that have memory, a power of two.
    pub blocks: Cell<u32>,
    /// Whether there may be more of them: during the first lap.
    pub grows: Cell<bool>,
    /// The ring's number.
    pub number: Cell<u32>,
    /// What [`Owner::who`](crate::layout::Owner::who) is as long as the ring is this one's.
    pub who: Cell<u64>,
    /// The thread's index in its process; in a shared ring, of the last that wrote.
    pub thread: Cell<u32>,
    /// The ring's first word. Null: wiped.
    pub ring: Cell<*mut AtomicU64>,
    /// The ring's control words.
    pub control: Cell<*const Control>,
    /// The process's entry.
    pub process: Cell<*const Process>,
    /// Whether only numbers can be asked for besides the event: no times, and the ring is the thread's own.
    pub simple: Cell<bool>,
    /// Usable sizes last told, by size; 0: not told.
    pub usable: [Cell<u16>; PREDICTED],
}

/// What a ring was claimed as.
pub(crate) struct Claim {
    /// The ring's number.
    pub number: u32,
    /// See [`State::who`].
    pub who: u64,
    /// The thread's index.
    pub thread: u32,
    /// Words of a block.
    pub block_words: usize,
    /// Blocks that have memory.
    pub blocks: u32,
    /// See [`State::grows`].
    pub grows: bool,
    /// See [`State::simple`].
    pub simple: bool,
}

/// Bytes from one state to the next.
pub(crate) const STATE_BYTES: usize = size_of::<State>();

/// What a process keeps. All zero: wiped; the process has not registered.
#[repr(C, align(64))]
pub(crate) struct Life {
    /// Held while a process or thread registers: 0 free, otherwise the holder's kernel number.
    pub lock: AtomicU32,
    /// Held while a thread writes to the shared ring: 0 free, otherwise the holder's kernel number, or
    /// where that is not known bit 31 and its index.
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
    /// Rings that this process has claimed, a bit each.
    pub claimed: [AtomicU8; MOST_RINGS / 8],
    /// For threads without a ring of their own: wiped for ever, and shut, so that they never take the short way.
    pub nobody: State,
}

impl State {
    /// Nothing is known of any ring.
    pub fn wiped(&self) -> bool {
        self.ring.get().is_null()
    }

    /// Begins at the beginning of a ring that nothing has been written to.
    pub fn begin(&self, ring: *mut AtomicU64, control: &Control, process: &Process, claim: &Claim) {
        let Claim { number, who, thread, block_words, blocks, grows, simple } = *claim;
        self.blocks.set(blocks);
        self.grows.set(grows);
        self.number.set(number);
        self.who.set(who);
        self.seen.set(0);
        self.at.set(ring);
        // SAFETY: a block lies within its ring.
        self.limit.set(unsafe { ring.add(block_words) });
        self.lap.set(crate::word::LAP);
        self.block.set(0);
        self.thread.set(thread);
        self.control.set(control);
        self.process.set(process);
        self.simple.set(simple);
        for entry in &self.usable {
            if entry.get() != 0 {
                entry.set(0);
            }
        }
        self.fast.set(0);
        self.leave();
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

    /// Makes the state the caller's. False when it interrupts one whose it is.
    #[inline(always)]
    pub fn enter(&self) -> bool {
        // A signal handler that comes in between has left again before the store.
        if self.busy.load(Ordering::Relaxed) != 0 {
            return false;
        }
        self.busy.store(1, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        true
    }

    /// Ends what [`State::enter`] began.
    #[inline(always)]
    pub fn leave(&self) {
        compiler_fence(Ordering::SeqCst);
        self.busy.store(0, Ordering::Relaxed);
    }

    /// Nobody can enter it any more.
    pub fn shut(&self) {
        self.busy.store(1, Ordering::Relaxed);
    }

    /// Whether the caller interrupts one whose it is.
    pub fn entered(&self) -> bool {
        self.busy.load(Ordering::Relaxed) != 0
    }

    /// Takes note of a gate that has been passed.
    pub fn pass(&self, gate: u32) {
        self.seen.set(gate);
        self.fast.set(if self.simple.get() && gate & gate::SEQUENCED == 0 { gate } else { 0 });
    }

    /// Words left in the current block.
    #[inline(always)]
    pub fn room(&self) -> usize {
        (self.limit.get() as usize - self.at.get() as usize) / size_of::<u64>()
    }
}
