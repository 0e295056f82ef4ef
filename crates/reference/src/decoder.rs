//! Words become runs of references, each with its owner, and events, each with what it cost.
//!
//! One decoder hears one process image. Whose a reference is follows from the events before it: the tracer tells only
//! where routines are entered and left, what a manager announced, and which thread runs.

use std::collections::HashMap;

use crate::event::{Clock, Event, Origin, Owner};
use crate::routine::Routine;
use crate::word::{self, Kind, Reference, Text};

/// Takes what a decoder finds, in the order of the process.
pub trait Sink {
    /// References of one owner, in order. The slice is as long as nothing happened between.
    fn references(&mut self, owner: Owner, references: &[Reference]);
    /// Something happened. The state is that after it.
    fn event(&mut self, event: &Event<'_>);
    /// What `owner` has executed on the thread that runs, since its counters were told last. It comes before the event
    /// that tells it, and behind the references that were made meanwhile, which are the same owner's.
    fn passed(&mut self, _owner: Owner, _cost: Clock) {}
    /// Why it wants to hear no more, if so, in words for the user. Whoever decodes asks now and then; what was heard
    /// until then counts.
    fn full(&self) -> Option<String> {
        None
    }
}

/// Words that no tracer writes; what follows in the same block is not heard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// Where in the block, words.
    pub at: usize,
    /// The word.
    pub word: u64,
}

/// Most bytes that Linux reads or writes in one call (`MAX_RW_COUNT`). More may be asked for, or told by words that have
/// run wild, and would be gone through line by line.
const MOST_MOVED: u64 = 0x7fff_f000;
/// More instructions, loads or stores than this no process executes, in years. Words that say so have run wild; so nobody
/// who adds up what is told need mind overflow.
const MOST_EXECUTED: u64 = 1 << 56;
/// `heaptoll_event_kind` of include/heaptoll.h.
const COLLECTION_START: u64 = 1;
const COLLECTION_END: u64 = 2;

/// What runs on a thread.
#[derive(Debug, Clone, Copy)]
enum Frame {
    Routine {
        routine: Routine,
        arguments: [u64; 3],
        site: u32,
        entered: Clock,
        apart: Clock,
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

/// Hears one process image.
#[derive(Debug, Default)]
pub struct Decoder {
    threads: HashMap<u32, Thread>,
    running: u32,
    site: u32,
    totals: [Clock; 3],
}

impl Decoder {
    /// Of a process image that begins.
    pub fn new() -> Decoder {
        Decoder::default()
    }

    /// What each owner has executed so far, all threads together, up to the last event that had a clock.
    pub fn totals(&self) -> [Clock; 3] {
        self.totals
    }

    /// Number of the thread that runs.
    pub fn thread(&self) -> u32 {
        self.running
    }

    /// Whose the next reference is.
    pub fn owner(&self) -> Owner {
        self.threads.get(&self.running).map_or(Owner::Program, Thread::owner)
    }

    /// Hears a block of whole events. A zero ends it: behind it nothing was written.
    ///
    /// # Errors
    /// [`Damage`]; what came before it was heard.
    pub fn decode(&mut self, words: &[u64], sink: &mut impl Sink) -> Result<(), Damage> {
        let mut at = 0;
        while at < words.len() {
            let rest = &words[at..];
            let run = rest.iter().position(|&word| word >> 63 != 0 || word == 0).unwrap_or(rest.len());
            if run > 0 {
                // SAFETY: `Reference` is a transparent `u64`, of which all values are valid.
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
            let kind = Kind::from_number((first & !word::EVENT) >> word::KIND_SHIFT).ok_or_else(damage)?;
            let following = usize::try_from(kind.following(payload)).map_err(|_| damage())?;
            // A process that was killed in the midst of an event leaves a part of it.
            let Some(more) = rest.get(1..=following) else { return Ok(()) };
            self.hear(kind, payload, more, sink).ok_or_else(damage)?;
            at += 1 + following;
        }
        Ok(())
    }

    fn hear(&mut self, kind: Kind, payload: u64, more: &[u64], sink: &mut impl Sink) -> Option<()> {
        let number = |value: u64| u32::try_from(value).ok();
        match kind {
            Kind::Nothing | Kind::Skip => {}
            Kind::Thread => {
                self.running = number(payload)?;
                sink.event(&Event::Thread { thread: self.running });
            }
            Kind::Enter => {
                let routine = Routine::from_number(payload)?;
                let clock = self.tell(more, sink)?;
                let (arguments, site) = ([more[2], more[3], more[4]], std::mem::take(&mut self.site));
                let none = Clock::default();
                let frame =
                    Frame::Routine { routine, arguments, site, entered: clock, apart: none, collector: none };
                self.running().frames.push(frame);
                sink.event(&Event::Enter { routine, clock, arguments, site });
            }
            Kind::Leave | Kind::Abandon => {
                let routine = Routine::from_number(payload)?;
                let clock = self.tell(more, sink)?;
                let left = self.leave(routine, clock);
                let (arguments, site, cost, collector) = left.unwrap_or_default();
                sink.event(&match kind {
                    Kind::Leave => {
                        Event::Leave { routine, clock, arguments, site, result: more[2], cost, collector }
                    }
                    _ => Event::Abandon { routine, clock, cost },
                });
            }
            Kind::Signal => {
                let begun = self.tell(more, sink)?;
                self.running().frames.push(Frame::Handler { begun });
            }
            Kind::SignalEnd => {
                let clock = self.tell(more, sink)?;
                let thread = self.running();
                // Who left a handler by `longjmp` has left what it called too.
                while let Some(frame) = thread.frames.pop() {
                    if let Frame::Handler { begun } = frame {
                        if let Some(Frame::Routine { apart, .. }) = thread.frames.last_mut() {
                            *apart = apart.plus(clock.since(begun));
                        }
                        break;
                    }
                }
            }
            Kind::Announced => {
                let clock = self.tell(more, sink)?;
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
            }
            Kind::Map => {
                more[0].checked_add(more[1])?;
                let origin = match payload >> 3 {
                    0 => Origin::Start,
                    1 => Origin::Mmap,
                    2 => Origin::Brk,
                    3 => Origin::Mremap,
                    4 => Origin::Stack,
                    _ => return None,
                };
                let protection = (payload & 7) as u8;
                sink.event(&Event::Map { address: more[0], length: more[1], protection, origin });
            }
            Kind::Unmap => {
                more[0].checked_add(more[1])?;
                sink.event(&Event::Unmap { address: more[0], length: more[1] });
            }
            Kind::Protect => {
                more[0].checked_add(more[1])?;
                let protection = (payload & 7) as u8;
                sink.event(&Event::Protect { address: more[0], length: more[1], protection });
            }
            Kind::KernelLoad | Kind::KernelStore => {
                // As in references, addresses have 48 bits.
                let beyond = (word::ADDRESS + 1).checked_sub(more[0])?;
                sink.event(&Event::Kernel {
                    owner: self.owner(),
                    address: more[0],
                    length: payload.min(MOST_MOVED).min(beyond),
                    store: kind == Kind::KernelStore,
                });
            }
            Kind::Refused => {
                let (syscall, errno) = (number(payload / 4096)?, number(payload % 4096)?);
                sink.event(&Event::Refused { syscall, errno });
            }
            Kind::Site => self.site = number(payload)?,
            Kind::SiteDefinition => sink.event(&Event::Site { site: number(payload >> 8)?, frames: more }),
            Kind::Text => {
                let what = Text::from_number(payload >> 32)?;
                let length = (payload & 0xffff_ffff) as usize;
                let bytes: Vec<u8> =
                    more[1..].iter().flat_map(|word| word.to_le_bytes()).take(length).collect();
                sink.event(&Event::Text { what, word: more[0], bytes: &bytes });
            }
            Kind::Pointer => sink.event(&Event::Pointer { value: payload }),
            Kind::Tick => {
                self.tell(more, sink)?;
            }
            Kind::ThreadStart => {
                let (thread, parent) = (number(payload)?, number(more[0] & !word::BY_MANAGER)?);
                let manager = more[0] & word::BY_MANAGER != 0
                    || self.threads.get(&parent).is_some_and(|thread| thread.owner() != Owner::Program);
                self.threads.insert(thread, Thread { of_manager: manager, ..Thread::default() });
                sink.event(&Event::ThreadStart { thread, parent, manager });
            }
            Kind::ThreadEnd => {
                let thread = number(payload)?;
                let before = std::mem::replace(&mut self.running, thread);
                let clock = self.tell(more, sink);
                self.running = before;
                let clock = clock?;
                self.threads.remove(&thread);
                sink.event(&Event::ThreadEnd { thread, clock });
            }
            Kind::Fork => sink.event(&Event::Fork { child: number(payload)? }),
            Kind::Main => {
                self.tell(more, sink)?;
                sink.event(&Event::Main { before: self.totals });
            }
            Kind::Exec => {
                let clock = self.tell(more, sink)?;
                sink.event(&Event::Exec { clock });
            }
            Kind::End => {
                let clock = self.tell(more, sink)?;
                sink.event(&Event::End { status: payload as u32 as i32, clock });
            }
        }
        Some(())
    }

    fn running(&mut self) -> &mut Thread {
        self.threads.entry(self.running).or_default()
    }

    /// Takes the running thread's counters; what was added is the owner's before the event. `None` when the process has
    /// executed more than any can.
    fn tell(&mut self, more: &[u64], sink: &mut impl Sink) -> Option<Clock> {
        let thread = self.threads.entry(self.running).or_default();
        let (owner, before) = (thread.owner(), thread.clock);
        let clock = thread.set(more[0], more[1]);
        let cost = clock.since(before);
        let total = self.totals[owner as usize].plus(cost);
        if total.instructions.max(total.loads).max(total.stores) > MOST_EXECUTED {
            return None;
        }
        self.totals[owner as usize] = total;
        sink.passed(owner, cost);
        Some(clock)
    }

    /// Ends the innermost call of a routine: its arguments, site, cost, and what of it collections took.
    fn leave(&mut self, routine: Routine, clock: Clock) -> Option<([u64; 3], u32, Clock, Clock)> {
        let thread = self.running();
        while let Some(frame) = thread.frames.pop() {
            match frame {
                Frame::Routine { routine: entered_as, arguments, site, entered, apart, collector }
                    if entered_as == routine =>
                {
                    return Some((arguments, site, clock.since(entered).since(apart), collector));
                }
                // The tracer ends what was called from a handler before the handler.
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

#[cfg(test)]
mod tests;
