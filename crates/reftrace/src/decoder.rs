//! Decodes words into runs of references, each with its owner, and events, each with its cost.
//!
//! One decoder decodes one process image. The owner of a reference follows from the events before it: the tracer
//! records only where routines are entered and left, what a manager announced, and which thread runs.

use rustc_hash::FxHashMap;

use crate::event::{Clock, Event, Origin, Owner};
use crate::routine::Routine;
use crate::word::{self, EventKind, Place, Reference, Text};

/// Takes what a decoder yields, in the order of the process.
pub trait Sink {
    /// References of one owner, in order. A slice ends where an event lies between two references.
    fn references(&mut self, owner: Owner, references: &[Reference]);
    /// An event. The decoder's state is that after it.
    fn event(&mut self, event: &Event<'_>);
    /// What `owner` has executed on the running thread since the counters were last recorded. The call precedes that of
    /// the event which carries the counters, and follows the references made in between, which have the same owner.
    fn executed(&mut self, _owner: Owner, _cost: Clock) {}
    /// Why the sink takes no more, if it does not, in words for the user. The caller of the decoder polls this; what
    /// was decoded until then counts.
    fn full(&self) -> Option<String> {
        None
    }
}

/// Takes nothing where there is none.
impl<S: Sink> Sink for Option<S> {
    #[inline]
    fn references(&mut self, owner: Owner, references: &[Reference]) {
        if let Some(sink) = self {
            sink.references(owner, references);
        }
    }

    #[inline]
    fn event(&mut self, event: &Event<'_>) {
        if let Some(sink) = self {
            sink.event(event);
        }
    }

    fn executed(&mut self, owner: Owner, cost: Clock) {
        if let Some(sink) = self {
            sink.executed(owner, cost);
        }
    }

    fn full(&self) -> Option<String> {
        self.as_ref().and_then(Sink::full)
    }
}

/// Words that no tracer writes; what follows in the same block is not decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// Where in the block, words.
    pub at: usize,
    /// The word.
    pub word: u64,
}

/// Most bytes that Linux reads or writes in one call (`MAX_RW_COUNT`). A program may request more, and corrupted words
/// may state more, which sinks would then walk line by line.
const MOST_MOVED: u64 = 0x7fff_f000;
/// No process executes more instructions, loads or stores than this, in years. Words that state more are corrupted; so
/// sums of recorded counters need no overflow checks.
const MOST_EXECUTED: u64 = 1 << 56;
/// `heaptoll_event_kind` of include/heaptoll.h.
const COLLECTION_START: u64 = 1;
const COLLECTION_END: u64 = 2;

/// What runs on a thread: a routine or a signal handler.
#[derive(Debug, Clone, Copy)]
enum Frame {
    Routine {
        routine: Routine,
        arguments: [u64; 3],
        site: u32,
        entered: Clock,
        handlers: Clock,
        collector: Clock,
    },
    Handler {
        begun: Clock,
    },
}

#[derive(Debug, Clone, Default)]
struct Thread {
    clock: Clock,
    words: u64,
    frames: Vec<Frame>,
    collecting: Option<Clock>,
    of_manager: bool,
}

impl Thread {
    fn owner(&self) -> Owner {
        match self.frames.last() {
            _ if self.of_manager || self.collecting.is_some() => Owner::Collector,
            Some(Frame::Routine { .. }) => Owner::Allocator,
            Some(Frame::Handler { .. }) | None => Owner::Program,
        }
    }

    fn set(&mut self, instructions: u64, memory: u64) -> Clock {
        let lower = |now: u64, before: u64| u64::from((now as u32).wrapping_sub(before as u32));
        self.clock.loads = self.clock.loads.saturating_add(lower(memory, self.words));
        self.clock.stores = self.clock.stores.saturating_add(lower(memory >> 32, self.words >> 32));
        self.clock.instructions = self.clock.instructions.max(instructions);
        self.words = memory;
        self.clock
    }
}

/// Decodes the words of one process image.
#[derive(Debug, Default)]
pub struct Decoder {
    threads: FxHashMap<u32, Thread>,
    running: u32,
    /// The owner of the next reference; what changes it is decoded far less often than references are.
    owner: Owner,
    site: u32,
    totals: [Clock; 3],
}

impl Decoder {
    /// A decoder for a process image that begins.
    pub fn new() -> Decoder {
        Decoder::default()
    }

    /// What each owner has executed so far, summed over all threads, up to the last event that had a clock.
    pub fn totals(&self) -> [Clock; 3] {
        self.totals
    }

    /// Number of the thread that runs.
    pub fn thread(&self) -> u32 {
        self.running
    }

    /// The owner of the next reference.
    pub fn owner(&self) -> Owner {
        self.owner
    }

    /// Decodes a block of whole events. A zero ends it: nothing was written after it.
    ///
    /// # Errors
    /// [`Damage`]; what came before it was decoded.
    pub fn decode(&mut self, words: &[u64], sink: &mut dyn Sink) -> Result<(), Damage> {
        let mut at = 0;
        while at < words.len() {
            let rest = &words[at..];
            let run = rest.iter().position(|&word| word >> 63 != 0 || word == 0).unwrap_or(rest.len());
            if run > 0 {
                // SAFETY: `Reference` is a transparent `u64`, of which all values are valid, and `run` is at most
                // `rest.len()`.
                let references =
                    unsafe { std::slice::from_raw_parts(rest.as_ptr().cast::<Reference>(), run) };
                sink.references(self.owner(), references);
                at += run;
                continue;
            }
            let first = rest[0];
            if first == 0 {
                return Ok(());
            }
            let payload = first & word::PAYLOAD;
            let damage = || Damage { at, word: first };
            let kind =
                EventKind::from_number((first & !word::EVENT) >> word::KIND_SHIFT).ok_or_else(damage)?;
            let following = usize::try_from(kind.following(payload)).map_err(|_| damage())?;
            // A process that was killed while it wrote an event leaves a part of it.
            let Some(more) = rest.get(1..=following) else { return Ok(()) };
            self.decode_event(kind, payload, more, sink).ok_or_else(damage)?;
            if !matches!(kind, EventKind::Pointer | EventKind::Root) {
                self.owner = self.threads.get(&self.running).map_or(Owner::Program, Thread::owner);
            }
            at += 1 + following;
        }
        Ok(())
    }

    fn decode_event(
        &mut self,
        kind: EventKind,
        payload: u64,
        more: &[u64],
        sink: &mut dyn Sink,
    ) -> Option<()> {
        match kind {
            EventKind::Nothing | EventKind::Skip => {}
            EventKind::Thread => {
                self.running = number(payload)?;
                sink.event(&Event::Thread { thread: self.running });
            }
            EventKind::Enter => self.enter_routine(payload, more, sink)?,
            EventKind::Leave | EventKind::Abandon => self.end_routine(kind, payload, more, sink)?,
            EventKind::Signal => {
                let begun = self.advance_clock(more, sink)?;
                self.running().frames.push(Frame::Handler { begun });
            }
            EventKind::SignalEnd => self.end_handler(more, sink)?,
            EventKind::Announced => self.announcement(payload, more, sink)?,
            EventKind::Map | EventKind::Unmap | EventKind::Protect => {
                sink.event(&mapping(kind, payload, more)?);
            }
            EventKind::KernelLoad | EventKind::KernelStore => {
                // As in references, addresses have 48 bits.
                let beyond = (word::ADDRESS + 1).checked_sub(more[0])?;
                sink.event(&Event::Kernel {
                    owner: self.owner(),
                    address: more[0],
                    length: payload.min(MOST_MOVED).min(beyond),
                    store: kind == EventKind::KernelStore,
                });
            }
            EventKind::Refused => {
                let (syscall, errno) = (number(payload / 4096)?, number(payload % 4096)?);
                sink.event(&Event::Refused { syscall, errno });
            }
            EventKind::Site => self.site = number(payload)?,
            EventKind::SiteDefinition => {
                sink.event(&Event::Site { site: number(payload >> 8)?, frames: more })
            }
            EventKind::Text => text(payload, more, sink)?,
            EventKind::Pointer => {
                sink.event(&Event::Pointer { value: payload & word::ADDRESS, word: (payload >> 48) as u8 });
            }
            EventKind::WordAt => {
                sink.event(&Event::WordAt { address: more[0], value: payload & word::ADDRESS })
            }
            EventKind::Roots => sink.event(&Event::Roots { begin: payload != 0 }),
            EventKind::Request => sink.event(&Event::Request { begin: payload != 0 }),
            EventKind::Exit => sink.event(&Event::Exit),
            EventKind::Waited => sink.event(&Event::Waited { ns: payload }),
            EventKind::Root => {
                let place = Place::from_number(payload >> 48)?;
                sink.event(&Event::Root { value: payload & word::ADDRESS, place });
            }
            EventKind::Tick => {
                self.advance_clock(more, sink)?;
            }
            EventKind::ThreadStart => self.start_thread(payload, more, sink)?,
            EventKind::ThreadEnd => self.end_thread(payload, more, sink)?,
            EventKind::Fork => sink.event(&Event::Fork { child: number(payload)? }),
            EventKind::Main => {
                self.advance_clock(more, sink)?;
                sink.event(&Event::Main { before: self.totals });
            }
            EventKind::Exec => {
                let clock = self.advance_clock(more, sink)?;
                sink.event(&Event::Exec { clock });
            }
            EventKind::End => {
                let clock = self.advance_clock(more, sink)?;
                sink.event(&Event::End { status: payload as u32 as i32, clock });
            }
        }
        Some(())
    }

    fn enter_routine(&mut self, payload: u64, more: &[u64], sink: &mut dyn Sink) -> Option<()> {
        let (routine, family) = (Routine::from_number(payload & 0xff)?, u8::try_from(payload >> 8).ok()?);
        let entered = self.advance_clock(more, sink)?;
        let (arguments, site) = ([more[2], more[3], more[4]], std::mem::take(&mut self.site));
        let none = Clock::default();
        self.running().frames.push(Frame::Routine {
            routine,
            arguments,
            site,
            entered,
            handlers: none,
            collector: none,
        });
        sink.event(&Event::Enter { routine, family, clock: entered, arguments, site });
        Some(())
    }

    /// A routine that returned, or that a `longjmp` left.
    fn end_routine(
        &mut self,
        kind: EventKind,
        payload: u64,
        more: &[u64],
        sink: &mut dyn Sink,
    ) -> Option<()> {
        let (routine, family) = (Routine::from_number(payload & 0xff)?, (payload >> 8) as u8);
        let served_by = (payload >> 16).checked_sub(1).map(u8::try_from).transpose().ok()?;
        let clock = self.advance_clock(more, sink)?;
        let (arguments, site, cost, collector) = self.leave(routine, clock).unwrap_or_default();
        sink.event(&match kind {
            EventKind::Leave => Event::Leave {
                routine,
                family,
                clock,
                arguments,
                site,
                result: more[2],
                cost,
                collector,
                served_by,
            },
            _ => Event::Abandon { routine, clock, cost },
        });
        Some(())
    }

    fn end_handler(&mut self, more: &[u64], sink: &mut dyn Sink) -> Option<()> {
        let clock = self.advance_clock(more, sink)?;
        let thread = self.running();
        // A handler that `longjmp` left has left the routines it called too.
        while let Some(frame) = thread.frames.pop() {
            if let Frame::Handler { begun } = frame {
                if let Some(Frame::Routine { handlers, .. }) = thread.frames.last_mut() {
                    *handlers = handlers.plus(clock.since(begun));
                }
                break;
            }
        }
        Some(())
    }

    /// What a manager announced: collections decide on the owner of what follows.
    fn announcement(&mut self, payload: u64, more: &[u64], sink: &mut dyn Sink) -> Option<()> {
        let clock = self.advance_clock(more, sink)?;
        let thread = self.running();
        match payload {
            COLLECTION_START => thread.collecting = Some(clock),
            COLLECTION_END => {
                if let (Some(begun), Some(Frame::Routine { collector, .. })) =
                    (thread.collecting.take(), thread.frames.last_mut())
                {
                    *collector = collector.plus(clock.since(begun));
                }
            }
            _ => {}
        }
        sink.event(&Event::Announced { kind: number(payload)?, value: more[2], clock });
        Some(())
    }

    fn start_thread(&mut self, payload: u64, more: &[u64], sink: &mut dyn Sink) -> Option<()> {
        let (thread, parent) = (number(payload)?, number(more[0] & !word::BY_MANAGER)?);
        let manager = more[0] & word::BY_MANAGER != 0
            || self.threads.get(&parent).is_some_and(|thread| thread.owner() != Owner::Program);
        self.threads.insert(thread, Thread { of_manager: manager, ..Thread::default() });
        sink.event(&Event::ThreadStart { thread, parent, manager });
        Some(())
    }

    fn end_thread(&mut self, payload: u64, more: &[u64], sink: &mut dyn Sink) -> Option<()> {
        let thread = number(payload)?;
        let before = std::mem::replace(&mut self.running, thread);
        let clock = self.advance_clock(more, sink);
        self.running = before;
        let clock = clock?;
        self.threads.remove(&thread);
        sink.event(&Event::ThreadEnd { thread, clock });
        Some(())
    }

    fn running(&mut self) -> &mut Thread {
        self.threads.entry(self.running).or_default()
    }

    /// Advances the running thread's clock to the recorded counters, and charges the difference to its owner before the
    /// event. `None` when the process has executed more than any can.
    fn advance_clock(&mut self, more: &[u64], sink: &mut dyn Sink) -> Option<Clock> {
        let thread = self.threads.entry(self.running).or_default();
        let (owner, before) = (thread.owner(), thread.clock);
        let clock = thread.set(more[0], more[1]);
        let cost = clock.since(before);
        let total = self.totals[owner as usize].plus(cost);
        if total.instructions.max(total.loads).max(total.stores) > MOST_EXECUTED {
            return None;
        }
        self.totals[owner as usize] = total;
        sink.executed(owner, cost);
        Some(clock)
    }

    /// Ends the innermost call of a routine: its arguments, site, cost, and the part of the cost that collections took.
    fn leave(&mut self, routine: Routine, clock: Clock) -> Option<([u64; 3], u32, Clock, Clock)> {
        let thread = self.running();
        while let Some(frame) = thread.frames.pop() {
            match frame {
                Frame::Routine { routine: entered_as, arguments, site, entered, handlers, collector }
                    if entered_as == routine =>
                {
                    return Some((arguments, site, clock.since(entered).since(handlers), collector));
                }
                // The tracer ends what a handler called before it ends the handler.
                Frame::Handler { .. } => {
                    thread.frames.push(frame);
                    return None;
                }
                Frame::Routine { .. } => {}
            }
        }
        None
    }
}

/// A number of 32 bits. `None` when the word has more.
fn number(value: u64) -> Option<u32> {
    u32::try_from(value).ok()
}

/// A change of the address space. `None` when it does not fit there.
fn mapping(kind: EventKind, payload: u64, more: &[u64]) -> Option<Event<'static>> {
    let (address, length) = (more[0], more[1]);
    address.checked_add(length)?;
    let protection = (payload & 7) as u8;
    Some(match kind {
        EventKind::Map => {
            let origin = match payload >> 3 {
                0 => Origin::Start,
                1 => Origin::Mmap,
                2 => Origin::Brk,
                3 => Origin::Mremap,
                4 => Origin::Stack,
                _ => return None,
            };
            Event::Map { address, length, protection, origin }
        }
        EventKind::Unmap => Event::Unmap { address, length },
        _ => Event::Protect { address, length, protection },
    })
}

/// A text, whose bytes are padded to words.
fn text(payload: u64, more: &[u64], sink: &mut dyn Sink) -> Option<()> {
    let what = Text::from_number(payload >> 32)?;
    let length = (payload & 0xffff_ffff) as usize;
    let bytes: Vec<u8> = more[1..].iter().flat_map(|word| word.to_le_bytes()).take(length).collect();
    sink.event(&Event::Text { what, word: more[0], bytes: &bytes });
    Some(())
}

#[cfg(test)]
mod tests;
