//! What a producer waits for: the gate, space in its ring; and how it finds that the tool has gone.

use core::ffi::CStr;

use heaptoll_assertions::assert_internal;

use crate::atomic::Ordering;
use crate::attachment::{Attachment, FactsHook};
use crate::bounds::SPINS;
use crate::layout::{FACTS_BYTES, FIXED, Geometry, Header, Process, gate};
use crate::memory::Need;
use crate::state::State;
use crate::sys::{self, Descriptor};
use crate::word::LAP;

/// The event is dropped: the tool reads no more.
#[derive(Debug)]
pub(crate) struct Detached;

/// How long a producer sleeps before it checks again whether the tool runs, ns.
pub(crate) const PATIENCE_NS: u64 = 10_000_000;
/// A process waits no longer than this for the tool to read its memory, ns.
const READING_NS: u64 = 10_000_000_000;
/// How long a tool whose process number means nothing here may make no progress before it counts as gone, ns.
const STILL_NS: u64 = 2_000_000_000;

impl Attachment {
    /// Does what the gate requests, and records the gate.
    pub(crate) fn pass_gate(&self, process: &Process, state: &State) -> Result<(), Detached> {
        let mut watch = ToolWatch::new();
        loop {
            let gate = process.gate.0.load(Ordering::Acquire);
            if gate & gate::DISMISSED != 0 {
                return Err(Detached);
            }
            if gate & gate::FACTS != 0 {
                // The hook may call the manager, which may call back into this.
                state.leave();
                let answered = self.answer(process, true);
                state.enter();
                if answered {
                    continue;
                }
            }
            if gate & (gate::PAUSE | gate::STOPPED) == 0 {
                state.pass(gate);
                return Ok(());
            }
            sys::futex_wait(&process.gate.0, gate, PATIENCE_NS);
            // SAFETY: the caller has a process entry, which lies in the mapping, so this process is attached.
            watch.check(self, unsafe { self.mapped_header() })?;
        }
    }

    /// Holds a thread, with a bit of the gate that the tool clears, until the tool has read the process's memory, which
    /// is then as it was. Requests for facts are answered meanwhile; with none, unless it `answers`: it may be inside the
    /// manager.
    pub(crate) fn wait_for_tool(&self, process: &Process, bit: u32, answers: bool) {
        let begun_ns = sys::now_ns();
        process.gate.0.fetch_or(bit, Ordering::AcqRel);
        // SAFETY: the caller has a process entry, which lies in the mapping, so this process is attached.
        let header = unsafe { self.mapped_header() };
        wake_tool(header);
        let mut watch = ToolWatch::new();
        while sys::now_ns() - begun_ns < READING_NS {
            let gate = process.gate.0.load(Ordering::Acquire);
            if gate & bit == 0 || gate & gate::DISMISSED != 0 {
                return;
            }
            if gate & gate::FACTS != 0 && self.answer(process, answers) {
                continue;
            }
            sys::futex_wait(&process.gate.0, gate, PATIENCE_NS);
            if watch.check(self, header).is_err() {
                break;
            }
        }
        process.gate.0.fetch_and(!bit, Ordering::AcqRel);
    }

    /// Answers the tool's request for facts about this process; with none unless it `calls` the manager: the tool does
    /// not wait in vain. False when another thread is answering it. Not inline: its buffer is large for the stacks on which
    /// events are recorded.
    #[cold]
    #[inline(never)]
    fn answer(&self, process: &Process, calls: bool) -> bool {
        if process.facts_lock.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            return false;
        }
        process.gate.0.fetch_and(!gate::FACTS, Ordering::AcqRel);
        let request = process.facts_requested.load(Ordering::Acquire);
        // Another thread has answered it since the caller read the gate, and the tool may be reading the facts.
        if process.facts_answered.load(Ordering::Relaxed) == request {
            process.facts_lock.store(0, Ordering::Release);
            return true;
        }
        let hook = self.facts.load(Ordering::Acquire);
        let mut bytes = [0u8; FACTS_BYTES];
        bytes[0] = process.facts_options.load(Ordering::Relaxed) as u8;
        let length = if hook.is_null() || !calls {
            0
        } else {
            // SAFETY: `facts` is null, which is excluded here, or a `FactsHook` that `answer_with` stored.
            let hook: FactsHook = unsafe { core::mem::transmute(hook) };
            hook(&mut bytes).min(FACTS_BYTES)
        };
        for (to, from) in process.facts.0.iter().zip(&bytes[..length]) {
            to.store(*from, Ordering::Relaxed);
        }
        process.facts_bytes.store(length as u32, Ordering::Relaxed);
        process.facts_answered.store(request, Ordering::Release);
        process.facts_lock.store(0, Ordering::Release);
        true
    }

    /// Makes sure that `words` words fit into the current block; if they do not, pads it and continues in the next
    /// block once the reader has left that.
    pub(crate) fn ensure_space(&self, state: &State, words: usize) -> Result<(), Detached> {
        if words <= state.free_words() {
            return Ok(());
        }
        // SAFETY: the state refers to a ring in the mapping, so this process is attached.
        let header = unsafe { self.mapped_header() };
        let geometry = self.geometry();
        state.pad();
        let block = state.block.get().wrapping_add(1);
        // SAFETY: `send` and `shared_state` give only states that `begin` has set, and this thread has entered the
        // state.
        let control = unsafe { state.control() };
        let consumer = &control.consumer.0;
        if state.grows.get() && block == state.blocks.get() {
            self.grow(header, geometry, state);
        }
        let blocks = state.blocks.get();
        // A reader is never ahead, unless its counter was overwritten.
        let lag = |taken: u32| (block.wrapping_sub(taken) as i32).max(0) as u32;
        if lag(consumer.taken.load(Ordering::Acquire)) >= blocks / 2 {
            wake_tool(header);
        }
        let mut spins = 0;
        let mut watch = ToolWatch::new();
        loop {
            let taken = consumer.taken.load(Ordering::Acquire);
            if lag(taken) < blocks {
                break;
            }
            if spins < SPINS {
                spins += 1;
                sys::spin();
                continue;
            }
            // It may have been overwritten; the reader must know how far the ring reaches.
            consumer.reach.store(reach(state), Ordering::Release);
            // Either the reader sees that we wait, or we see what it has taken meanwhile.
            consumer.waiting.store(1, Ordering::SeqCst);
            if lag(consumer.taken.load(Ordering::SeqCst)) < blocks {
                break;
            }
            wake_tool(header);
            sys::futex_wait(&consumer.taken, taken, PATIENCE_NS);
            if lag(consumer.taken.load(Ordering::Acquire)) >= blocks {
                watch.check(self, header)?;
                // No reader drains a ring whose owner was overwritten.
                if control.owner.0.id.load(Ordering::Relaxed) != state.owner_id.get() {
                    return Err(Detached);
                }
            }
        }
        state.block.set(block);
        if block & (blocks - 1) == 0 {
            state.at.set(state.ring.get());
            state.lap.set(state.lap.get() ^ LAP);
        }
        state.limit.set(state.at.get().wrapping_add(geometry.block_words()));
        assert_internal!(
            state.is_in_its_block(geometry.block_words()),
            "a writer is where its block's number states"
        );
        assert_internal!(words <= state.free_words(), "an entered block has space for the group");
        Ok(())
    }

    /// Doubles a ring if there is memory; otherwise it keeps its size and wraps.
    fn grow(&self, header: &Header, geometry: Geometry, state: &State) {
        // SAFETY: the only caller, `ensure_space`, has read the control words of this state, so it is not wiped.
        let consumer = unsafe { &state.control().consumer.0 };
        let blocks = state.blocks.get();
        assert_internal!(state.lap.get() == LAP, "a ring grows on its first lap");
        let ring = (state.number.get() as usize, &consumer.held);
        if self.reserve_blocks(header, geometry, ring, blocks..2 * blocks, Need::Growth) {
            state.blocks.set(2 * blocks);
            state.grows.set(2 * blocks < geometry.ring_blocks());
        } else {
            state.grows.set(false);
        }
        consumer.reach.store(reach(state), Ordering::Release);
    }

    /// Whether the tool runs, by its lock on the file.
    pub(crate) fn tool_liveness(&self, header: &Header) -> Liveness {
        if header.closed.load(Ordering::Acquire) != 0 {
            return Liveness::Gone;
        }
        // SAFETY: `map` writes `path` before it publishes the header that the caller has, and nothing writes it
        // afterwards.
        let Ok(path) = CStr::from_bytes_until_nul(unsafe { &*self.path.get() }) else {
            return Liveness::Gone;
        };
        if let Ok(file) = Descriptor::open(path)
            && let Some(locked) = file.locked()
        {
            if locked {
                return Liveness::Running;
            }
            // The tool was killed, so it has not removed its file.
            sys::unlink(path);
            return Liveness::Gone;
        }
        // The path cannot be opened: a changed root, another mount namespace, no descriptor left, no permission. The
        // process number is meaningful if both have their numbers from the same namespace.
        match self.same_namespace.load(Ordering::Relaxed) {
            0 => Liveness::Unknown,
            _ if sys::exists(header.tool_pid.load(Ordering::Relaxed)) => Liveness::Running,
            _ => Liveness::Gone,
        }
    }
}

/// See [`Consumer::reach`](crate::layout::Consumer::reach).
fn reach(state: &State) -> u32 {
    state.blocks.get() | if state.grows.get() { 0 } else { FIXED }
}

/// Wakes the tool if it sleeps.
pub(crate) fn wake_tool(header: &Header) {
    if header.doorbell.0.load(Ordering::SeqCst) != 0 && header.doorbell.0.swap(0, Ordering::AcqRel) != 0 {
        sys::futex_wake(&header.doorbell.0);
    }
}

/// What is known about the tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Liveness {
    Running,
    Gone,
    Unknown,
}

/// Checks repeatedly, for a waiting producer, whether the tool runs.
pub(crate) struct ToolWatch {
    beat: u32,
    since_ns: u64,
}

impl ToolWatch {
    pub fn new() -> ToolWatch {
        ToolWatch { beat: 0, since_ns: 0 }
    }

    /// If the tool ticks, it runs: this check needs no system call, for which a sandbox might kill the process.
    /// Otherwise its lock on the file decides.
    pub fn check(&mut self, attachment: &Attachment, header: &Header) -> Result<(), Detached> {
        let beat = header.beat.0.load(Ordering::Relaxed);
        let now = sys::now_ns();
        if self.since_ns == 0 || beat != self.beat {
            self.beat = beat;
            self.since_ns = now;
            return if header.closed.load(Ordering::Acquire) == 0 { Ok(()) } else { Err(Detached) };
        }
        match attachment.tool_liveness(header) {
            Liveness::Running => Ok(()),
            Liveness::Unknown if now - self.since_ns < STILL_NS => Ok(()),
            Liveness::Gone | Liveness::Unknown => Err(Detached),
        }
    }
}
