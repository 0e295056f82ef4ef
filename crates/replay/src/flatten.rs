//! From a trace to a program: calls become words, each in the stream of its thread, with words for what threads must
//! wait for in between.
//!
//! *Exact* order is a baton: the stream of a thread names before each of its runs the run's number, and after it the
//! next thread.
//!
//! *Per thread*, a call waits for one thing only: that the last call on its object was made, when another thread made
//! it. Slots are assigned again for that. The trace reuses a slot as soon as it is free, whichever thread freed it, so
//! that nearly every allocation of one thread would wait for a free of another. Here a thread gets the slots that it
//! freed itself; only when it has none, and enough lie with others, it gets the one that lies there longest, and waits
//! for that free. Each call on a slot moves its *generation*, and a wait names the generation it needs: which object is
//! in a slot is never in doubt. A wait is always for a call that was recorded earlier, so the earliest call not made
//! yet never waits, and no two threads wait for each other.

use std::collections::{HashMap, VecDeque};

use heaptoll_trace::{Event, EventKind};

use crate::error::ReplayError;
use crate::program::{BLOCK, Extent, Facts, Index, Order, Program, Words};
use crate::source::Source;
use crate::word::{self, Operation};

/// How a trace is made ready.
#[derive(Debug, Clone)]
pub struct Flattening {
    /// Order of threads.
    pub order: Order,
    /// Copies of the trace, interleaved.
    pub copies: u32,
    /// Events that a copy lags behind the one before.
    pub lag: u64,
    /// Events between two marks.
    pub mark_every: u64,
    /// In place of these: marks after these events of the trace, those that are left out counted; in order. Then slots
    /// are those of the trace. Only of one copy in exact order.
    pub mark_after: Option<Vec<u64>>,
    /// Most bytes of the program that are kept in memory; more go to the temporary folder.
    pub most_in_memory: u64,
}

impl Default for Flattening {
    fn default() -> Flattening {
        Flattening {
            order: Order::Exact,
            copies: 1,
            lag: 0,
            mark_every: 4096,
            mark_after: None,
            most_in_memory: u64::MAX,
        }
    }
}

/// Makes a program of as many sources as there are copies, each giving the same calls.
///
/// # Errors
/// The trace cannot be read, or there is no space for the program.
pub fn flatten(mut sources: Vec<Box<dyn Source + '_>>, how: &Flattening) -> Result<Program, ReplayError> {
    let mut flattener = Flattener::new(how)?;
    if let [source] = sources.as_mut_slice() {
        while let Some(events) = source.events()? {
            for event in events {
                flattener.take(0, event)?;
                flattener.mark_after_event()?;
            }
        }
        return flattener.finish();
    }
    // One event of each copy in turn; a copy joins in when the one before it is `lag` events ahead.
    let mut copies: Vec<Copy> = sources.into_iter().map(Copy::new).collect();
    let mut round = 0u64;
    loop {
        let mut any = false;
        for (number, copy) in copies.iter_mut().enumerate() {
            if round < how.lag.saturating_mul(number as u64) {
                any = true;
                continue;
            }
            if let Some(event) = copy.next()? {
                flattener.take(number, &event)?;
                any = true;
            }
        }
        if !any {
            return flattener.finish();
        }
        round += 1;
    }
}

/// One of several interleaved sources.
struct Copy<'a> {
    source: Box<dyn Source + 'a>,
    events: Vec<Event>,
    at: usize,
}

impl<'a> Copy<'a> {
    fn new(source: Box<dyn Source + 'a>) -> Copy<'a> {
        Copy { source, events: Vec::new(), at: 0 }
    }

    fn next(&mut self) -> Result<Option<Event>, ReplayError> {
        if self.at == self.events.len() {
            self.events.clear();
            self.at = 0;
            if let Some(events) = self.source.events()? {
                self.events.extend_from_slice(events);
            }
        }
        let event = self.events.get(self.at).copied();
        self.at += usize::from(event.is_some());
        Ok(event)
    }
}

/// Bytes kept of each object that lives at once with others: here, and in the tables of the driver.
pub const EACH_OBJECT: usize = size_of::<Object>() + size_of::<u64>() + 24;

/// An object of the trace.
#[derive(Clone, Copy, Default)]
struct Object {
    /// Its slot in the replay, plus 1; 0 when there is none.
    slot: u32,
    /// The thread that called for it last.
    thread: u32,
    size: u64,
}

/// A thread of the replay.
#[derive(Default)]
struct Thread {
    words: Vec<u64>,
    extents: Vec<Extent>,
    /// Slots that it freed, the last at the back.
    free: VecDeque<u32>,
}

struct Flattener {
    order: Order,
    mark_every: u64,
    words: Words,
    /// By the trace's number.
    numbers: HashMap<u32, u32>,
    last_number: Option<(u32, u32)>,
    threads: Vec<Thread>,
    current: usize,
    /// Of exact order: number of the present run.
    run: u64,
    /// By copy and slot.
    objects: Vec<Vec<Object>>,
    /// By slot of the replay: calls so far.
    generations: Vec<u64>,
    free_slots: u64,
    live_objects: u64,
    most_live_objects: u64,
    live_bytes: u64,
    unmarked: u64,
    marks: u64,
    /// Events taken, and after which of them marks are wanted, the next one last.
    taken: u64,
    wanted_marks: Option<Vec<u64>>,
    /// Where marks were wanted and are.
    marked_after: Vec<u64>,
    waits: u64,
    facts: Facts,
}

/// More slots than are needed at once, so that threads seldom take each other's: a quarter, and these.
const SPARE_SLOTS: u64 = 1 << 14;

impl Flattener {
    fn new(how: &Flattening) -> Result<Flattener, ReplayError> {
        Ok(Flattener {
            order: how.order,
            mark_every: how.mark_every.max(1),
            words: Words::create(how.most_in_memory)?,
            numbers: HashMap::new(),
            last_number: None,
            threads: Vec::new(),
            current: 0,
            run: 0,
            objects: vec![Vec::new(); how.copies.max(1) as usize],
            generations: Vec::new(),
            free_slots: 0,
            live_objects: 0,
            most_live_objects: 0,
            live_bytes: 0,
            unmarked: 0,
            marks: 0,
            taken: 0,
            wanted_marks: how.mark_after.as_ref().map(|wanted| wanted.iter().rev().copied().collect()),
            marked_after: Vec::new(),
            waits: 0,
            facts: Facts::default(),
        })
    }

    #[inline]
    fn take(&mut self, copy: usize, event: &Event) -> Result<(), ReplayError> {
        match event.kind {
            EventKind::Failed => self.facts.failed += 1,
            EventKind::Foreign => self.facts.foreign += 1,
            kind if kind.allocates() => {
                if self.object(copy, event.slot).slot != 0 {
                    self.facts.overtaken += 1;
                    self.enter(event.thread)?;
                    self.free(copy, event.slot)?;
                }
                self.enter(event.thread)?;
                self.allocate(copy, event)?;
            }
            EventKind::Realloc => {
                if self.object(copy, event.slot).slot == 0 {
                    self.facts.unknown += 1;
                } else {
                    self.enter(event.thread)?;
                    self.resize(copy, event)?;
                }
            }
            _ => {
                if self.object(copy, event.slot).slot == 0 {
                    self.facts.unknown += 1;
                } else {
                    self.enter(event.thread)?;
                    self.free(copy, event.slot)?;
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn object(&mut self, copy: usize, slot: u32) -> &mut Object {
        let objects = &mut self.objects[copy];
        let slot = slot as usize;
        if slot >= objects.len() {
            objects.resize(slot + 1, Object::default());
        }
        &mut objects[slot]
    }

    /// Makes the thread of the next call the present one.
    #[inline]
    fn enter(&mut self, trace_thread: u32) -> Result<(), ReplayError> {
        let thread = match self.last_number {
            Some((number, thread)) if number == trace_thread => thread as usize,
            _ => self.thread(trace_thread)?,
        };
        if thread != self.current {
            if self.order == Order::Exact {
                let next = thread as u32;
                self.emit(self.current, Operation::Pass { thread: next, last: false })?;
                self.run += 1;
                let run = self.run;
                self.emit(thread, Operation::Turn { run })?;
            }
            self.current = thread;
        }
        Ok(())
    }

    fn thread(&mut self, trace_thread: u32) -> Result<usize, ReplayError> {
        let next = self.threads.len() as u32;
        let thread = *self.numbers.entry(trace_thread).or_insert(next);
        if thread == next {
            self.threads.push(Thread::default());
            // The process's first thread is there already; another begins when the call before its first was made.
            if next > 0 {
                self.emit(self.current, Operation::Start { thread })?;
            }
        }
        self.last_number = Some((trace_thread, thread));
        Ok(thread as usize)
    }

    #[inline]
    fn emit(&mut self, thread: usize, operation: Operation) -> Result<(), ReplayError> {
        let stream = &mut self.threads[thread];
        operation.write(&mut stream.words);
        if stream.words.len() >= BLOCK {
            stream.extents.push(self.words.append(&stream.words)?);
            stream.words.clear();
        }
        Ok(())
    }

    /// Counts a call that was emitted, and emits a mark where one is due.
    #[inline]
    fn count_call(&mut self) -> Result<(), ReplayError> {
        self.facts.calls += 1;
        self.unmarked += 1;
        if self.unmarked == self.mark_every && self.wanted_marks.is_none() {
            self.unmarked = 0;
            self.marks += 1;
            self.emit(self.current, Operation::Mark)?;
        }
        Ok(())
    }

    /// Counts an event, and emits a mark where one is wanted after it. Before the first call there is nothing to mark.
    #[inline]
    fn mark_after_event(&mut self) -> Result<(), ReplayError> {
        self.taken += 1;
        let taken = self.taken;
        let Some(wanted) = &mut self.wanted_marks else { return Ok(()) };
        if wanted.last().is_none_or(|next| *next > taken) {
            return Ok(());
        }
        while wanted.pop_if(|next| *next <= taken).is_some() {}
        if self.threads.is_empty() {
            return Ok(());
        }
        self.marks += 1;
        self.marked_after.push(taken);
        self.emit(self.current, Operation::Mark)
    }

    /// Waits for the last call on a slot, when another thread made it.
    #[inline]
    fn follow(&mut self, slot: u32, thread: u32) -> Result<(), ReplayError> {
        if thread as usize != self.current {
            self.facts.crossings += 1;
            if self.order == Order::PerThread {
                self.wait(slot)?;
            }
        }
        Ok(())
    }

    fn wait(&mut self, slot: u32) -> Result<(), ReplayError> {
        self.waits += 1;
        let generation = self.generations[slot as usize];
        self.emit(self.current, Operation::Wait { slot, generation })
    }

    /// A slot for a new object of the present thread, which has this one in the trace.
    #[inline]
    fn slot(&mut self, in_trace: u32) -> Result<u32, ReplayError> {
        if self.wanted_marks.is_some() {
            let slots = (in_trace as usize).saturating_add(1);
            if self.generations.len() < slots {
                self.generations.resize(slots, 0);
            }
            return if in_trace < u32::MAX { Ok(in_trace) } else { Err(ReplayError::TooManyObjects) };
        }
        let pool = match self.order {
            Order::Exact => 0,
            Order::PerThread => self.current,
        };
        if let Some(slot) = self.threads[pool].free.pop_back() {
            self.free_slots -= 1;
            return Ok(slot);
        }
        let enough = self.most_live_objects + self.most_live_objects / 4 + SPARE_SLOTS;
        if self.free_slots > 0 && self.generations.len() as u64 >= enough {
            // Only per thread: in exact order there is one pool, and it is empty.
            let richest = (0..self.threads.len()).max_by_key(|thread| self.threads[*thread].free.len());
            if let Some(slot) = richest.and_then(|thread| self.threads[thread].free.pop_front()) {
                self.free_slots -= 1;
                self.wait(slot)?;
                return Ok(slot);
            }
        }
        let slot = u32::try_from(self.generations.len()).ok().filter(|slot| *slot < u32::MAX);
        self.generations.push(0);
        slot.ok_or(ReplayError::TooManyObjects)
    }

    #[inline]
    fn allocate(&mut self, copy: usize, event: &Event) -> Result<(), ReplayError> {
        let slot = self.slot(event.slot)?;
        let size = event.size;
        let operation = match event.kind {
            EventKind::Calloc => Operation::Calloc { slot, size },
            EventKind::Aligned | EventKind::New if event.align_log2 >= WORD_LOG2 => {
                Operation::Aligned { slot, size, align_log2: event.align_log2 }
            }
            _ => Operation::Malloc { slot, size },
        };
        self.emit(self.current, operation)?;
        self.generations[slot as usize] += 1;
        let thread = self.current as u32;
        *self.object(copy, event.slot) = Object { slot: slot + 1, thread, size };
        self.facts.allocations += 1;
        self.facts.allocated_bytes = self.facts.allocated_bytes.saturating_add(size);
        self.live_bytes = self.live_bytes.saturating_add(size);
        self.facts.max_live_bytes = self.facts.max_live_bytes.max(self.live_bytes);
        self.live_objects += 1;
        self.most_live_objects = self.most_live_objects.max(self.live_objects);
        self.count_call()
    }

    #[inline]
    fn resize(&mut self, copy: usize, event: &Event) -> Result<(), ReplayError> {
        let Object { slot, thread, size: old } = *self.object(copy, event.slot);
        let slot = slot - 1;
        let size = event.size;
        self.follow(slot, thread)?;
        self.emit(self.current, Operation::Realloc { slot, size })?;
        self.generations[slot as usize] += 1;
        let thread = self.current as u32;
        *self.object(copy, event.slot) = Object { slot: slot + 1, thread, size };
        self.facts.resizes += 1;
        self.facts.allocated_bytes = self.facts.allocated_bytes.saturating_add(size.saturating_sub(old));
        self.live_bytes = self.live_bytes.saturating_sub(old).saturating_add(size);
        self.facts.max_live_bytes = self.facts.max_live_bytes.max(self.live_bytes);
        self.count_call()
    }

    #[inline]
    fn free(&mut self, copy: usize, object: u32) -> Result<(), ReplayError> {
        let Object { slot, thread, size } = std::mem::take(self.object(copy, object));
        let slot = slot - 1;
        self.follow(slot, thread)?;
        self.emit(self.current, Operation::Free { slot })?;
        self.generations[slot as usize] += 1;
        let pool = match self.order {
            Order::Exact => 0,
            Order::PerThread => self.current,
        };
        if self.wanted_marks.is_none() {
            self.threads[pool].free.push_back(slot);
            self.free_slots += 1;
        }
        self.facts.frees += 1;
        self.live_bytes = self.live_bytes.saturating_sub(size);
        self.live_objects -= 1;
        self.count_call()
    }

    fn finish(mut self) -> Result<Program, ReplayError> {
        for (number, thread) in self.threads.iter_mut().enumerate() {
            // A thread that does not hold the baton has ended with passing it on.
            if self.order == Order::Exact && number != self.current {
                match (thread.words.last_mut(), thread.extents.last()) {
                    (Some(pass), _) => *pass = word::last(*pass),
                    (None, Some(extent)) => self.words.change_last(*extent, word::last)?,
                    (None, None) => {}
                }
            }
            if !thread.words.is_empty() {
                thread.extents.push(self.words.append(&thread.words)?);
                thread.words = Vec::new();
            }
        }
        let mut left: Vec<u32> = self
            .objects
            .iter()
            .flatten()
            .filter(|object| object.slot != 0)
            .map(|object| object.slot - 1)
            .collect();
        left.sort_unstable();
        let mut leftovers = Vec::new();
        let mut words = Vec::with_capacity(BLOCK.min(left.len()));
        for slots in left.chunks(BLOCK) {
            words.clear();
            slots.iter().for_each(|slot| Operation::Free { slot: *slot }.write(&mut words));
            leftovers.push(self.words.append(&words)?);
        }
        let index = Index {
            streams: self.threads.into_iter().map(|thread| thread.extents).collect(),
            leftovers,
            generations: self.order == Order::PerThread && self.waits > 0,
            slots: self.generations.len() as u32,
            marks: self.marks,
        };
        let facts = Facts {
            left_objects: left.len() as u64,
            left_bytes: self.live_bytes,
            threads: index.streams.len() as u32,
            ..self.facts
        };
        Ok(Program::new(self.words.finish(), index, facts, self.order).marked_after(self.marked_after))
    }
}

/// `posix_memalign` takes no alignment below a word's; any `malloc` gives it.
const WORD_LOG2: u8 = 3;

#[cfg(test)]
#[path = "flatten_tests.rs"]
mod tests;
