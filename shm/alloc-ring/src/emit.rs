//! Recording one event: the slow path.
//!
//! A thread that writes to a ring has marked its state busy, so a signal handler that interrupts it records its own
//! events in the shared ring instead of between the thread's words.

use heaptoll_assertions::assert_internal;

use crate::atomic::Ordering;
use crate::attachment::Attachment;
use crate::layout::{Process, gate};
use crate::lock::lock;
use crate::state::{ProcessLocal, State};
use crate::sys;
use crate::wait::Detached;
use crate::word::{
    ADDRESS_MASK, DATA, DATA_MASK, LONGEST, PREDICTED, TID_BITS, address_rest, note, note_word, prefix,
    prefix_word, tagged,
};

/// The parts of one event.
#[derive(Clone, Copy)]
pub(crate) struct Event {
    /// The word of the event itself.
    pub word: u64,
    /// The `DATA` after it.
    pub data: Option<u64>,
    /// A usable size that is always recorded.
    pub usable: Option<usize>,
    /// Size and usable size: recorded unless the table predicts it.
    pub predicted: Option<(usize, usize)>,
    /// The bits of the address that do not fit.
    pub rest: u64,
    /// 0: none.
    pub site: u32,
    /// 0: none.
    pub latency_ns: u32,
}

/// What a producer writes to a ring.
#[derive(Clone, Copy)]
pub(crate) enum Message<'a> {
    /// With a sequence number, if events have numbers.
    Event(&'a Event),
    /// The words of a note, without a number.
    Note(&'a [u64]),
    /// The return addresses of a call stack, and what number stands for it.
    Site(u32, &'a [usize]),
}

impl Event {
    #[inline(always)]
    pub fn new(tag: u64, block: usize) -> Event {
        Event {
            word: tagged(tag, block as u64 >> 3 & ADDRESS_MASK),
            data: None,
            usable: None,
            predicted: None,
            rest: address_rest(block),
            site: 0,
            latency_ns: 0,
        }
    }

    /// Encodes it, without lap bits, from `words[1]` on; returns the end. The first word is left for the number.
    /// Updates the table of usable sizes, so the words must then be written.
    #[inline(always)]
    fn words(&self, state: &State, time_ns: Option<u64>, words: &mut [u64; LONGEST]) -> usize {
        let mut end = 1;
        let mut push = |word| {
            words[end] = word;
            end += 1;
        };
        if let Some(ns) = time_ns {
            push(prefix_word(prefix::TIME, ns));
        }
        if self.site != 0 {
            push(prefix_word(prefix::SITE, u64::from(self.site)));
        }
        if self.latency_ns != 0 {
            push(prefix_word(prefix::LATENCY, u64::from(self.latency_ns)));
        }
        if self.rest != 0 {
            push(prefix_word(prefix::ADDRESS, self.rest));
        }
        if let Some((size, usable)) = self.predicted {
            if predict(state, size, usable) {
                push(prefix_word(prefix::USABLE, usable as u64));
            }
        } else if let Some(usable) = self.usable {
            push(prefix_word(prefix::USABLE, usable as u64));
        }
        push(self.word);
        if let Some(data) = self.data {
            push(tagged(DATA, data));
        }
        end
    }
}

/// Whether a usable size must be recorded. The reader updates its table by the same rule.
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

impl Attachment {
    /// Records an event in the caller's own ring, if there is nothing to wait for and no time to record.
    #[inline(always)]
    pub(crate) fn emit_now(&self, state: &State, event: &Event) -> bool {
        if !state.enter() {
            return false;
        }
        // A wiped state has `seen` 0, which no gate equals.
        let now = self.gate() == state.seen.get() && state.simple.get() && state.free_words() >= LONGEST;
        let mut stops = None;
        if now {
            let mut words = [0; LONGEST];
            let end = event.words(state, None, &mut words);
            // SAFETY: `end` is from 2 to `LONGEST`, and the block has that many free words, as checked above.
            stops = unsafe { Attachment::write_event(state, &mut words, end) };
        }
        state.leave();
        self.stop(stops);
        now
    }

    /// Waits for the tool if the last event before its stop was recorded.
    #[inline(always)]
    fn stop(&self, stops: Option<&Process>) {
        if let Some(process) = stops {
            self.wait_for_tool(process, gate::STOPPED, true);
        }
    }

    /// Writes the words of an event for which the block has space; the first becomes the number, if events have
    /// numbers. Gives the process if that is to stop now.
    ///
    /// # Safety
    /// `end` is above 1, and the current block has that many free words.
    #[inline(always)]
    unsafe fn write_event<'a>(state: &State, words: &mut [u64; LONGEST], end: usize) -> Option<&'a Process> {
        if state.seen.get() & gate::SEQUENCED == 0 {
            // SAFETY: the caller has established that `words[1..end]` is not empty and fits.
            unsafe { state.write(&words[1..end]) };
            return None;
        }
        // SAFETY: `seen` is a gate that this state has passed, so it is not wiped: `begin` has set its ring and its
        // process, which is in the mapping that stays.
        let (busy, process) = unsafe { (&state.control().owner.0.busy, &*state.process.get()) };
        // Set before the number is taken, so that a reader that sees the number taken sees this; cleared only when the
        // words are written.
        busy.store(1, Ordering::Relaxed);
        let number = process.sequence.0.fetch_add(1, Ordering::AcqRel);
        words[0] = prefix_word(prefix::SEQ, number);
        // SAFETY: the caller has established that there are `end` words and that they fit.
        unsafe { state.write(&words[..end]) };
        busy.store(0, Ordering::Release);
        (number.wrapping_add(1) == process.stop_after.load(Ordering::Relaxed)).then_some(process)
    }

    /// Writes a message to the ring that threads of the process share.
    pub(crate) fn send_shared(&self, local: &ProcessLocal, thread: u32, tid: u32, message: &Message<'_>) {
        // SAFETY: the caller has `local`, which `map` sets when it attaches.
        let left_out = unsafe { &self.mapped_header().registry.0.events_left_out };
        let holder = holder(thread, tid);
        // If this very thread holds the lock, this is a signal handler that has interrupted it.
        let state =
            if local.shared_lock.load(Ordering::Relaxed) == holder { None } else { self.shared_state(local) };
        let Some(state) = state else {
            left_out.fetch_add(1, Ordering::Relaxed);
            return;
        };
        if !lock(&local.shared_lock, holder, local.pid.load(Ordering::Relaxed)) {
            left_out.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let mut done = Ok(());
        if state.thread.get() != thread {
            let writer = u64::from(thread) << TID_BITS | u64::from(tid) & ((1 << TID_BITS) - 1);
            done = self.send_own(local, state, &Message::Note(&[note_word(note::THREAD, writer)]));
            state.thread.set(thread);
        }
        if done.is_ok() {
            done = self.send_own(local, state, message);
        }
        assert_internal!(
            local.shared_lock.load(Ordering::Relaxed) == holder,
            "the shared ring is written by the holder of its lock"
        );
        local.shared_lock.store(0, Ordering::Release);
        if done.is_err() {
            self.detach();
        }
    }

    /// Writes a message to the caller's own ring.
    pub(crate) fn send_own(
        &self,
        local: &ProcessLocal,
        state: &State,
        message: &Message<'_>,
    ) -> Result<(), Detached> {
        // SAFETY: the caller has a ring, so `register_process` has set `process`; entries stay mapped.
        let process = unsafe { &*local.process.load(Ordering::Acquire) };
        state.enter();
        let done = self.send_busy(process, state, message);
        state.leave();
        self.stop(done?);
        Ok(())
    }

    /// Gives the process if that is to stop now.
    fn send_busy<'a>(
        &self,
        process: &'a Process,
        state: &State,
        message: &Message<'_>,
    ) -> Result<Option<&'a Process>, Detached> {
        match message {
            Message::Event(event) => {
                let passed = process.gate.0.load(Ordering::Acquire) != state.seen.get();
                if passed {
                    self.pass_gate(process, state)?;
                }
                self.ensure_space(state, LONGEST)?;
                // SAFETY: the caller has a ring in the mapping, so this process is attached.
                let header = unsafe { self.mapped_header() };
                let time_ns = (passed || header.flags().event_time)
                    .then(|| sys::now_ns().saturating_sub(header.created_ns.load(Ordering::Relaxed)));
                let mut words = [0; LONGEST];
                let end = event.words(state, time_ns, &mut words);
                // SAFETY: `end` is from 2 to `LONGEST`, for which `ensure_space` has made space.
                Ok(unsafe { Attachment::write_event(state, &mut words, end) })
            }
            // No gate: the latency of a free follows the free directly.
            Message::Note(words) => {
                self.ensure_space(state, words.len())?;
                // SAFETY: a note has a first word, and `ensure_space` has made space for all of them.
                unsafe { state.write(words) };
                Ok(None)
            }
            Message::Site(site, frames) => {
                self.ensure_space(state, 1 + frames.len())?;
                let head = note_word(note::SITE, (frames.len() as u64) << 32 | u64::from(*site));
                let rest = frames.iter().map(|frame| tagged(DATA, *frame as u64 & DATA_MASK));
                // SAFETY: `ensure_space` has made space for the head and the frames.
                unsafe { state.write_group(head, rest) };
                Ok(None)
            }
        }
    }
}

/// The identity with which a thread holds the lock of the shared ring.
fn holder(thread: u32, tid: u32) -> u32 {
    if tid == 0 { 1 << 31 | thread } else { tid }
}
