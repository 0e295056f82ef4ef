//! Recording one event: the fast path, inline.
//!
//! The fast path serves a process of one thread whose tool wants nothing special: the gate is unchanged, the usable
//! size is the predicted one, the block has space. One comparison of the gate stands for all conditions that seldom
//! change: if the fast path must not be taken, [`State::fast`] is a value that no gate has. All else takes the slow
//! path ([`crate::emit`]), out of line.

use core::marker::PhantomData;

use crate::atomic::Ordering;
use crate::attachment::{Attachment, stage};
use crate::emit::{Event, Message};
use crate::state::State;
use crate::sys::Errno;
use crate::thread_word::{ThreadWord, mark};
use crate::word::{
    ADDRESS_BITS, ADDRESS_MASK, ALLOC, ALLOC_LONG, DATA_MASK, FREE, FREE_DELETE, KIND_EXIT, KIND_NEW, NEW,
    PREDICTED, RESIZE_BEGIN, RESIZE_END, SHORT_SIZES, note, note_word, plain, prefix, prefix_word, tagged,
};

/// Maximum number of frames of a call stack.
pub const FRAMES: usize = 256;

/// The calling thread's access to its ring, for one event.
///
/// It is passed by value, so that on the fast path it never leaves the registers.
pub struct Producer<'a, W> {
    attachment: &'a Attachment,
    state: &'a State,
    site: u32,
    latency_ns: u32,
    word: PhantomData<fn() -> W>,
}

impl<'a, W: ThreadWord> Producer<'a, W> {
    #[inline(always)]
    pub(crate) fn new(attachment: &'a Attachment, state: &'a State) -> Producer<'a, W> {
        Producer { attachment, state, site: 0, latency_ns: 0, word: PhantomData }
    }

    #[inline(always)]
    fn copy(&self) -> Producer<'a, W> {
        Producer { ..*self }
    }

    /// Sets the call stack of the next event that this handle records. 0: none.
    #[inline(always)]
    pub fn site(&mut self, site: u32) {
        self.site = site;
    }

    /// Sets how long the next event that this handle records took, ns. Not for frees, which are recorded before they
    /// are done: see [`Producer::took`].
    #[inline(always)]
    pub fn latency(&mut self, ns: u32) {
        self.latency_ns = ns;
    }

    /// Records that a `malloc` returned `block`. Called after the manager returned.
    #[inline(always)]
    pub fn alloc(&mut self, block: usize, size: usize, usable: usize) {
        self.short(ALLOC, block, size, usable);
    }

    /// Records that a block is about to be freed. Called before the manager is.
    #[inline(always)]
    pub fn free(&mut self, block: usize, delete: bool) {
        let word = tagged(FREE, block as u64 >> 3 | if delete { FREE_DELETE } else { 0 });
        if !(plain(block) && self.write_short(word, |_| true)) {
            self.copy().free_general(block, delete);
        }
    }

    /// Records that any call for a new block returned `block`; `kind` is below [`KIND_EXIT`]. Called after the manager returned.
    #[inline(always)]
    pub fn alloc_long(&mut self, block: usize, size: usize, usable: usize, kind: u8, align_log2: u8) {
        if kind == KIND_NEW && align_log2 == 0 {
            self.short(NEW, block, size, usable);
        } else {
            self.copy().alloc_general(kind, align_log2, block, size, usable);
        }
    }

    /// Records that a block is about to be resized. Called before the manager is.
    #[inline(always)]
    pub fn resize_begin(&mut self, block: usize) {
        self.copy().resize_begin_general(block);
    }

    #[inline(never)]
    fn resize_begin_general(mut self, block: usize) {
        self.emit(&Event::new(RESIZE_BEGIN, block));
    }

    /// Records that the block of this thread's last [`Producer::resize_begin`] is now `block`; 0: the manager returned
    /// null. Called after the manager returned, in each case.
    #[inline(always)]
    pub fn resize_end(&mut self, block: usize, size: usize, usable: usize) {
        self.copy().resize_end_general(block, size, usable);
    }

    #[inline(never)]
    fn resize_end_general(mut self, block: usize, size: usize, usable: usize) {
        let event = Event {
            data: Some((size as u64).min(DATA_MASK)),
            usable: Some(usable),
            ..self.event(RESIZE_END, block)
        };
        self.emit(&event);
    }

    /// Records that a call for a new block returned null.
    #[inline(always)]
    pub fn failed(&mut self, kind: u8, size: usize) {
        self.copy().failed_general(kind, size);
    }

    #[cold]
    #[inline(never)]
    fn failed_general(mut self, kind: u8, size: usize) {
        let word = tagged(ALLOC_LONG, u64::from(kind & 15) << ADDRESS_BITS);
        self.emit(&Event { word, data: Some((size as u64).min(DATA_MASK)), ..self.event(ALLOC_LONG, 0) });
    }

    /// Records that `exit` begins.
    #[cold]
    pub fn exit_begins(self) {
        self.failed_general(KIND_EXIT, 0);
    }

    /// Records how long this thread's last [`Producer::free`] took, ns. Called after each free if the tool wants
    /// latencies: the reader waits for it.
    #[inline(always)]
    pub fn took(&mut self, ns: u32) {
        self.copy().took_general(ns);
    }

    #[inline(never)]
    fn took_general(mut self, ns: u32) {
        self.send(&Message::Note(&[note_word(note::LATENCY, u64::from(ns))]));
    }

    /// Records which call stack a number stands for: return addresses, innermost first. At most [`FRAMES`] are kept,
    /// and no more than fit into a block.
    #[inline(always)]
    pub fn define_site(&mut self, site: u32, frames: &[usize]) {
        self.copy().define_site_general(site, frames);
    }

    /// Records that the program has mapped memory of its own: its address and its bytes.
    #[cold]
    pub fn mapped(&mut self, site: u32, now: [usize; 2]) {
        self.note_mapping(site, now);
    }

    /// Records that the program has moved, enlarged or shrunk a mapping of its own.
    #[cold]
    pub fn remapped(&mut self, site: u32, [from, bytes]: [usize; 2], [to, new_bytes]: [usize; 2]) {
        self.note_mapping(site, [from, bytes, to, new_bytes]);
    }

    #[cold]
    #[inline(never)]
    fn note_mapping<const WORDS: usize>(&mut self, site: u32, words: [usize; WORDS]) {
        let mut message = [note_word(note::MAPPED, (WORDS as u64) << 32 | u64::from(site)); 5];
        for (place, word) in message[1..].iter_mut().zip(words) {
            *place = tagged(crate::word::DATA, word as u64 & DATA_MASK);
        }
        self.send(&Message::Note(&message[..=WORDS]));
    }

    #[cold]
    #[inline(never)]
    fn define_site_general(mut self, site: u32, frames: &[usize]) {
        let frames = &frames[..frames.len().min(FRAMES).min(self.attachment.geometry().block_words() - 1)];
        self.send(&Message::Site(site, frames));
    }

    #[inline(always)]
    fn short(&mut self, tag: u64, block: usize, size: usize, usable: usize) {
        let word = tagged(tag, (size as u64) << ADDRESS_BITS | block as u64 >> 3);
        let written = self.latency_ns == 0
            && size < PREDICTED
            && plain(block)
            && self.write_short(word, |state| usize::from(state.usable[size].get()) == usable);
        if !written {
            self.copy().alloc_general(if tag == NEW { KIND_NEW } else { 0 }, 0, block, size, usable);
        }
    }

    /// The fast path: writes one word, with the call stack before it if there is one, if `fits`. A signal handler that
    /// records an event meanwhile finds that the state has been entered, so nothing changes between the checks and the
    /// store.
    #[inline(always)]
    fn write_short(&self, word: u64, fits: impl FnOnce(&State) -> bool) -> bool {
        let state = self.state;
        if !state.enter() {
            return false;
        }
        let at = state.at.get();
        let last = at.wrapping_add(usize::from(self.site != 0));
        let written = self.attachment.gate() == state.fast.get() && fits(state) && last < state.limit.get();
        if written {
            let lap = state.lap.get();
            // SAFETY: `at` and `last` are before `limit`, the end of their block, so within the ring; a wiped state has
            // `fast` 0, which no gate equals. The first word is written last: a reader that sees it sees both.
            unsafe {
                if self.site == 0 {
                    (*at).store(word | lap, Ordering::Release);
                } else {
                    (*last).store(word | lap, Ordering::Relaxed);
                    let site = prefix_word(prefix::SITE, u64::from(self.site));
                    (*at).store(site | lap, Ordering::Release);
                }
            }
            state.at.set(last.wrapping_add(1));
        }
        state.leave();
        written
    }

    #[cold]
    #[inline(never)]
    fn alloc_general(mut self, kind: u8, align_log2: u8, block: usize, size: usize, usable: usize) {
        let (word, data) = if size < SHORT_SIZES && align_log2 == 0 && (kind == 0 || kind == KIND_NEW) {
            let tag = if kind == 0 { ALLOC } else { NEW };
            (tagged(tag, (size as u64) << ADDRESS_BITS), None)
        } else {
            let about =
                u64::from(kind & 15) << ADDRESS_BITS | u64::from(align_log2 & 63) << (ADDRESS_BITS + 4);
            (tagged(ALLOC_LONG, about), Some((size as u64).min(DATA_MASK)))
        };
        let word = word | block as u64 >> 3 & ADDRESS_MASK;
        self.emit(&Event { word, data, predicted: Some((size, usable)), ..self.event(ALLOC, block) });
    }

    #[cold]
    #[inline(never)]
    fn free_general(mut self, block: usize, delete: bool) {
        let mut event = Event::new(FREE, block);
        if delete {
            event.word |= FREE_DELETE;
        }
        self.emit(&event);
    }

    #[inline(always)]
    fn event(&self, tag: u64, block: usize) -> Event {
        Event { site: self.site, latency_ns: self.latency_ns, ..Event::new(tag, block) }
    }

    /// The slow path; writes at once if the ring is the thread's own and there is nothing to wait for.
    #[inline(always)]
    fn emit(&mut self, event: &Event) {
        if !self.attachment.emit_now(self.state, event) {
            self.send(&Message::Event(event));
        }
    }

    /// The rest of the slow path: writes to the own ring, or to the shared one.
    #[cold]
    #[inline(never)]
    fn send(&mut self, message: &Message<'_>) {
        let _errno = Errno::keep();
        let attachment = self.attachment;
        loop {
            let state = self.state;
            if attachment.stage.load(Ordering::Relaxed) == stage::DETACHED {
                W::set(0);
                return;
            }
            // SAFETY: producers exist only after `register`, which returns without one unless `local` is set.
            let local = unsafe { &*attachment.local() };
            if !state.wiped() {
                if state.entered() {
                    // This is a signal handler, which has interrupted the recording of another event.
                    // SAFETY: the state is not wiped, as checked above.
                    let owner_id = unsafe { state.control() }.owner.0.id.load(Ordering::Relaxed);
                    return attachment.send_shared(local, state.thread.get(), owner_id as u32, message);
                }
                if attachment.send_own(local, state, message).is_err() {
                    attachment.detach();
                    W::set(0);
                }
                return;
            }
            let word = W::get();
            if mark::is_shared(word) && attachment.current(word) {
                return attachment.send_shared(local, mark::thread(word), mark::tid(word), message);
            }
            if word & mark::OWN != 0
                && let Some(state) = attachment.state_of(word)
                // SAFETY: `state_of` gives pointers into the mapping of states, which stays.
                && let state = unsafe { &*state }
                && !state.wiped()
            {
                // Another handle, within this event, has registered the thread meanwhile.
                self.state = state;
                continue;
            }
            // The child of a fork.
            W::set(mark::REGISTERING);
            let word = attachment.register(word);
            W::set(word);
            match attachment.state_of(word) {
                // SAFETY: `state_of` gives pointers into the mapping of states, which stays.
                Some(state) => self.state = unsafe { &*state },
                None => return,
            }
        }
    }
}
