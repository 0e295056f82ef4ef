//! Telling one event: the short way, inline.
//!
//! The short way is for a process of one thread whose tool wants nothing special: the gate is as it was, the usable
//! size is the one predicted, the block has room. One comparison of the gate stands for all conditions that seldom
//! change: where the short way must not be taken, [`State::fast`] is a value that no gate has. Everything else goes
//! the general way ([`crate::tell`]), out of line.

use core::marker::PhantomData;
use core::sync::atomic::Ordering;

use crate::rings::{Core, ThreadWord, mark, stage};
use crate::state::State;
use crate::sys::Errno;
use crate::tell::{Event, Message};
use crate::word::{
    ADDRESS_BITS, ADDRESS_MASK, ALLOC, ALLOC_LONG, DATA_MASK, FREE, FREE_DELETE, KIND_NEW, NEW, PREDICTED,
    RESIZE_BEGIN, RESIZE_END, SHORT_SIZES, note, noted, plain, tagged,
};

/// Most frames of a call stack.
pub const FRAMES: usize = 256;

/// The calling thread's way into its ring, for one event.
///
/// It is passed on by value, so that on the short way it never leaves the registers.
pub struct Producer<'a, W> {
    core: &'a Core,
    state: &'a State,
    site: u32,
    latency_ns: u32,
    word: PhantomData<fn() -> W>,
}

impl<'a, W: ThreadWord> Producer<'a, W> {
    #[inline(always)]
    pub(crate) fn new(core: &'a Core, state: &'a State) -> Producer<'a, W> {
        Producer { core, state, site: 0, latency_ns: 0, word: PhantomData }
    }

    #[inline(always)]
    fn copy(&self) -> Producer<'a, W> {
        Producer { ..*self }
    }

    /// The call stack of the event that is told next by this handle. 0: none.
    #[inline(always)]
    pub fn site(&mut self, site: u32) {
        self.site = site;
    }

    /// How long the event that is told next by this handle took, ns. Not for frees, which are told before they are
    /// done: [`Producer::took`].
    #[inline(always)]
    pub fn latency(&mut self, ns: u32) {
        self.latency_ns = ns;
    }

    /// A `malloc` gave `block`. Told after the manager answered.
    #[inline(always)]
    pub fn alloc(&mut self, block: usize, size: usize, usable: usize) {
        self.short(ALLOC, block, size, usable);
    }

    /// A block is about to be given back. Told before the manager is called.
    #[inline(always)]
    pub fn free(&mut self, block: usize, delete: bool) {
        let word = tagged(FREE, block as u64 >> 3 | if delete { FREE_DELETE } else { 0 });
        if !(plain(block) && self.write_short(word, |_| true)) {
            self.copy().free_general(block, delete);
        }
    }

    /// Any call for a new block gave `block`; `kind` is below 16. Told after the manager answered.
    #[inline(always)]
    pub fn alloc_long(&mut self, block: usize, size: usize, usable: usize, kind: u8, align_log2: u8) {
        if kind == KIND_NEW && align_log2 == 0 {
            self.short(NEW, block, size, usable);
        } else {
            self.copy().alloc_general(kind, align_log2, block, size, usable);
        }
    }

    /// A block is about to be resized. Told before the manager is called.
    #[inline(always)]
    pub fn resize_begin(&mut self, block: usize) {
        self.copy().resize_begin_general(block);
    }

    #[inline(never)]
    fn resize_begin_general(mut self, block: usize) {
        self.tell(&Event::of(RESIZE_BEGIN, block));
    }

    /// The block of this thread's last [`Producer::resize_begin`] is now `block`; 0: the manager gave null. Told after
    /// the manager answered, in each case.
    #[inline(always)]
    pub fn resize_end(&mut self, block: usize, size: usize, usable: usize) {
        self.copy().resize_end_general(block, size, usable);
    }

    #[inline(never)]
    fn resize_end_general(mut self, block: usize, size: usize, usable: usize) {
        let event = Event {
            data: Some((size as u64).min(DATA_MASK)),
            told: Some(usable),
            ..self.event(RESIZE_END, block)
        };
        self.tell(&event);
    }

    /// A call for a new block gave nothing.
    #[inline(always)]
    pub fn failed(&mut self, kind: u8, size: usize) {
        self.copy().failed_general(kind, size);
    }

    #[cold]
    #[inline(never)]
    fn failed_general(mut self, kind: u8, size: usize) {
        let word = tagged(ALLOC_LONG, u64::from(kind & 15) << ADDRESS_BITS);
        self.tell(&Event { word, data: Some((size as u64).min(DATA_MASK)), ..self.event(ALLOC_LONG, 0) });
    }

    /// How long this thread's last [`Producer::free`] took, ns. Told after it, in each case when the tool wants
    /// latencies: the reader waits for it.
    #[inline(always)]
    pub fn took(&mut self, ns: u32) {
        self.copy().took_general(ns);
    }

    #[inline(never)]
    fn took_general(mut self, ns: u32) {
        self.send(&Message::Note(&[noted(note::LATENCY, u64::from(ns))]));
    }

    /// What call stack a number stands for: return addresses, innermost first. At most [`FRAMES`] are kept, and what
    /// fits into a block.
    #[inline(always)]
    pub fn define_site(&mut self, site: u32, frames: &[usize]) {
        self.copy().define_site_general(site, frames);
    }

    #[cold]
    #[inline(never)]
    fn define_site_general(mut self, site: u32, frames: &[usize]) {
        let frames = &frames[..frames.len().min(FRAMES).min(self.core.geometry().block_words() - 1)];
        let mut words = [0u64; FRAMES + 1];
        words[0] = noted(note::SITE, (frames.len() as u64) << 32 | u64::from(site));
        for (word, frame) in words[1..].iter_mut().zip(frames) {
            *word = tagged(crate::word::DATA, *frame as u64 & DATA_MASK);
        }
        self.send(&Message::Note(&words[..frames.len() + 1]));
    }

    #[inline(always)]
    fn short(&mut self, tag: u64, block: usize, size: usize, usable: usize) {
        let word = tagged(tag, (size as u64) << ADDRESS_BITS | block as u64 >> 3);
        let told = self.site == 0
            && self.latency_ns == 0
            && size < PREDICTED
            && plain(block)
            && self.write_short(word, |state| usize::from(state.usable[size].get()) == usable);
        if !told {
            self.copy().alloc_general(if tag == NEW { KIND_NEW } else { 0 }, 0, block, size, usable);
        }
    }

    /// The short way: one word, if `fits`. A signal handler that tells an event meanwhile finds that the state has been
    /// entered, so nothing changes between the questions and the answer.
    #[inline(always)]
    fn write_short(&self, word: u64, fits: impl FnOnce(&State) -> bool) -> bool {
        let state = self.state;
        if !state.enter() {
            return false;
        }
        let at = state.at.get();
        let told = self.core.gate() == state.fast.get() && fits(state) && at < state.limit.get();
        if told {
            // SAFETY: `at` is before the end of its block, so within the ring.
            unsafe { (*at).store(word | state.lap.get(), Ordering::Release) };
            state.at.set(at.wrapping_add(1));
        }
        state.leave();
        told
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
        self.tell(&Event { word, data, predicted: Some((size, usable)), ..self.event(ALLOC, block) });
    }

    #[cold]
    #[inline(never)]
    fn free_general(mut self, block: usize, delete: bool) {
        let mut event = Event::of(FREE, block);
        if delete {
            event.word |= FREE_DELETE;
        }
        self.tell(&event);
    }

    #[inline(always)]
    fn event(&self, tag: u64, block: usize) -> Event {
        Event { site: self.site, latency_ns: self.latency_ns, ..Event::of(tag, block) }
    }

    /// The general way, where the ring is the thread's own and there is nothing to wait for.
    #[inline(always)]
    fn tell(&mut self, event: &Event) {
        if !self.core.tell_now(self.state, event) {
            self.send(&Message::Event(event));
        }
    }

    /// The general way: into the own ring, or the shared one.
    #[cold]
    #[inline(never)]
    fn send(&mut self, message: &Message<'_>) {
        let _errno = Errno::keep();
        let core = self.core;
        loop {
            let state = self.state;
            if core.attached.load(Ordering::Relaxed) == stage::DETACHED {
                W::set(0);
                return;
            }
            // SAFETY: producers exist only when attached.
            let life = unsafe { &*core.life() };
            if !state.wiped() {
                if state.entered() {
                    // This is a signal handler, which has interrupted the telling of another event.
                    // SAFETY: the state is not wiped.
                    let who = unsafe { state.control() }.owner.0.who.load(Ordering::Relaxed);
                    return core.send_shared(life, state.thread.get(), who as u32, message);
                }
                if core.send_own(life, state, message).is_err() {
                    core.detach();
                    W::set(0);
                }
                return;
            }
            let word = W::get();
            if mark::is_shared(word) && core.current(word) {
                return core.send_shared(life, mark::thread(word), mark::tid(word), message);
            }
            if word & mark::OWN != 0
                && let Some(state) = core.state_of(word)
                // SAFETY: states stay mapped.
                && let state = unsafe { &*state }
                && !state.wiped()
            {
                // Another handle, within this event, has registered meanwhile.
                self.state = state;
                continue;
            }
            // The child of a fork.
            W::set(mark::REGISTERING);
            let word = core.register(word);
            W::set(word);
            match core.state_of(word) {
                // SAFETY: states stay mapped.
                Some(state) => self.state = unsafe { &*state },
                None => return,
            }
        }
    }
}
