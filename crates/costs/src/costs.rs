//! The sink: hears the calls of a process image and tallies them.

use std::collections::HashMap;

use heaptoll_reference::{Clock, Event, Owner, Reference, Routine, Sink};

use crate::blocks::Blocks;
use crate::class::Asked;
use crate::figures::Group;
use crate::group::{asked, group};
use crate::heap::Heap;
use crate::tally::Tally;

/// `heaptoll_event_kind` of include/heaptoll.h.
const COLLECTION_START: u32 = 1;
const COLLECTION_END: u32 = 2;

/// A call that has begun.
#[derive(Debug, Clone, Copy)]
struct Call {
    routine: Routine,
    arguments: [u64; 3],
    /// What was asked for the block it was given: taken out when the call began, since the address may be another
    /// thread's before it ends.
    given: Option<u64>,
}

#[derive(Debug, Default)]
struct Thread {
    calls: Vec<Call>,
    collecting: bool,
    of_manager: bool,
}

/// Tallies what a process image's calls cost. Feed it to a [`heaptoll_reference::Decoder`], then ask for
/// [`Costs::figures`].
#[derive(Debug, Default)]
pub struct Costs {
    running: u32,
    thread: Thread,
    others: HashMap<u32, Thread>,
    pub(crate) threads: u64,
    pub(crate) manager_threads: u64,
    pub(crate) tallies: [Tally; Routine::ALL.len()],
    pub(crate) blocks: Blocks,
    pub(crate) heap: Heap,
    pub(crate) objects: u64,
    pub(crate) bytes: u64,
    pub(crate) collections: u64,
    /// The program's instructions before its `main`.
    pub(crate) before_main: Option<u64>,
}

impl Costs {
    /// Of a process image that begins.
    pub fn new() -> Costs {
        Costs::default()
    }

    /// Calls that have begun and not ended.
    pub(crate) fn unfinished(&self) -> u64 {
        let others: usize = self.others.values().map(|thread| thread.calls.len()).sum();
        (self.thread.calls.len() + others) as u64
    }

    fn enter(&mut self, routine: Routine, arguments: [u64; 3]) {
        let given = match group(routine) {
            Group::Free | Group::Resize => self.blocks.remove(arguments[0]),
            Group::Ask => self.blocks.size(arguments[0]),
            Group::Allocate => None,
        };
        self.thread.calls.push(Call { routine, arguments, given });
    }

    /// Ends a call: what was asked for the block it was given.
    fn end(&mut self, routine: Routine, arguments: Option<[u64; 3]>) -> Option<u64> {
        let fits = |call: &Call| {
            call.routine == routine && arguments.is_none_or(|arguments| call.arguments == arguments)
        };
        let at = self.thread.calls.iter().rposition(fits)?;
        // Calls above were left without a word, in a signal handler that was left by `longjmp`.
        let given = self.thread.calls[at].given;
        self.thread.calls.truncate(at);
        given
    }

    fn leave(&mut self, routine: Routine, arguments: [u64; 3], result: u64, cost: Clock, collector: Clock) {
        let given = self.end(routine, Some(arguments));
        let tally = &mut self.tallies[routine as usize - 1];
        let takes = group(routine) != Group::Allocate;
        if takes && arguments[0] == 0 {
            tally.odd.null += 1;
        } else if takes && given.is_none() {
            tally.odd.unknown += 1;
        }
        let Some(asked) = asked(routine, arguments) else {
            let asked = match given {
                Some(size) => Asked::Bytes(size),
                None if arguments[0] == 0 => Asked::Null,
                None => Asked::Unknown,
            };
            tally.add(asked, false, cost, collector);
            return;
        };
        let makes = takes && arguments[0] == 0;
        tally.add(asked, makes, cost, collector);
        let size = match asked {
            Asked::Bytes(size) => size,
            Asked::Null | Asked::Unknown => u64::MAX,
        };
        if result == 0 {
            // A `realloc` that failed leaves the block as it was; one to nothing has given it back.
            if size > 0 {
                tally.odd.failed += 1;
                if let Some(before) = given {
                    self.blocks.insert(arguments[0], before);
                }
            }
            return;
        }
        if !takes || makes {
            self.objects += 1;
            self.bytes = self.bytes.saturating_add(size);
        }
        self.blocks.insert(result, size);
        self.heap.placed(result, size);
    }

    fn inside(&self) -> bool {
        self.thread.of_manager || self.thread.collecting || !self.thread.calls.is_empty()
    }
}

impl Sink for Costs {
    fn references(&mut self, _: Owner, _: &[Reference]) {}

    fn event(&mut self, event: &Event<'_>) {
        if !matches!(event, Event::Map { .. } | Event::Unmap { .. }) {
            self.heap.settle();
        }
        match *event {
            Event::Enter { routine, arguments, .. } => self.enter(routine, arguments),
            Event::Leave { routine, arguments, result, cost, collector, .. } => {
                self.leave(routine, arguments, result, cost, collector);
            }
            Event::Abandon { routine, cost, .. } => {
                self.end(routine, None);
                let tally = &mut self.tallies[routine as usize - 1];
                tally.odd.abandoned += 1;
                tally.abandoned = tally.abandoned.plus(cost);
            }
            Event::Thread { thread } if thread != self.running => {
                let next = self.others.remove(&thread).unwrap_or_default();
                let before = std::mem::replace(&mut self.thread, next);
                self.others.insert(std::mem::replace(&mut self.running, thread), before);
            }
            Event::ThreadStart { thread, manager, .. } => {
                self.threads += 1;
                self.manager_threads += u64::from(manager);
                self.others.insert(thread, Thread { of_manager: manager, ..Thread::default() });
            }
            Event::ThreadEnd { thread, .. } => {
                if thread == self.running {
                    self.thread = Thread::default();
                } else {
                    self.others.remove(&thread);
                }
            }
            Event::Announced { kind: COLLECTION_START, .. } => self.thread.collecting = true,
            Event::Announced { kind: COLLECTION_END, .. } => {
                self.collections += u64::from(self.thread.collecting);
                self.thread.collecting = false;
            }
            Event::Main { before } => {
                self.before_main = Some(before[Owner::Program as usize].instructions);
            }
            Event::Map { address, length, protection, origin } => {
                self.heap.map(address, length, protection, origin, self.inside());
            }
            Event::Unmap { address, length } => self.heap.unmap(address, length),
            Event::Protect { address, length, protection } => {
                self.heap.protect(address, length, protection);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
