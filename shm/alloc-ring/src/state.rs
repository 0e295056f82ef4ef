//! What a producer keeps in private memory of its process, which the kernel wipes in a child of fork.

use core::cell::Cell;
use core::mem::size_of;

use heaptoll_assertions::assert_internal;

use crate::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering, compiler_fence};
use crate::layout::{Control, MOST_RINGS, Process, gate};
use crate::word::{LAP, PREDICTED, note, note_word};

/// One ring's writer. All zero: wiped, or never claimed.
///
/// It belongs to one thread (or to the holder of [`ProcessLocal::shared_lock`]), and to the signal handlers that
/// interrupt it.
#[repr(C, align(64))]
pub(crate) struct State {
    /// 1 while the owner reads or changes this: a signal handler that finds it 1 must not touch it.
    busy: AtomicU32,
    /// The value of the gate with which the fast path may be taken; 0: each event takes the slow path.
    pub fast: Cell<u32>,
    /// The gate when it was last read.
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
    /// Whether they may become more: during the first lap.
    pub grows: Cell<bool>,
    /// The ring's number.
    pub number: Cell<u32>,
    /// The value of [`Owner::id`](crate::layout::Owner::id) as long as this writer owns the ring.
    pub owner_id: Cell<u64>,
    /// The thread's index in its process; in a shared ring, that of the last writer.
    pub thread: Cell<u32>,
    /// The ring's first word. Null: wiped.
    pub ring: Cell<*mut AtomicU64>,
    /// The ring's control words.
    pub control: Cell<*const Control>,
    /// The process's entry.
    pub process: Cell<*const Process>,
    /// Whether at most sequence numbers accompany events: no times, and the ring is the thread's own.
    pub simple: Cell<bool>,
    /// Usable sizes last recorded, by size; 0: none.
    pub usable: [Cell<u16>; PREDICTED],
}

/// The properties with which a ring is claimed.
pub(crate) struct Claim {
    /// The ring's number.
    pub number: u32,
    /// See [`State::owner_id`].
    pub owner_id: u64,
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

/// The private state of a process. All zero: wiped; the process has not registered.
#[repr(C, align(64))]
pub(crate) struct ProcessLocal {
    /// Held while a process or thread registers: 0 free, otherwise the holder's kernel number.
    pub lock: AtomicU32,
    /// Held while a thread writes to the shared ring: 0 free, otherwise the holder's kernel number, or,
    /// where that is not known, bit 31 and its index.
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
    /// For threads without a ring of their own: always wiped, and shut, so that they never take the fast path.
    pub unassigned: State,
}

impl State {
    /// Whether the state refers to no ring.
    pub fn wiped(&self) -> bool {
        self.ring.get().is_null()
    }

    /// Begins at the first word of a ring to which nothing has been written.
    pub fn begin(&self, ring: *mut AtomicU64, control: &Control, process: &Process, claim: &Claim) {
        let Claim { number, owner_id, thread, block_words, blocks, grows, simple } = *claim;
        self.blocks.set(blocks);
        self.grows.set(grows);
        self.number.set(number);
        self.owner_id.set(owner_id);
        self.seen.set(0);
        self.at.set(ring);
        // SAFETY: `Geometry::sensible` has checked that a block is smaller than a ring, and `ring` is a ring's first
        // word.
        self.limit.set(unsafe { ring.add(block_words) });
        self.lap.set(LAP);
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
        compiler_fence(Ordering::SeqCst);
        self.busy.store(0, Ordering::Relaxed);
        self.ring.set(ring);
        assert_internal!(self.is_in_its_block(block_words), "a writer begins at the first word of its ring");
    }

    /// The ring's control words.
    ///
    /// # Safety
    /// The state is not wiped.
    pub unsafe fn control(&self) -> &Control {
        // SAFETY: the state is not wiped, so `begin` has set `control` to words of the mapping, which stays.
        unsafe { &*self.control.get() }
    }

    /// Enters the state for the caller. False when the caller has interrupted a thread that has entered it.
    #[inline(always)]
    pub fn enter(&self) -> bool {
        // A signal handler that runs between the load and the store has left again before the store.
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
        // A child of fork finds the state wiped.
        assert_internal!(self.entered() || self.wiped(), "a state is left by a thread that has entered it");
        compiler_fence(Ordering::SeqCst);
        self.busy.store(0, Ordering::Relaxed);
    }

    /// From now on no thread can enter it.
    pub fn shut(&self) {
        self.busy.store(1, Ordering::Relaxed);
    }

    /// Whether the caller has interrupted a thread that has entered it.
    pub fn entered(&self) -> bool {
        self.busy.load(Ordering::Relaxed) != 0
    }

    /// Records a gate that has been passed.
    pub fn pass(&self, gate: u32) {
        self.seen.set(gate);
        self.fast.set(if self.simple.get() && gate & gate::SEQUENCED == 0 { gate } else { 0 });
    }

    /// Whether the position is in the block of the current number, and the lap bit that of its lap.
    pub fn is_in_its_block(&self, block_words: usize) -> bool {
        let (block, blocks) = (self.block.get(), self.blocks.get());
        if !blocks.is_power_of_two() || self.grows.get() && block >= blocks {
            return false;
        }
        let begin = (block & (blocks - 1)) as usize * block_words;
        let end = self.ring.get().wrapping_add(begin + block_words);
        let lap = if block / blocks % 2 == 0 { LAP } else { 0 };
        self.limit.get() == end && self.free_words() <= block_words && self.lap.get() == lap
    }

    /// Words left in the current block.
    #[inline(always)]
    pub fn free_words(&self) -> usize {
        (self.limit.get() as usize - self.at.get() as usize) / size_of::<u64>()
    }

    /// Writes a group. The first word is written last: a reader that sees it sees them all.
    ///
    /// # Safety
    /// `words` is not empty, and the current block has that many free words.
    #[inline(always)]
    pub unsafe fn write(&self, words: &[u64]) {
        // SAFETY: the precondition of this function.
        unsafe { self.write_group(words[0], words[1..].iter().copied()) };
    }

    /// The same of a group whose words are made one by one: a signal handler's stack may be too small for them all.
    ///
    /// # Safety
    /// The current block has a free word for `first` and for each of the rest.
    #[inline(always)]
    pub unsafe fn write_group(&self, first: u64, rest: impl ExactSizeIterator<Item = u64>) {
        assert_internal!(self.entered(), "a state is written by a thread that has entered it");
        let words = 1 + rest.len();
        assert_internal!(words <= self.free_words(), "a group fits the free words of its block");
        let at = self.at.get();
        let lap = self.lap.get();
        // SAFETY: the caller has established that the group fits before the end of the block; a state with free words is
        // not wiped, so `at` lies in its ring.
        unsafe {
            for (n, word) in rest.enumerate() {
                assert_internal!(word & LAP == 0, "a group gets its lap bits from the writer");
                (*at.add(1 + n)).store(word | lap, Ordering::Relaxed);
            }
            (*at).store(first | lap, Ordering::Release);
        }
        self.at.set(at.wrapping_add(words));
    }

    /// Fills the rest of the current block with padding.
    pub fn pad(&self) {
        loop {
            let free = self.free_words();
            if free == 0 {
                return;
            }
            let mut pads = [note_word(note::PAD, 0); 16];
            let now = free.min(pads.len());
            pads[0] = note_word(note::PAD, now as u64 - 1);
            // SAFETY: `now` is at least 1 and at most the free words.
            unsafe { self.write(&pads[..now]) };
        }
    }
}
