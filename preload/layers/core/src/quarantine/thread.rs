//! A thread's record, with the blocks that it holds.
//!
//! It lies on pages of its own, not in thread-local storage, so that a child of fork finds what threads held that it
//! does not have. All fields are its thread's alone but for `taken` and `next`; they are atomic for the child, which
//! sees them as they were at some instant between two of the thread's instructions. So a block's address is written
//! before the cursor moves, and a block is out of the buffer before it is given back: what is caught in between is held
//! for ever, never given back twice.

use core::ffi::c_void;
use core::mem::offset_of;
use core::ptr::{self, NonNull};
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64};

use heaptoll_next::memory::{self, PAGE};

/// Buffers larger than this are unmapped when their thread ends; smaller ones wait for the next thread.
const KEPT: usize = 1 << 20;
/// The first buffer that has pages of its own, bytes.
const FIRST: usize = 16 << 10;

/// A block's address in a buffer.
pub type Slot = AtomicPtr<c_void>;

/// A thread's record.
#[repr(C, align(64))]
pub struct Thread {
    /// The slot of the next block.
    pub(crate) cursor: AtomicPtr<Slot>,
    /// Where the fast path ends. Not after `cursor` where every block is to take the slow path.
    pub(crate) limit: AtomicPtr<Slot>,
    /// The epoch that its blocks belong to, unless the volume has another one by now.
    pub(crate) epoch: AtomicU64,
    /// Bytes in its blocks.
    pub(crate) held: AtomicU64,
    /// The oldest block.
    pub(crate) first: AtomicPtr<Slot>,
    /// Times that it gave back what it held.
    pub(crate) releases: AtomicU64,
    /// It is giving back, or never to hold anything: all that is freed goes to the manager at once. While it gives back
    /// all, `first` shows it.
    pub(crate) busy: AtomicBool,
    /// Its buffer is being exchanged for another.
    moving: AtomicBool,
    /// A thread has it.
    taken: AtomicBool,
    /// State of its random numbers.
    pub(crate) random: AtomicU64,
    start: AtomicPtr<Slot>,
    /// After the buffer's last slot.
    end: AtomicPtr<Slot>,
    next: AtomicPtr<Thread>,
    /// The first buffer, to the end of the page.
    within: [Slot; WITHIN],
}

const HEAD: usize = 88;
const WITHIN: usize = (PAGE - HEAD) / size_of::<Slot>();
const _: () = assert!(size_of::<Thread>() == PAGE && offset_of!(Thread, within) == HEAD);

impl Thread {
    /// The record of threads without one: busy for ever, so that all of their blocks go straight to the manager.
    pub const fn nowhere() -> Thread {
        Thread {
            cursor: AtomicPtr::new(ptr::null_mut()),
            limit: AtomicPtr::new(ptr::null_mut()),
            epoch: AtomicU64::new(0),
            held: AtomicU64::new(0),
            first: AtomicPtr::new(ptr::null_mut()),
            releases: AtomicU64::new(0),
            busy: AtomicBool::new(true),
            moving: AtomicBool::new(false),
            taken: AtomicBool::new(false),
            random: AtomicU64::new(0),
            start: AtomicPtr::new(ptr::null_mut()),
            end: AtomicPtr::new(ptr::null_mut()),
            next: AtomicPtr::new(ptr::null_mut()),
            within: [const { Slot::new(ptr::null_mut()) }; WITHIN],
        }
    }

    /// Blocks that it holds.
    pub fn blocks(&self) -> usize {
        (self.cursor.load(Relaxed) as usize - self.first.load(Relaxed) as usize) / size_of::<Slot>()
    }

    /// Whether they are where they should be.
    #[cfg(test)]
    pub(crate) fn within_buffer(&self) -> bool {
        let (first, cursor) = (self.first.load(Relaxed), self.cursor.load(Relaxed));
        (self.start.load(Relaxed)..=self.end()).contains(&first) && (first..=self.end()).contains(&cursor)
    }

    /// Bytes in them.
    pub fn held(&self) -> u64 {
        self.held.load(Relaxed)
    }

    /// Forgets its blocks, which are all out. `fast_path`: further ones may take the fast path.
    #[inline(always)]
    pub(crate) fn empty(&self, fast_path: bool) {
        let start = self.start.load(Relaxed);
        // In this order: in between, the oldest lies after the newest, and nothing between them.
        self.cursor.store(start, Release);
        self.first.store(start, Release);
        self.open(fast_path);
    }

    /// Sets whether further blocks may take the fast path.
    #[inline(always)]
    pub(crate) fn open(&self, fast_path: bool) {
        let limit = if fast_path { self.end() } else { self.cursor.load(Relaxed) };
        self.limit.store(limit, Relaxed);
    }

    fn end(&self) -> *mut Slot {
        self.end.load(Relaxed)
    }

    /// Exchanges the buffer.
    fn buffer(&self, start: *mut Slot, places: usize) {
        self.start.store(start, Relaxed);
        self.end.store(start.wrapping_add(places), Relaxed);
    }

    /// Bytes of the buffer.
    fn bytes(&self) -> usize {
        self.end() as usize - self.start.load(Relaxed) as usize
    }

    /// Whether it is giving back.
    pub(crate) fn busy(&self) -> bool {
        self.busy.load(Relaxed) || self.first.load(Relaxed) != self.start.load(Relaxed)
    }

    /// Makes space for a block after the others; false: there is no memory.
    pub(crate) fn ensure_space(&self) -> bool {
        self.cursor.load(Relaxed) < self.end() || self.grow()
    }

    /// Appends a block. There is space.
    pub(crate) fn push(&self, block: *mut c_void) {
        self.put(self.cursor.load(Relaxed), block);
    }

    /// The same, for callers that have the cursor.
    #[inline(always)]
    pub(crate) fn put(&self, cursor: *mut Slot, block: *mut c_void) {
        debug_assert!(cursor < self.end());
        // SAFETY: within the buffer, whose slots are all initialised.
        unsafe { (*cursor).store(block, Relaxed) };
        self.cursor.store(cursor.wrapping_add(1), Release);
    }

    /// Takes the block at an index from the oldest out; the newest replaces it.
    pub(crate) fn swap_out(&self, at: usize) -> *mut c_void {
        debug_assert!(at < self.blocks());
        let newest = self.cursor.load(Relaxed).wrapping_sub(1);
        // SAFETY: both are slots between `first` and `cursor`.
        unsafe {
            let slot = &*self.first.load(Relaxed).wrapping_add(at);
            let block = slot.load(Relaxed);
            // In this order: in between, the newest is in no slot rather than in two.
            self.cursor.store(newest, Release);
            slot.store((*newest).load(Relaxed), Release);
            block
        }
    }

    #[cold]
    fn grow(&self) -> bool {
        let (start, bytes) = (self.start.load(Relaxed), self.bytes());
        let own = ptr::eq(start, self.within.as_ptr());
        let larger = if own { FIRST } else { bytes * 2 };
        self.moving.store(true, Release);
        let made = match NonNull::new(start.cast::<c_void>()) {
            // SAFETY: a mapping of `memory`'s of so many bytes, which this thread alone uses.
            Some(start) if !own => unsafe { memory::enlarge(start, bytes, larger) },
            _ => memory::map(larger),
        };
        let Some(made) = made.map(NonNull::cast::<Slot>) else {
            self.moving.store(false, Release);
            return false;
        };
        let (first, cursor) = (self.first.load(Relaxed), self.cursor.load(Relaxed));
        if own {
            // SAFETY: the new buffer is larger, and does not overlap.
            unsafe { ptr::copy_nonoverlapping(start, made.as_ptr(), bytes / size_of::<Slot>()) };
        }
        let moved = |slot: *mut Slot| {
            let bytes = slot as usize - start as usize;
            made.as_ptr().wrapping_byte_add(bytes)
        };
        let fast_path = self.limit.load(Relaxed) != cursor || cursor == self.end();
        self.buffer(made.as_ptr(), larger / size_of::<Slot>());
        self.first.store(moved(first), Relaxed);
        self.cursor.store(moved(cursor), Relaxed);
        self.open(fast_path);
        self.moving.store(false, Release);
        true
    }
}

/// All records that there ever were; their pages are used again and never unmapped.
pub struct Threads {
    newest: AtomicPtr<Thread>,
}

impl Default for Threads {
    fn default() -> Threads {
        Threads::new()
    }
}

impl Threads {
    /// An empty list.
    pub const fn new() -> Threads {
        Threads { newest: AtomicPtr::new(ptr::null_mut()) }
    }

    /// A record for the calling thread, without blocks; `None`: there is no memory.
    pub fn take(&self) -> Option<&Thread> {
        let left =
            self.each().find(|thread| thread.taken.compare_exchange(false, true, AcqRel, Relaxed).is_ok());
        if left.is_some() {
            return left;
        }
        let made = memory::map(size_of::<Thread>())?.cast::<Thread>();
        // SAFETY: new zeroed pages, which are a thread without a buffer, and which stay.
        let thread = unsafe { made.as_ref() };
        thread.buffer(thread.within.as_ptr().cast_mut(), WITHIN);
        thread.busy.store(false, Relaxed);
        thread.empty(true);
        thread.taken.store(true, Relaxed);
        let mut newest = self.newest.load(Relaxed);
        loop {
            thread.next.store(newest, Relaxed);
            match self.newest.compare_exchange_weak(newest, made.as_ptr(), Release, Relaxed) {
                Ok(_) => return Some(thread),
                Err(now) => newest = now,
            }
        }
    }

    /// Leaves a record, without blocks, to the next thread.
    pub fn leave(&self, thread: &Thread) {
        let bytes = thread.bytes();
        let start = thread.start.load(Relaxed);
        if bytes > KEPT
            && let Some(memory) = NonNull::new(start.cast())
        {
            thread.moving.store(true, Release);
            thread.buffer(thread.within.as_ptr().cast_mut(), WITHIN);
            thread.empty(true);
            // SAFETY: a mapping of so many bytes, since it is larger than the first buffer; its blocks are out.
            unsafe { memory::unmap(memory, bytes) };
            thread.moving.store(false, Release);
        }
        thread.empty(true);
        thread.taken.store(false, Release);
    }

    /// All records.
    pub fn each(&self) -> impl Iterator<Item = &Thread> {
        // SAFETY: records are never unmapped.
        let mut at = unsafe { self.newest.load(Acquire).as_ref() };
        core::iter::from_fn(move || {
            let thread = at?;
            // SAFETY: records are never unmapped.
            at = unsafe { thread.next.load(Acquire).as_ref() };
            Some(thread)
        })
    }

    /// In a child of fork, on its only thread: that one takes over what the others held. Returns what it holds now,
    /// bytes.
    pub fn adopt(&self, own: &Thread) -> u64 {
        for other in self.each() {
            // What was caught while its buffer moved is out of reach.
            if ptr::eq(other, own) || !other.taken.load(Relaxed) || other.moving.load(Relaxed) {
                continue;
            }
            let (mut at, end) = (other.first.load(Relaxed), other.cursor.load(Relaxed));
            while at < end && own.ensure_space() {
                // SAFETY: `at` is a slot between `first` and `cursor`, which have blocks.
                own.push(unsafe { (*at).load(Relaxed) });
                at = at.wrapping_add(1);
            }
            own.held.store(own.held.load(Relaxed) + other.held.swap(0, Relaxed), Relaxed);
            other.busy.store(false, Relaxed);
            self.leave(other);
        }
        own.held.load(Relaxed)
    }
}
