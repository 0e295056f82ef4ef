//! Telling one event: the general way.
//!
//! Whoever writes to a ring has marked its state busy, so that a signal handler that interrupts it tells its own
//! events through the shared ring instead of in between.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::layout::{Process, gate};
use crate::lock::lock;
use crate::rings::Core;
use crate::state::{Life, State};
use crate::sys;
use crate::wait::Detached;
use crate::word::{
    ADDRESS_MASK, DATA, LAP, LONGEST, PREDICTED, TID_BITS, address_rest, note, noted, prefix, prefixed,
    tagged,
};

/// What one event consists of.
#[derive(Clone, Copy)]
pub(crate) struct Event {
    /// The word of the event itself.
    pub word: u64,
    /// The `DATA` after it.
    pub data: Option<u64>,
    /// A usable size that is told in each case, unless it is 0.
    pub told: Option<usize>,
    /// Size and usable size: told unless the table has it.
    pub predicted: Option<(usize, usize)>,
    /// What does not fit of the address.
    pub rest: u64,
    /// 0: none.
    pub site: u32,
    /// 0: none.
    pub latency_ns: u32,
}

/// What is told.
#[derive(Clone, Copy)]
pub(crate) enum Message<'a> {
    /// With a number, where events have numbers.
    Event(&'a Event),
    /// Words of a note, without one.
    Note(&'a [u64]),
}

impl Event {
    #[inline(always)]
    pub fn of(tag: u64, block: usize) -> Event {
        Event {
            word: tagged(tag, block as u64 >> 3 & ADDRESS_MASK),
            data: None,
            told: None,
            predicted: None,
            rest: address_rest(block),
            site: 0,
            latency_ns: 0,
        }
    }

    /// Writes its words, without lap bits, from `words[1]` on; gives the end. The first is left for the number. Has
    /// the table of usable sizes learn, so the words must be told.
    #[inline(always)]
    fn words(&self, state: &State, time_ns: Option<u64>, words: &mut [u64; LONGEST]) -> usize {
        let mut end = 1;
        let mut push = |word| {
            words[end] = word;
            end += 1;
        };
        if let Some(ns) = time_ns {
            push(prefixed(prefix::TIME, ns));
        }
        if self.site != 0 {
            push(prefixed(prefix::SITE, u64::from(self.site)));
        }
        if self.latency_ns != 0 {
            push(prefixed(prefix::LATENCY, u64::from(self.latency_ns)));
        }
        if self.rest != 0 {
            push(prefixed(prefix::ADDRESS, self.rest));
        }
        if let Some((size, usable)) = self.predicted {
            if predict(state, size, usable) {
                push(prefixed(prefix::USABLE, usable as u64));
            }
        } else if let Some(usable) = self.told {
            push(prefixed(prefix::USABLE, usable as u64));
        }
        push(self.word);
        if let Some(data) = self.data {
            push(tagged(DATA, data));
        }
        end
    }
}

/// Whether a usable size must be told. The reader learns with the same rule.
#[inline(always)]
fn predict(state: &State, size: usize, usable: usize) -> bool {
    let Some(entry) = state.usable.get(size) else { return usable != 0 };
    if usize::from(entry.get()) == usable {
        return false;
    }
    entry.set(u16::try_from(usable).unwrap_or(0));
    true
}

const _: () = assert!(PREDICTED < 1 << 16);

impl Core {
    /// Tells an event by a ring that is the caller's, if there is nothing to wait for and no time to note.
    #[inline(always)]
    pub(crate) fn tell_now(&self, state: &State, event: &Event) -> bool {
        if !state.enter() {
            return false;
        }
        // A wiped state has seen no gate.
        let now = self.gate() == state.seen.get() && state.simple.get() && state.room() >= LONGEST;
        if now {
            let mut words = [0; LONGEST];
            let end = event.words(state, None, &mut words);
            self.write_event(state, &mut words, end);
        }
        state.leave();
        now
    }

    /// Writes the words of an event whose room is made; the first gets the number, where events have numbers.
    #[inline(always)]
    fn write_event(&self, state: &State, words: &mut [u64; LONGEST], end: usize) {
        if state.seen.get() & gate::SEQUENCED == 0 {
            write(state, &words[1..end]);
            return;
        }
        // SAFETY: who writes has a ring and a process.
        let (busy, sequence) = unsafe { (&state.control().owner.0.busy, &(*state.process.get()).sequence.0) };
        // Before the number, so that who sees the number taken sees this; and gone only when the words are there.
        busy.store(1, Ordering::Relaxed);
        words[0] = prefixed(prefix::SEQ, sequence.fetch_add(1, Ordering::AcqRel));
        write(state, &words[..end]);
        busy.store(0, Ordering::Release);
    }

    /// Tells by the ring that threads of the process share.
    pub(crate) fn send_shared(&self, life: &Life, thread: u32, tid: u32, message: &Message<'_>) {
        // SAFETY: attached, as there is a life.
        let left_out = unsafe { &self.mapped_header().registry.0.events_left_out };
        let holder = holder(thread, tid);
        // If it is held by this very thread, then a signal handler has interrupted this.
        let state =
            if life.shared_lock.load(Ordering::Relaxed) == holder { None } else { self.shared_state(life) };
        let Some(state) = state else {
            left_out.fetch_add(1, Ordering::Relaxed);
            return;
        };
        if !lock(&life.shared_lock, holder, life.pid.load(Ordering::Relaxed)) {
            left_out.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let mut done = Ok(());
        if state.thread.get() != thread {
            let speaker = u64::from(thread) << TID_BITS | u64::from(tid) & ((1 << TID_BITS) - 1);
            done = self.send_own(life, state, &Message::Note(&[noted(note::THREAD, speaker)]));
            state.thread.set(thread);
        }
        if done.is_ok() {
            done = self.send_own(life, state, message);
        }
        life.shared_lock.store(0, Ordering::Release);
        if done.is_err() {
            self.detach();
        }
    }

    /// Tells by a ring that is the caller's.
    pub(crate) fn send_own(&self, life: &Life, state: &State, message: &Message<'_>) -> Result<(), Detached> {
        // SAFETY: a ring's owner has registered its process; entries stay mapped.
        let process = unsafe { &*life.process.load(Ordering::Acquire) };
        state.enter();
        let done = self.send_busy(process, state, message);
        state.leave();
        done
    }

    fn send_busy(&self, process: &Process, state: &State, message: &Message<'_>) -> Result<(), Detached> {
        match message {
            Message::Event(event) => {
                let passed = process.gate.0.load(Ordering::Acquire) != state.seen.get();
                if passed {
                    self.pass_gate(process, state)?;
                }
                self.make_room(state, LONGEST)?;
                // SAFETY: attached.
                let header = unsafe { self.mapped_header() };
                let time_ns = (passed || header.flags().event_time)
                    .then(|| sys::now_ns().saturating_sub(header.created_ns.load(Ordering::Relaxed)));
                let mut words = [0; LONGEST];
                let end = event.words(state, time_ns, &mut words);
                self.write_event(state, &mut words, end);
            }
            // Not at the gate: the latency of a free follows the free.
            Message::Note(words) => {
                self.make_room(state, words.len())?;
                write(state, words);
            }
        }
        Ok(())
    }
}

/// Who holds the lock of the shared ring.
fn holder(thread: u32, tid: u32) -> u32 {
    if tid == 0 { 1 << 31 | thread } else { tid }
}

/// Fills what is left of a block.
pub(crate) fn pad(state: &State) {
    loop {
        let room = state.room();
        if room == 0 {
            return;
        }
        let mut pads = [noted(note::PAD, 0); 16];
        let now = room.min(pads.len());
        pads[0] = noted(note::PAD, now as u64 - 1);
        write(state, &pads[..now]);
    }
}

/// Writes a group whose room is made. The first word is written last: who sees it sees them all.
#[inline(always)]
fn write(state: &State, words: &[u64]) {
    debug_assert!(words.len() <= state.room() && words.iter().all(|word| word & LAP == 0));
    let at = state.at.get();
    let lap = state.lap.get();
    // SAFETY: the caller has made room for the group.
    unsafe {
        for (n, word) in words.iter().enumerate().skip(1) {
            (*at.add(n)).store(word | lap, Ordering::Relaxed);
        }
        (*at.cast::<AtomicU64>()).store(words[0] | lap, Ordering::Release);
    }
    state.at.set(at.wrapping_add(words.len()));
}
