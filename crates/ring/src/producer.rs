//! Telling one event.
//!
//! The short way is for a process of one thread whose tool wants nothing special: the gate is as it was, the usable
//! size is the one predicted, the block has room. One comparison of the gate stands for all conditions that seldom
//! change: where the short way must not be taken, [`State::fast`] is a value that no gate has. Everything else goes
//! the general way, out of line.

use core::marker::PhantomData;
use core::sync::atomic::{AtomicU64, Ordering, compiler_fence};

use crate::attach::lock;
use crate::layout::{FACTS_BYTES, Process, SHARED, gate};
use crate::rings::{Core, FactsHook, ThreadWord, mark};
use crate::state::{Life, State};
use crate::sys::{self, Errno};
use crate::word::{
    ADDRESS_MASK, ALLOC, ALLOC_LONG, DATA, DATA_MASK, FREE, FREE_DELETE, LAP, LONGEST, PREDICTED,
    RESIZE_BEGIN, RESIZE_END, SHORT_SIZES, TID_BITS, address_rest, note, noted, prefix, prefixed, tagged,
};

/// How long a producer sleeps before it asks again whether the tool lives, ns.
const PATIENCE_NS: u64 = 10_000_000;
/// How often a producer looks before it sleeps.
const SPINS: u32 = 200;
/// How long the tool of another namespace may stand still before it counts as gone, ns.
const BEAT_NS: u64 = 2_000_000_000;

/// The words of one event, without lap bits. The first is kept free for the sequence number.
struct Group {
    words: [u64; LONGEST],
    count: usize,
}

impl Group {
    #[inline(always)]
    fn new() -> Group {
        Group { words: [0; LONGEST], count: 1 }
    }

    #[inline(always)]
    fn push(&mut self, word: u64) {
        if let Some(place) = self.words.get_mut(self.count) {
            *place = word;
            self.count += 1;
        }
    }
}

/// The event will go nowhere: nobody reads.
struct Detached;

/// The calling thread's way into its ring, for one event.
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
        let state = self.state;
        let gate = self.gate();
        if self.site == 0
            && self.latency_ns == 0
            && gate == state.fast.load(Ordering::Relaxed)
            && size < PREDICTED
            && usize::from(state.usable[size].get()) == usable
            && address_rest(block) == 0
            && state.at.get() != state.limit.get()
        {
            self.write(gate, tagged(ALLOC, (size as u64) << 44 | block as u64 >> 3));
        } else {
            self.alloc_general(block, size, usable);
        }
    }

    /// A block is about to be given back. Told before the manager is called.
    #[inline(always)]
    pub fn free(&mut self, block: usize, delete: bool) {
        let state = self.state;
        let gate = self.gate();
        let how = if delete { FREE_DELETE } else { 0 };
        if gate == state.fast.load(Ordering::Relaxed)
            && address_rest(block) == 0
            && state.at.get() != state.limit.get()
        {
            self.write(gate, tagged(FREE, how | block as u64 >> 3));
        } else {
            self.free_general(block, how);
        }
    }

    /// Any call for a new block gave `block`; `kind` is below 16. Told after the manager answered.
    pub fn alloc_long(&mut self, block: usize, size: usize, usable: usize, kind: u8, align_log2: u8) {
        let mut group = Group::new();
        self.prefixes(&mut group, block);
        self.usable(&mut group, size, usable);
        let about = u64::from(kind & 15) << 44 | u64::from(align_log2 & 63) << 48;
        group.push(tagged(ALLOC_LONG, about | block as u64 >> 3 & ADDRESS_MASK));
        group.push(tagged(DATA, size as u64 & DATA_MASK));
        self.tell(group, Some((size, usable)));
    }

    /// A block is about to be resized. Told before the manager is called.
    pub fn resize_begin(&mut self, block: usize) {
        let mut group = Group::new();
        if address_rest(block) != 0 {
            group.push(prefixed(prefix::ADDRESS, address_rest(block)));
        }
        group.push(tagged(RESIZE_BEGIN, block as u64 >> 3 & ADDRESS_MASK));
        self.tell(group, None);
    }

    /// The block of this thread's last [`Producer::resize_begin`] is now `block`; 0: the manager gave null. Told after
    /// the manager answered, in each case.
    pub fn resize_end(&mut self, block: usize, size: usize, usable: usize) {
        let mut group = Group::new();
        self.prefixes(&mut group, block);
        if usable != 0 {
            group.push(prefixed(prefix::USABLE, usable as u64));
        }
        group.push(tagged(RESIZE_END, block as u64 >> 3 & ADDRESS_MASK));
        group.push(tagged(DATA, (size as u64).min(DATA_MASK)));
        self.tell(group, None);
    }

    /// A call for a new block gave nothing.
    pub fn failed(&mut self, kind: u8, size: usize) {
        let mut group = Group::new();
        self.prefixes(&mut group, 0);
        group.push(tagged(ALLOC_LONG, u64::from(kind & 15) << 44));
        group.push(tagged(DATA, (size as u64).min(DATA_MASK)));
        self.tell(group, None);
    }

    /// How long this thread's last [`Producer::free`] took, ns. Told after it, in each case when the tool wants
    /// latencies: the reader waits for it.
    pub fn took(&mut self, ns: u32) {
        self.note(&[noted(note::LATENCY, u64::from(ns))]);
    }

    /// What call stack a number stands for: return addresses, innermost first. At most [`FRAMES`] are kept.
    pub fn define_site(&mut self, site: u32, frames: &[usize]) {
        // SAFETY: producers exist only when attached.
        let block_log2 = unsafe { self.core.mapped_header().block_log2.load(Ordering::Relaxed) };
        let frames = &frames[..frames.len().min(FRAMES).min((1 << block_log2) - 2)];
        let mut words = [0u64; FRAMES + 1];
        words[0] = noted(note::SITE, (frames.len() as u64) << 32 | u64::from(site));
        for (word, frame) in words[1..].iter_mut().zip(frames) {
            *word = tagged(DATA, *frame as u64 & DATA_MASK);
        }
        self.note(&words[..frames.len() + 1]);
    }

    #[inline(always)]
    fn gate(&self) -> u32 {
        // SAFETY: a producer exists only once this process, or the one it was forked from, has registered; gates lie
        // in the mapping, which stays.
        unsafe { (*self.core.gate.load(Ordering::Relaxed)).load(Ordering::Relaxed) }
    }

    /// The short way: one word, where there is room.
    #[inline(always)]
    fn write(&self, gate: u32, word: u64) {
        let state = self.state;
        state.fast.store(gate::BUSY, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        let at = state.at.get();
        // SAFETY: `at` is before `limit`, so within the ring.
        unsafe { (*at).store(word | state.lap.get(), Ordering::Release) };
        state.at.set(at.wrapping_add(1));
        compiler_fence(Ordering::SeqCst);
        state.fast.store(gate, Ordering::Relaxed);
    }

    #[cold]
    #[inline(never)]
    fn alloc_general(&mut self, block: usize, size: usize, usable: usize) {
        if size >= SHORT_SIZES {
            return self.alloc_long(block, size, usable, 0, 0);
        }
        let mut group = Group::new();
        self.prefixes(&mut group, block);
        self.usable(&mut group, size, usable);
        group.push(tagged(ALLOC, (size as u64) << 44 | block as u64 >> 3 & ADDRESS_MASK));
        self.tell(group, Some((size, usable)));
    }

    #[cold]
    #[inline(never)]
    fn free_general(&mut self, block: usize, how: u64) {
        let mut group = Group::new();
        if address_rest(block) != 0 {
            group.push(prefixed(prefix::ADDRESS, address_rest(block)));
        }
        group.push(tagged(FREE, how | block as u64 >> 3 & ADDRESS_MASK));
        self.tell(group, None);
    }

    fn prefixes(&self, group: &mut Group, block: usize) {
        if self.site != 0 {
            group.push(prefixed(prefix::SITE, u64::from(self.site)));
        }
        if self.latency_ns != 0 {
            group.push(prefixed(prefix::LATENCY, u64::from(self.latency_ns)));
        }
        if address_rest(block) != 0 {
            group.push(prefixed(prefix::ADDRESS, address_rest(block)));
        }
    }

    /// The place of the usable size in a group: whether it must be told is known once the ring is.
    fn usable(&self, group: &mut Group, _size: usize, usable: usize) {
        group.push(prefixed(prefix::USABLE, usable as u64));
    }

    fn tell(&mut self, mut group: Group, predicted: Option<(usize, usize)>) {
        let words = group.count;
        self.send(Message { words: &mut group.words[..words], event: true, predicted });
    }

    fn note(&mut self, words: &[u64]) {
        let mut copy = [0u64; FRAMES + 2];
        copy[1..=words.len()].copy_from_slice(words);
        self.send(Message { words: &mut copy[..=words.len()], event: false, predicted: None });
    }

    /// The general way: into the own ring, or the shared one.
    #[cold]
    #[inline(never)]
    fn send(&mut self, mut message: Message<'_>) {
        let _errno = Errno::keep();
        let core = self.core;
        loop {
            let state = self.state;
            // SAFETY: producers exist only when attached.
            let life = unsafe { &*core.life() };
            if state.fast.load(Ordering::Relaxed) == gate::BUSY {
                // A signal handler has interrupted the telling of another event.
                // SAFETY: a state that is busy is not wiped.
                let who = unsafe { state.control() }.owner.0.who.load(Ordering::Relaxed) as u32;
                return core.send_shared(life, state.thread.get(), who, &mut message);
            }
            if core.attached.load(Ordering::Relaxed) == crate::rings::stage::DETACHED {
                W::set(0);
                return;
            }
            if !state.wiped() {
                if core.send_in(life, state, &mut message).is_err() {
                    core.detach();
                    W::set(0);
                }
                return;
            }
            let word = W::get();
            if word & (mark::SHARED | mark::OWN) == mark::SHARED && core.current(word) {
                let tid = (word >> 8) as u32 & ((1 << TID_BITS) - 1);
                return core.send_shared(life, (word >> 32) as u32, tid, &mut message);
            }
            // The child of a fork.
            W::set(mark::REGISTERING);
            let word = core.register();
            W::set(word);
            if word & mark::OWN != 0 {
                // SAFETY: a word with this mark is the address of a state in a mapping that stays.
                self.state = unsafe { &*((word - mark::OWN) as *const State) };
            } else if word & mark::SHARED != 0 {
                self.state = &life.nobody;
            } else {
                return;
            }
        }
    }
}

/// Most frames of a call stack.
pub const FRAMES: usize = 256;

/// What is to be written: the first word is kept for the sequence number.
struct Message<'a> {
    words: &'a mut [u64],
    event: bool,
    /// Size and usable size of an event that the table of usable sizes may stand in for.
    predicted: Option<(usize, usize)>,
}

impl Core {
    /// Writes to the ring that threads of the process share.
    fn send_shared(&self, life: &Life, thread: u32, tid: u32, message: &mut Message<'_>) {
        let state = self.shared_state(life, thread);
        // SAFETY: attached.
        let left_out = unsafe { &self.mapped_header().registry.0.events_left_out };
        let Some(state) = state else {
            left_out.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let me = thread.wrapping_add(1);
        if life.shared_lock.load(Ordering::Relaxed) == me {
            // Interrupted in the middle of this.
            left_out.fetch_add(1, Ordering::Relaxed);
            return;
        }
        lock(&life.shared_lock, me);
        let mut done = Ok(());
        if state.thread.get() != thread {
            let speaker = u64::from(thread) << TID_BITS | u64::from(tid) & ((1 << TID_BITS) - 1);
            let mut words = [0, noted(note::THREAD, speaker)];
            done =
                self.send_in(life, state, &mut Message { words: &mut words, event: false, predicted: None });
            state.thread.set(thread);
        }
        if done.is_ok() {
            done = self.send_in(life, state, message);
        }
        life.shared_lock.store(0, Ordering::Release);
        if done.is_err() {
            self.detach();
        }
    }

    fn shared_state(&self, life: &Life, _thread: u32) -> Option<&State> {
        let known = life.shared.load(Ordering::Acquire);
        if !known.is_null() {
            // SAFETY: states stay mapped.
            return Some(unsafe { &*known });
        }
        let made = self.open_shared(life)?;
        // SAFETY: as above.
        Some(unsafe { &*made })
    }

    /// Writes to a ring that is the caller's.
    fn send_in(&self, life: &Life, state: &State, message: &mut Message<'_>) -> Result<(), Detached> {
        // SAFETY: a ring's owner has registered its process; entries stay mapped.
        let process = unsafe { &*life.process.load(Ordering::Acquire) };
        let idle = state.fast.load(Ordering::Relaxed);
        state.fast.store(gate::BUSY, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        let done = self.send_busy(process, state, message);
        compiler_fence(Ordering::SeqCst);
        state.fast.store(if done.is_ok() { self.idle(state) } else { idle }, Ordering::Relaxed);
        done
    }

    /// What [`State::fast`] is while nothing is written.
    fn idle(&self, state: &State) -> u32 {
        // SAFETY: attached.
        let event_time = unsafe { self.mapped_header().flags().event_time };
        // SAFETY: the state is not wiped.
        let shared = unsafe { state.control() }.owner.0.thread.load(Ordering::Relaxed) == SHARED;
        if state.seen.get() & gate::SEQUENCED != 0 || event_time || shared { 0 } else { state.seen.get() }
    }

    fn send_busy(&self, process: &Process, state: &State, message: &mut Message<'_>) -> Result<(), Detached> {
        if process.gate.0.load(Ordering::Acquire) != state.seen.get() {
            self.pass_gate(process, state)?;
            self.write_time(process, state)?;
        // SAFETY: attached.
        } else if message.event && unsafe { self.mapped_header().flags().event_time } {
            self.write_time(process, state)?;
        }
        if let Some((size, usable)) = message.predicted {
            predict(state, message, size, usable);
        }
        self.make_room(process, state, message.words.len())?;
        if message.event && state.seen.get() & gate::SEQUENCED != 0 {
            // SAFETY: the state is not wiped.
            let busy = unsafe { &state.control().owner.0.busy };
            busy.store(1, Ordering::Relaxed);
            message.words[0] = prefixed(prefix::SEQ, process.sequence.0.fetch_add(1, Ordering::AcqRel));
            write(state, message.words);
            busy.store(0, Ordering::Release);
        } else {
            write(state, &message.words[1..]);
        }
        Ok(())
    }

    fn write_time(&self, process: &Process, state: &State) -> Result<(), Detached> {
        self.make_room(process, state, 1)?;
        // SAFETY: attached.
        let created = unsafe { self.mapped_header().created_ns.load(Ordering::Relaxed) };
        write(state, &[noted(note::TIME, sys::now_ns().saturating_sub(created))]);
        Ok(())
    }

    /// Does what the gate asks for, and remembers it.
    fn pass_gate(&self, process: &Process, state: &State) -> Result<(), Detached> {
        let mut watch = Watch::new();
        loop {
            let gate = process.gate.0.load(Ordering::Acquire);
            if gate & gate::DISMISSED != 0 {
                return Err(Detached);
            }
            if gate & gate::FACTS != 0 && self.answer(process) {
                continue;
            }
            if gate & gate::PAUSE == 0 {
                state.seen.set(gate);
                return Ok(());
            }
            sys::futex_wait(&process.gate.0, gate, PATIENCE_NS);
            watch.look(self)?;
        }
    }

    /// Answers the tool's question about this process. False when another thread is at it.
    fn answer(&self, process: &Process) -> bool {
        if process.facts_lock.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            return false;
        }
        let asked = process.facts_asked.load(Ordering::Acquire);
        let hook = self.facts.load(Ordering::Acquire);
        let mut bytes = [0u8; FACTS_BYTES];
        let length = if hook.is_null() {
            0
        } else {
            // SAFETY: only `answer_with` stores here, and only functions of this type.
            let hook: FactsHook = unsafe { core::mem::transmute(hook) };
            hook(&mut bytes).min(FACTS_BYTES)
        };
        for (to, from) in process.facts.0.iter().zip(&bytes[..length]) {
            to.store(*from, Ordering::Relaxed);
        }
        process.facts_bytes.store(length as u32, Ordering::Relaxed);
        process.gate.0.fetch_and(!gate::FACTS, Ordering::AcqRel);
        process.facts_answered.store(asked, Ordering::Release);
        process.facts_lock.store(0, Ordering::Release);
        true
    }

    /// Sees to it that `words` words fit into the current block.
    fn make_room(&self, _process: &Process, state: &State, words: usize) -> Result<(), Detached> {
        let room = state.room();
        if words <= room {
            return Ok(());
        }
        // SAFETY: attached.
        let header = unsafe { self.mapped_header() };
        let Some(geometry) = header.geometry() else { return Err(Detached) };
        if room > 0 {
            let mut pads = [noted(note::PAD, 0); 64];
            let mut left = room;
            while left > 0 {
                let now = left.min(pads.len());
                pads[0] = noted(note::PAD, now as u64 - 1);
                write(state, &pads[..now]);
                left -= now;
            }
        }
        let block = state.block.get().wrapping_add(1);
        let blocks = geometry.ring_blocks();
        // SAFETY: the state is not wiped.
        let consumer = unsafe { &state.control().consumer.0 };
        let free = || block.wrapping_sub(consumer.taken.load(Ordering::Acquire)) < blocks;
        let behind = block.wrapping_sub(consumer.taken.load(Ordering::Acquire));
        if behind >= blocks / 2 && header.doorbell.0.load(Ordering::Relaxed) != 0 {
            header.doorbell.0.store(0, Ordering::Release);
            sys::futex_wake(&header.doorbell.0);
        }
        let mut spins = 0;
        while !free() && spins < SPINS {
            core::hint::spin_loop();
            spins += 1;
        }
        let mut watch = Watch::new();
        while !free() {
            let taken = consumer.taken.load(Ordering::Acquire);
            consumer.waiting.store(1, Ordering::SeqCst);
            if block.wrapping_sub(consumer.taken.load(Ordering::SeqCst)) < blocks {
                break;
            }
            if header.doorbell.0.swap(0, Ordering::AcqRel) != 0 {
                sys::futex_wake(&header.doorbell.0);
            }
            sys::futex_wait(&consumer.taken, taken, PATIENCE_NS);
            watch.look(self)?;
        }
        state.block.set(block);
        if block & (blocks - 1) == 0 {
            state.at.set(state.ring.get());
            state.lap.set(state.lap.get() ^ LAP);
        }
        state.limit.set(state.at.get().wrapping_add(geometry.block_words()));
        Ok(())
    }
}

/// Whether the tool lives, asked again and again.
struct Watch {
    beat: u32,
    since_ns: u64,
}

impl Watch {
    fn new() -> Watch {
        Watch { beat: 0, since_ns: 0 }
    }

    fn look(&mut self, core: &Core) -> Result<(), Detached> {
        if !core.tool_lives() {
            return Err(Detached);
        }
        // SAFETY: attached.
        let beat = unsafe { core.mapped_header().beat.0.load(Ordering::Relaxed) };
        let now = sys::now_ns();
        if self.since_ns == 0 || beat != self.beat {
            self.beat = beat;
            self.since_ns = now;
        } else if core.blind() && now - self.since_ns > BEAT_NS {
            return Err(Detached);
        }
        Ok(())
    }
}

/// Takes the usable size out of a group when the table has it; otherwise has the table learn it. The reader does the
/// same with its own table.
fn predict(state: &State, message: &mut Message<'_>, size: usize, usable: usize) {
    let known = if size < PREDICTED { usize::from(state.usable[size].get()) } else { 0 };
    if known == usable {
        let at = message.words.iter().position(|&word| {
            crate::word::tag(word) == crate::word::PREFIX && crate::word::which(word) == prefix::USABLE
        });
        if let Some(at) = at {
            let words = core::mem::take(&mut message.words);
            words.copy_within(at + 1.., at);
            let kept = words.len() - 1;
            message.words = &mut words[..kept];
        }
    } else if size < PREDICTED {
        state.usable[size].set(u16::try_from(usable).unwrap_or(0));
    }
}

/// Writes a group whose room is made. The first word is written last: who sees it sees them all.
fn write(state: &State, words: &[u64]) {
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
