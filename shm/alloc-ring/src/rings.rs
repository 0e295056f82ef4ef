//! The layer's handle on the shared file: one static per process, from which each thread gets its [`Producer`].

use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::ptr;
use core::sync::atomic::AtomicUsize;

use crate::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering};
use crate::flags::Flags;
use crate::layout::{FACTS_BYTES, Geometry, Header, MOST_RINGS};
use crate::producer::Producer;
use crate::state::{ProcessLocal, State};

/// A thread-local word that is 0 in each new thread. The layer makes one in the model "initial exec".
pub trait ThreadWord {
    /// The calling thread's word.
    fn get() -> usize;
    /// Changes the calling thread's word.
    fn set(word: usize);
}

/// Writes the requested facts about this process; returns how many bytes it wrote. When it is called, the first byte
/// holds the request's options, the others are zero. Called on a thread of the program, outside of the manager; it must
/// not wait for other threads of the program.
pub type FactsHook = fn(&mut [u8; FACTS_BYTES]) -> usize;

/// The values of a thread's word besides 0, a new thread.
pub(crate) mod mark {
    /// The thread has a state of its own, whose address is the rest.
    pub const OWN: usize = 1;
    /// It is registering, or about to find that it cannot.
    pub const REGISTERING: usize = 2;
    /// It shares a ring: bits 8-29 the kernel's number, 30-55 the index, 56-63 the low byte of the image's
    /// number.
    pub const SHARED: usize = 4;
    /// There was no ring for it, not even a shared one: bits 56-63 the low byte of the image's number.
    pub const LEFT_OUT: usize = 8;

    const TID: usize = (1 << 22) - 1;
    const THREAD: usize = (1 << 26) - 1;

    pub fn shared(thread: u32, tid: u32, image: u32) -> usize {
        (image as usize) << 56 | (thread as usize & THREAD) << 30 | (tid as usize & TID) << 8 | SHARED
    }

    pub fn left_out(image: u32) -> usize {
        (image as usize) << 56 | LEFT_OUT
    }

    pub fn is_shared(word: usize) -> bool {
        word & (OWN | SHARED) == SHARED
    }

    pub fn is_left_out(word: usize) -> bool {
        word & (OWN | LEFT_OUT) == LEFT_OUT
    }

    pub fn tid(word: usize) -> u32 {
        (word >> 8 & TID) as u32
    }

    pub fn thread(word: usize) -> u32 {
        (word >> 30 & THREAD) as u32
    }

    pub fn image(word: usize) -> u8 {
        (word >> 56) as u8
    }
}

/// [`Core::attached`].
pub(crate) mod stage {
    pub const NEW: u32 = 0;
    pub const ATTACHING: u32 = 1;
    pub const ATTACHED: u32 = 2;
    pub const DETACHED: u32 = 3;
}

/// The part that does not depend on the thread word.
pub(crate) struct Core {
    /// See [`stage`].
    pub attached: AtomicU32,
    /// The mapping. Never unmapped.
    pub header: AtomicPtr<Header>,
    /// Where each part lies, as the header stated when the file was mapped: the program may have overwritten the header
    /// since. Written while attaching.
    pub geometry: UnsafeCell<Geometry>,
    /// Blocks that all rings together may have, as the header stated then.
    pub budget: AtomicU32,
    /// The group of the process table that was found to have memory last.
    pub entry_group: AtomicU32,
    /// Rings in the mapping.
    pub mapped: AtomicUsize,
    /// The gate of this process; until it has registered, that of its parent. Null before the first registration.
    pub gate: AtomicPtr<AtomicU32>,
    /// The process's private memory.
    pub local: AtomicPtr<ProcessLocal>,
    /// Inode of the namespace of our process number; 0 unknown.
    pub namespace: AtomicU64,
    /// 1: it is the namespace of the tool's process number.
    pub same_namespace: AtomicU32,
    /// See [`FactsHook`].
    pub facts: AtomicPtr<()>,
    /// Rings whose states this process or its ancestors have used, a bit each. Not wiped by a fork.
    pub used: [AtomicU8; MOST_RINGS / 8],
    /// The file's path, NUL-terminated. Written while attaching.
    pub path: UnsafeCell<[u8; 256]>,
}

// SAFETY: everything but `path` and `geometry` is atomic; `Core::map` writes these on the one thread that attaches,
// before it stores `header`, and they are only read afterwards.
unsafe impl Sync for Core {}

/// The rings of this process. The layer has one static of it.
pub struct Rings<W> {
    core: Core,
    word: PhantomData<fn() -> W>,
}

impl<W: ThreadWord> Default for Rings<W> {
    fn default() -> Self {
        Rings::new()
    }
}

impl<W: ThreadWord> Rings<W> {
    /// Not attached yet: the first event, or [`Rings::attach`], attaches.
    pub const fn new() -> Rings<W> {
        Rings {
            core: Core {
                attached: AtomicU32::new(stage::NEW),
                header: AtomicPtr::new(ptr::null_mut()),
                geometry: UnsafeCell::new(Geometry { processes: 0, rings: 0, ring_log2: 0, block_log2: 0 }),
                budget: AtomicU32::new(0),
                entry_group: AtomicU32::new(0),
                mapped: AtomicUsize::new(0),
                gate: AtomicPtr::new(ptr::null_mut()),
                local: AtomicPtr::new(ptr::null_mut()),
                namespace: AtomicU64::new(0),
                same_namespace: AtomicU32::new(0),
                facts: AtomicPtr::new(ptr::null_mut()),
                used: [const { AtomicU8::new(0) }; MOST_RINGS / 8],
                path: UnsafeCell::new([0; 256]),
            },
            word: PhantomData,
        }
    }

    pub(crate) fn core(&self) -> &Core {
        &self.core
    }

    /// Maps the file that the environment names and registers the calling process and thread. False when there is no
    /// file, or no tool reads it: then every later call does nothing.
    pub fn attach(&self) -> bool {
        self.thread().is_some()
    }

    /// The calling thread's producer, for one event. `None`: detached, or the thread is registering.
    #[inline(always)]
    pub fn thread(&self) -> Option<Producer<'_, W>> {
        let word = W::get();
        if word & mark::OWN != 0 {
            let state = (word - mark::OWN) as *const State;
            // SAFETY: `register_locked` made a word with this mark from the address of a state in a mapping that stays.
            return Some(unsafe { Producer::new(&self.core, &*state) });
        }
        Some(Producer::new(&self.core, self.other_thread(word)?))
    }

    /// What the tool wants recorded. Nothing when not attached.
    #[inline]
    pub fn flags(&self) -> Flags {
        let header = self.core.header.load(Ordering::Acquire);
        // SAFETY: a header that is not null lies in a mapping that stays.
        if header.is_null() { Flags::default() } else { unsafe { (*header).flags() } }
    }

    /// Whether events of this process are dropped.
    pub fn detached(&self) -> bool {
        self.core.attached.load(Ordering::Acquire) == stage::DETACHED
    }

    /// Sets the hook to call when the tool requests facts about this process.
    pub fn answer_with(&self, hook: FactsHook) {
        self.core.facts.store(hook as *mut (), Ordering::Release);
    }

    /// The state of a thread without a ring of its own, or of one not known yet, which is registered.
    #[cold]
    #[inline(never)]
    fn other_thread(&self, word: usize) -> Option<&State> {
        if word == mark::REGISTERING || self.core.attached.load(Ordering::Acquire) == stage::DETACHED {
            return None;
        }
        if (mark::is_shared(word) || mark::is_left_out(word)) && self.core.current(word) {
            // SAFETY: `state_of` gives pointers into mappings that stay.
            return self.core.state_of(word).map(|state| unsafe { &*state });
        }
        W::set(mark::REGISTERING);
        let word = self.core.register(word);
        W::set(word);
        // SAFETY: `state_of` gives pointers into mappings that stay.
        self.core.state_of(word).map(|state| unsafe { &*state })
    }

    /// Called in the child of a fork, by `pthread_atfork`, where that is available: the thread registers again at its
    /// next event in any case, but after a fork in a signal handler that interrupted the recording of an event, the
    /// child would continue to record that event.
    pub fn forked(&self) {
        W::set(0);
    }
}
