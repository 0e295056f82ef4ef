//! A recording in a model: programs whose threads record numbered events, and the tool that receives them.

use std::cell::Cell;
use std::fs::File;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;

use loom::thread::JoinHandle;

use crate::atomic::Ordering;
use crate::attachment::FactsHook;
use crate::flags::Flags;
use crate::layout::{EXECS, Exec, Geometry};
use crate::rings::Rings;
use crate::thread_word::ThreadWord;
use crate::tool::map::Map;
use crate::tool::{Drained, RingEvent, Shared, Sink, Tap};
use crate::world::{self, Killed};

/// Polls in vain, between which all other threads get to where they wait, after which nothing more comes.
const MOST_IDLE: u32 = 20;

/// Blocks of the model: each holds one group of any length.
const BLOCK_LOG2: u32 = 3;

loom::thread_local! {
    static WORD: Cell<usize> = Cell::new(0);
}

/// The threads' words.
pub struct Word;

impl ThreadWord for Word {
    fn get() -> usize {
        WORD.with(Cell::get)
    }
    fn set(word: usize) {
        WORD.with(|cell| cell.set(word));
    }
}

/// One process of the recording.
#[derive(Clone, Copy)]
pub struct Program {
    rings: &'static Rings<Word>,
    pid: i32,
}

/// A registered thread, to be started.
#[derive(Clone, Copy)]
pub struct Registered {
    program: Program,
    tid: i32,
    word: usize,
}

/// What a thread records. Each is recognised when it arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A block: a group of several words.
    Alloc(u64),
    /// Its end: one word.
    Free(u64),
}

impl Program {
    /// A process that has not attached.
    pub fn new(pid: i32) -> Program {
        Program { rings: world::own(Rings::new()), pid }
    }

    /// Registers a thread of the program before it runs.
    pub fn register(self, tid: i32) -> Registered {
        let (before, word) = (world::numbers(), Word::get());
        world::set_numbers(self.pid, tid);
        Word::set(0);
        assert!(self.rings.attach(), "there is a ring");
        let registered = Registered { program: self, tid, word: Word::get() };
        world::set_numbers(before.0, before.1);
        Word::set(word);
        registered
    }

    /// A thread that registers at its first event.
    pub fn new_thread(self, tid: i32) -> Registered {
        Registered { program: self, tid, word: 0 }
    }

    /// Records an event of the calling thread.
    pub fn record(self, event: Event) {
        let Some(mut producer) = self.rings.thread() else { return };
        match event {
            Event::Alloc(number) => {
                producer.alloc(64 * number as usize, number as usize, usable(number) as usize);
            }
            Event::Free(number) => producer.free(64 * number as usize, false),
        }
    }

    /// Sets the hook that answers requests for facts.
    pub fn answer_with(self, hook: FactsHook) {
        self.rings.answer_with(hook);
    }
}

fn usable(number: u64) -> u64 {
    number + 100
}

impl Registered {
    /// Starts the thread. When it ends or is killed, the tool can see that.
    pub fn start(self, body: impl FnOnce(Program) + 'static) -> JoinHandle<()> {
        loom::thread::spawn(move || {
            world::set_numbers(self.program.pid, self.tid);
            Word::set(self.word);
            if let Err(reason) = catch_unwind(AssertUnwindSafe(|| body(self.program)))
                && !reason.is::<Killed>()
            {
                resume_unwind(reason);
            }
            world::end(self.tid);
        })
    }

    /// Records events before other threads run, as if the thread did.
    pub fn record(self, events: &[Event]) {
        let (before, word) = (world::numbers(), Word::get());
        world::set_numbers(self.program.pid, self.tid);
        Word::set(self.word);
        events.iter().for_each(|&event| self.program.record(event));
        world::set_numbers(before.0, before.1);
        Word::set(word);
    }
}

/// The tool, and what it has received of each process.
pub struct Tool {
    pub shared: ManuallyDrop<Shared>,
    pub taps: ManuallyDrop<Vec<Tap>>,
    /// By tap: the events with their threads.
    pub received: Vec<Received>,
    /// The results of all drains: events that never arrived.
    pub missing: u64,
}

/// The events of a process, in the order in which they were delivered.
#[derive(Default)]
pub struct Received(pub Vec<(u32, Event)>);

impl Sink for Received {
    fn event(&mut self, thread: u32, event: RingEvent<'_>) {
        match event {
            RingEvent::Alloc { address, size, usable: found, .. } => {
                assert!(address == 64 * size && found == usable(size), "a group arrives whole");
                self.0.push((thread, Event::Alloc(size)));
            }
            RingEvent::Free { address, .. } => {
                assert!(address != 0 && address % 64 == 0, "a word arrives whole");
                self.0.push((thread, Event::Free(address / 64)));
            }
            RingEvent::Time { .. } => {}
            other => panic!("an event that was not recorded arrives: {other:?}"),
        }
    }
    fn thread(&mut self, _thread: u32, _tid: i32) {}
}

impl Tool {
    /// Makes the file: so many process entries and rings of `2^ring_log2` words.
    pub fn new(processes: usize, rings: usize, ring_log2: u32) -> Tool {
        let geometry = Geometry { processes, rings, ring_log2, block_log2: BLOCK_LOG2 };
        let bytes = geometry.bytes(rings).next_multiple_of(crate::layout::PAGE);
        let base = world::begin(bytes);
        // Notes of execs are not part of the model.
        let execs = base.addr() + geometry.execs();
        world::leave_out(execs..execs + EXECS * size_of::<Exec>());
        let file = File::open("/dev/null").expect("it is there");
        let map = Map::over(base, PathBuf::new(), file, geometry, Flags::default());
        Tool {
            shared: ManuallyDrop::new(Shared::over(map, 1 << 20)),
            taps: ManuallyDrop::new(Vec::new()),
            received: Vec::new(),
            missing: 0,
        }
    }

    /// From now on threads run with the tool.
    pub fn threads_begin(&self) {
        world::threads_begin();
    }

    /// Finds processes that have registered; returns whether there were any.
    pub fn arrive(&mut self) -> bool {
        let arrivals = self.shared.arrivals();
        for arrival in &arrivals {
            self.taps.push(Tap::new(&self.shared, arrival.index));
            self.received.push(Received::default());
        }
        !arrivals.is_empty()
    }

    /// Receives what is there.
    pub fn poll(&mut self) -> Drained {
        let mut all = Drained { idle: true, ..Drained::default() };
        for (tap, received) in self.taps.iter_mut().zip(&mut self.received) {
            let drained = tap.drain(usize::MAX, received);
            all.words += drained.words;
            self.missing += drained.missing;
        }
        all
    }

    /// Does something on a thread of its own.
    pub fn concurrently(self, action: impl FnOnce(&mut Tool) + 'static) -> JoinHandle<Tool> {
        loom::thread::spawn(move || {
            let mut tool = self;
            action(&mut tool);
            tool
        })
    }

    /// Receives until there are so many events of all processes.
    pub fn receive(&mut self, events: usize) {
        let mut idle = 0;
        while self.received.iter().map(|received| received.0.len()).sum::<usize>() < events {
            if self.poll().words == 0 {
                idle += 1;
                assert!(idle < MOST_IDLE, "what is recorded arrives");
                loom::thread::yield_now();
            }
        }
        self.check();
    }

    /// Receives what is there when no thread runs any more.
    pub fn receive_rest(&mut self) {
        self.arrive();
        for _ in 0..4 {
            self.poll();
        }
        assert_eq!(self.poll().words, 0, "a drain ends");
        self.check();
    }

    /// Receives the rest of a process that has ended.
    pub fn end(&mut self, process: i32) {
        world::end(process);
        for (tap, received) in self.taps.iter_mut().zip(&mut self.received) {
            self.missing += tap.end(received).missing;
        }
    }

    /// What holds after every recording without deaths.
    pub fn check(&self) {
        assert_eq!(self.missing, 0, "no event is given up");
        for tap in self.taps.iter() {
            tap.check().unwrap_or_else(|defect| panic!("{defect}"));
            assert_eq!(tap.losses().damaged, 0, "nothing is taken for damage");
        }
    }

    /// The events of one process.
    pub fn events(&self, process: usize) -> Vec<Event> {
        self.received[process].0.iter().map(|&(_, event)| event).collect()
    }

    /// The numbers that the threads of a process entry have taken.
    pub fn numbers_taken(&self, entry: usize) -> u64 {
        self.shared.map.process(entry).sequence.0.load(Ordering::Acquire)
    }

    /// The events of the process that recorded this one.
    pub fn events_with(&self, event: Event) -> Vec<Event> {
        let all = (0..self.received.len()).map(|process| self.events(process));
        all.into_iter().find(|events| events.contains(&event)).unwrap_or_default()
    }
}

impl Drop for Tool {
    fn drop(&mut self) {
        // loom cannot take steps while it unwinds.
        if !std::thread::panicking() {
            // SAFETY: they are dropped here, once, and not used afterwards.
            unsafe {
                ManuallyDrop::drop(&mut self.taps);
                ManuallyDrop::drop(&mut self.shared);
            }
        }
    }
}
