//! The sink: decodes the calls of a process image and tallies them.

use std::collections::HashMap;

use heaptoll_reftrace::{Clock, Event, Owner, Reference, Routine, Sink};

use crate::blocks::Blocks;
use crate::class::Request;
use crate::group::{Group, group, request};
use crate::heap::Heap;
use crate::phases::{PhaseClock, Phases};
use crate::tally::Tally;

/// `heaptoll_event_kind` of include/heaptoll.h.
const COLLECTION_START: u32 = 1;
const COLLECTION_END: u32 = 2;
const PHASE: u32 = 3;

/// A call that has begun.
#[derive(Debug, Clone, Copy)]
struct Call {
    routine: Routine,
    arguments: [u64; 3],
    /// Requested size of the block passed as argument: read when the call began, since another thread may have the
    /// address before it ends.
    block_size: Option<u64>,
}

#[derive(Debug, Default)]
struct Thread {
    calls: Vec<Call>,
    collecting: PhaseClock,
    of_manager: bool,
}

/// Tallies the cost of a process image's calls. Feed it to a [`heaptoll_reftrace::Decoder`], then read
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
    pub(crate) phases: Phases,
    /// The program's instructions before its `main`.
    pub(crate) before_main: Option<u64>,
}

impl Costs {
    /// The tally of a process image that begins.
    pub fn new() -> Costs {
        Costs::default()
    }

    /// Calls that have begun and not ended.
    pub(crate) fn unfinished(&self) -> u64 {
        let others: usize = self.others.values().map(|thread| thread.calls.len()).sum();
        (self.thread.calls.len() + others) as u64
    }

    fn enter(&mut self, routine: Routine, arguments: [u64; 3]) {
        let block_size = match group(routine) {
            Group::Free | Group::Resize => self.blocks.remove(arguments[0]),
            Group::Query => self.blocks.size(arguments[0]),
            Group::Allocate => None,
        };
        self.thread.calls.push(Call { routine, arguments, block_size });
    }

    /// Ends a call: the requested size of the block passed as argument.
    fn end(&mut self, routine: Routine, arguments: Option<[u64; 3]>) -> Option<u64> {
        let fits = |call: &Call| {
            call.routine == routine && arguments.is_none_or(|arguments| call.arguments == arguments)
        };
        let at = self.thread.calls.iter().rposition(fits)?;
        // Calls above have no end: a signal handler called them and was left by `longjmp`.
        let block_size = self.thread.calls[at].block_size;
        self.thread.calls.truncate(at);
        block_size
    }

    fn leave(&mut self, routine: Routine, arguments: [u64; 3], result: u64, cost: Clock, collector: Clock) {
        let block_size = self.end(routine, Some(arguments));
        let tally = &mut self.tallies[routine as usize - 1];
        let takes_block = group(routine) != Group::Allocate;
        if takes_block && arguments[0] == 0 {
            tally.odd.null += 1;
        } else if takes_block && block_size.is_none() {
            tally.odd.unknown += 1;
        }
        let Some(request) = request(routine, arguments) else {
            let request = match block_size {
                Some(size) => Request::Bytes(size),
                None if arguments[0] == 0 => Request::Null,
                None => Request::Unknown,
            };
            tally.add(request, false, cost, collector);
            return;
        };
        let makes = takes_block && arguments[0] == 0;
        tally.add(request, makes, cost, collector);
        let size = match request {
            Request::Bytes(size) => size,
            Request::Null | Request::Unknown => u64::MAX,
        };
        if result == 0 {
            // A `realloc` that failed leaves the block as it was; one to size 0 has freed it.
            if size > 0 {
                tally.odd.failed += 1;
                if let Some(before) = block_size {
                    self.blocks.insert(arguments[0], before);
                }
            }
            return;
        }
        if !takes_block || makes {
            self.objects += 1;
            self.bytes = self.bytes.saturating_add(size);
        }
        self.blocks.insert(result, size);
        self.heap.placed(result, size);
    }

    fn in_manager(&self) -> bool {
        self.thread.of_manager || self.thread.collecting.is_collecting() || !self.thread.calls.is_empty()
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
            Event::Announced { kind: COLLECTION_START, clock, .. } => {
                self.thread.collecting.enters(Some(0), clock, &mut self.phases);
            }
            Event::Announced { kind: PHASE, value, clock } if self.thread.collecting.is_collecting() => {
                self.thread.collecting.enters(Some(value), clock, &mut self.phases);
            }
            Event::Announced { kind: COLLECTION_END, clock, .. } => {
                self.collections += u64::from(self.thread.collecting.is_collecting());
                self.thread.collecting.enters(None, clock, &mut self.phases);
            }
            Event::Main { before } => {
                self.before_main = Some(before[Owner::Program as usize].instructions);
            }
            Event::Map { address, length, protection, origin } => {
                self.heap.map(address, length, protection, origin, self.in_manager());
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
