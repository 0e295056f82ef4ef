//! What a program requests of its manager, without what that costs: calls, bytes by size class, live bytes.
//!
//! A sink of events as [`crate::Costs`] is, for comparisons of two builds of a program: it follows no mappings and keeps
//! no spread of costs, so it takes less than the program's table of live blocks.

use std::collections::{BTreeMap, HashMap};

use heaptoll_reftrace::{Event, Owner, Reference, Routine, Sink};

use crate::blocks::Blocks;
use crate::class::{Request, SizeClass};
use crate::group::{Group, group, request};

/// Calls that request memory, and the bytes that they request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Requested {
    /// Calls that succeeded.
    pub calls: u64,
    /// Bytes that these requested.
    pub bytes: u64,
}

impl Requested {
    /// The sum.
    pub fn plus(self, other: Requested) -> Requested {
        Requested { calls: self.calls + other.calls, bytes: self.bytes.saturating_add(other.bytes) }
    }
}

/// A call that has begun: its routine and the size of the block passed to it.
#[derive(Debug, Clone, Copy)]
struct Call {
    routine: Routine,
    arguments: [u64; 3],
    block_size: Option<u64>,
}

/// The requests of one process image.
#[derive(Debug, Default)]
pub struct Requests {
    running: u32,
    calls: Vec<Call>,
    others: HashMap<u32, Vec<Call>>,
    blocks: Blocks,
    by_class: BTreeMap<SizeClass, Requested>,
    frees: u64,
}

impl Requests {
    /// Those of a process image that begins.
    pub fn new() -> Requests {
        Requests::default()
    }

    /// Calls that made or resized a block, and bytes that they requested, by class of the requested size.
    pub fn by_class(&self) -> &BTreeMap<SizeClass, Requested> {
        &self.by_class
    }

    /// All of them.
    pub fn total(&self) -> Requested {
        self.by_class.values().fold(Requested::default(), |sum, one| sum.plus(*one))
    }

    /// Calls that freed a block.
    pub fn frees(&self) -> u64 {
        self.frees
    }

    /// Most bytes that were requested and not freed.
    pub fn most_live_bytes(&self) -> u64 {
        self.blocks.most_bytes
    }

    /// Bytes that are requested and not freed by now: at the end, those live at exit.
    pub fn live_bytes(&self) -> u64 {
        self.blocks.live_bytes()
    }

    fn enter(&mut self, routine: Routine, arguments: [u64; 3]) {
        let block_size = match group(routine) {
            Group::Free | Group::Resize => self.blocks.remove(arguments[0]),
            Group::Allocate | Group::Query => None,
        };
        self.calls.push(Call { routine, arguments, block_size });
    }

    /// Ends a call: the size of the block passed as argument. Calls above it were left by `longjmp`.
    fn end(&mut self, routine: Routine, arguments: Option<[u64; 3]>) -> Option<u64> {
        let fits = |call: &Call| {
            call.routine == routine && arguments.is_none_or(|arguments| call.arguments == arguments)
        };
        let at = self.calls.iter().rposition(fits)?;
        let block_size = self.calls[at].block_size;
        self.calls.truncate(at);
        block_size
    }

    fn leave(&mut self, routine: Routine, arguments: [u64; 3], result: u64) {
        let block_size = self.end(routine, Some(arguments));
        let Some(wanted) = request(routine, arguments) else {
            self.frees += u64::from(group(routine) == Group::Free && arguments[0] != 0);
            return;
        };
        let size = match wanted {
            Request::Bytes(size) => size,
            Request::Null | Request::Unknown => u64::MAX,
        };
        if result == 0 {
            // A `realloc` that failed leaves the block as it was; one to size 0 has freed it.
            match block_size {
                Some(before) if size > 0 => self.blocks.insert(arguments[0], before),
                Some(_) => self.frees += 1,
                None => {}
            }
            return;
        }
        let class = SizeClass::of(SizeClass::index(wanted));
        let entry = self.by_class.entry(class).or_default();
        *entry = entry.plus(Requested { calls: 1, bytes: size });
        self.blocks.insert(result, size);
    }
}

impl Sink for Requests {
    fn references(&mut self, _: Owner, _: &[Reference]) {}

    fn event(&mut self, event: &Event<'_>) {
        match *event {
            Event::Enter { routine, arguments, .. } => self.enter(routine, arguments),
            Event::Leave { routine, arguments, result, .. } => self.leave(routine, arguments, result),
            Event::Abandon { routine, .. } => {
                self.end(routine, None);
            }
            Event::Thread { thread } if thread != self.running => {
                let next = self.others.remove(&thread).unwrap_or_default();
                let before = std::mem::replace(&mut self.calls, next);
                self.others.insert(std::mem::replace(&mut self.running, thread), before);
            }
            Event::ThreadEnd { thread, .. } if thread == self.running => self.calls.clear(),
            Event::ThreadEnd { thread, .. } => {
                self.others.remove(&thread);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use heaptoll_reftrace::Clock;

    use super::*;

    fn call(requests: &mut Requests, routine: Routine, arguments: [u64; 3], result: u64) {
        requests.event(&Event::Enter { routine, family: 0, clock: Clock::default(), arguments, site: 0 });
        requests.event(&Event::Leave {
            clock: Clock::default(),
            routine,
            family: 0,
            arguments,
            result,
            site: 0,
            cost: Clock::default(),
            collector: Clock::default(),
            served_by: None,
        });
    }

    #[test]
    fn calls_bytes_and_live_bytes_are_those_of_the_program() {
        let mut all = Requests::new();
        call(&mut all, Routine::Malloc, [100, 0, 0], 0x1000);
        call(&mut all, Routine::Calloc, [4, 8, 0], 0x2000);
        call(&mut all, Routine::Realloc, [0x1000, 60, 0], 0x3000);
        call(&mut all, Routine::Free, [0, 0, 0], 0);
        call(&mut all, Routine::Free, [0x2000, 0, 0], 0);
        assert_eq!(all.total(), Requested { calls: 3, bytes: 192 });
        assert_eq!((all.frees(), all.most_live_bytes(), all.live_bytes()), (1, 132, 60));
        let sizes: Vec<(Option<u64>, u64)> =
            all.by_class().iter().map(|(class, one)| (class.up_to(), one.bytes)).collect();
        assert_eq!(sizes, [(Some(32), 32), (Some(64), 60), (Some(112), 100)]);
    }

    #[test]
    fn a_realloc_that_fails_keeps_its_block_and_one_to_nothing_frees_it() {
        let mut all = Requests::new();
        call(&mut all, Routine::Malloc, [100, 0, 0], 0x1000);
        call(&mut all, Routine::Realloc, [0x1000, u64::MAX, 0], 0);
        assert_eq!((all.live_bytes(), all.frees(), all.total().calls), (100, 0, 1));
        call(&mut all, Routine::Realloc, [0x1000, 0, 0], 0);
        assert_eq!((all.live_bytes(), all.frees()), (0, 1));
    }

    #[test]
    fn calls_of_two_threads_do_not_end_each_other() {
        let mut all = Requests::new();
        call(&mut all, Routine::Malloc, [8, 0, 0], 0x1000);
        all.event(&Event::Enter {
            routine: Routine::Free,
            family: 0,
            clock: Clock::default(),
            arguments: [0x1000, 0, 0],
            site: 0,
        });
        all.event(&Event::Thread { thread: 2 });
        call(&mut all, Routine::Malloc, [16, 0, 0], 0x1000);
        all.event(&Event::Thread { thread: 0 });
        all.event(&Event::Leave {
            clock: Clock::default(),
            routine: Routine::Free,
            family: 0,
            arguments: [0x1000, 0, 0],
            result: 0,
            site: 0,
            cost: Clock::default(),
            collector: Clock::default(),
            served_by: None,
        });
        assert_eq!((all.live_bytes(), all.frees()), (16, 1));
    }
}
