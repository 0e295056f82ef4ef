//! The tool in a model, and what it receives of each process.

use std::fs::File;
use std::mem::ManuallyDrop;
use std::path::PathBuf;

use loom::thread::JoinHandle;

use crate::atomic::Ordering;
use crate::flags::Flags;
use crate::layout::{EXECS, Exec, Geometry};
use crate::program::{Event, usable};
use crate::tool::map::Map;
use crate::tool::{Drained, RingEvent, Shared, Sink, Tap};
use crate::world;

/// Polls in vain, between which all other threads get to where they wait, after which nothing more comes.
const MOST_IDLE: u32 = 20;

/// Blocks of the model: each holds one group of any length.
const BLOCK_LOG2: u32 = 3;

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
