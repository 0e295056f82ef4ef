//! A made-up trace with pointers, and a reader of it that checks that every event is a legal one.

use std::collections::{HashMap, HashSet};

use heaptoll_trace::graph::{
    Access, Allocation, AllocationKind, Batch, Edge, Event, FreeCause, LastTouch, Reader, Root, RootKind,
    Writer,
};
use heaptoll_trace::{Ending, Gap, GraphSettings, Header, Settings, TraceError};

use super::{Numbers, sites};

/// A file, and the events written into it.
pub struct Made {
    pub bytes: Vec<u8>,
    pub events: Vec<Event>,
}

struct Random {
    writer: Writer<Vec<u8>>,
    numbers: Numbers,
    live: Vec<(u64, u64)>,
    events: Vec<Event>,
}

impl Random {
    fn any(&mut self) -> Option<(u64, u64)> {
        let at = self.numbers.below(self.live.len() as u64) as usize;
        self.live.get(at).copied()
    }

    fn byte(&mut self, size: u64) -> u64 {
        if self.numbers.below(3) == 0 { 0 } else { self.numbers.below(size) }
    }

    fn allocate(&mut self, thread: u32) {
        let size =
            if self.numbers.below(50) == 0 { self.numbers.below(1 << 40) } else { self.numbers.below(200) };
        let kind =
            [AllocationKind::Plain, AllocationKind::Zeroed, AllocationKind::Aligned, AllocationKind::Resized]
                [self.numbers.below(4) as usize];
        let align_log2 = if kind == AllocationKind::Aligned { 1 + self.numbers.below(12) as u8 } else { 0 };
        let site = self.numbers.below(40) as u32;
        let call = Allocation { size, site, thread, kind, align_log2 };
        let object = self.writer.allocate(&call);
        self.events.push(Event::Allocate { object, size, site, thread, kind, align_log2 });
        self.live.push((object, size));
    }

    fn last_touch(&mut self) -> Option<LastTouch> {
        let (event, clock_bytes) = (self.writer.events(), self.writer.clock_bytes());
        let touch = LastTouch {
            event: event - self.numbers.below(event + 1),
            clock_bytes: clock_bytes - self.numbers.below(clock_bytes + 1),
        };
        (self.numbers.below(5) != 0).then_some(touch)
    }

    fn free(&mut self, thread: u32) {
        if self.live.is_empty() {
            return;
        }
        let at = self.numbers.below(self.live.len() as u64) as usize;
        let (object, size) = self.live.swap_remove(at);
        let cause = [FreeCause::Free, FreeCause::Resized, FreeCause::Lost][self.numbers.below(3) as usize];
        let last_touch = self.last_touch();
        self.writer.free(object, size, thread, cause, last_touch);
        self.events.push(Event::Free { object, thread, cause, last_touch });
    }

    fn roots(&mut self) {
        let kinds = [RootKind::Register, RootKind::Stack, RootKind::Static, RootKind::Mapping];
        let mut roots = Vec::new();
        for _ in 0..self.numbers.below(30) {
            let Some((object, size)) = self.any() else { break };
            let kind = kinds[self.numbers.below(4) as usize];
            roots.push(Root { object, kind, offset: self.byte(size) });
        }
        self.events.push(Event::RootsBegin { clock_bytes: self.writer.clock_bytes() });
        self.events.extend(roots.iter().map(|root| Event::Root {
            object: root.object,
            offset: root.offset,
            kind: root.kind,
        }));
        self.events.push(Event::RootsEnd { whole: true });
        self.writer.roots(&roots);
    }

    fn reference(&mut self, thread: u32) {
        let Some((object, size)) = self.any() else { return };
        match self.numbers.below(8) {
            0 => {
                self.writer.request_begin(thread);
                self.events.push(Event::RequestBegin { thread });
            }
            1 => {
                self.writer.request_end(thread);
                self.events.push(Event::RequestEnd { thread });
            }
            number => {
                let offset = self.byte(size);
                let size = [1, 2, 4, 8, 16, 32, 64, 1000][number as usize];
                let access = Access { object, offset, size, store: number % 2 == 0, thread };
                self.writer.access(&access);
                self.events.push(Event::Access { object, offset, size, store: access.store, thread });
            }
        }
    }

    fn pointer(&mut self) {
        let (Some((from, from_size)), Some((to, to_size))) = (self.any(), self.any()) else { return };
        let (offset, to_offset) = (self.byte(from_size), self.byte(to_size));
        match self.numbers.below(6) {
            0 => {
                self.writer.clear(from, offset);
                self.events.push(Event::Clear { from, offset });
            }
            1 => {
                self.writer.touch(from);
                self.events.push(Event::Touch { object: from });
            }
            _ => {
                self.writer.edge(&Edge { from, offset, to, to_offset });
                self.events.push(Event::Edge { from, offset, to, to_offset });
            }
        }
    }
}

/// A trace of about `steps` events in chunks of `per_chunk`. With `full`, also references, sites, a gap, a table.
pub fn graph(seed: u64, steps: usize, per_chunk: u32, full: bool) -> Made {
    let graph = GraphSettings { page_bytes: 4096, roots_every_bytes: 100, references: full };
    let header =
        Header { command: vec!["program".into()], sites: true, graph: Some(graph), ..Header::default() };
    let settings = Settings { level: i32::from(full), events_per_chunk: per_chunk };
    let writer = Writer::new(Vec::new(), &header, &settings).unwrap();
    let mut random = Random { writer, numbers: Numbers(seed | 1), live: Vec::new(), events: Vec::new() };
    for _ in 0..steps {
        let thread = (random.numbers.below(20) / 18) as u32;
        match random.numbers.below(20) {
            0..=4 => random.allocate(thread),
            5..=7 => random.free(thread),
            8 => random.roots(),
            9..=10 if full => random.reference(thread),
            _ => random.pointer(),
        }
    }
    let live = std::mem::take(&mut random.live);
    for (object, _) in live {
        let last_touch = random.last_touch();
        random.writer.kept(object, last_touch);
        random.events.push(Event::Kept { object, last_touch });
    }
    if full {
        random.writer.gap(&Gap { why: "a thread's ring was lost".into(), events: None });
        random.writer.sites(&sites());
        random.writer.extra("scan", &vec![1, 2, 3]);
    }
    let ending = Ending { how: "exited with status 0".into(), ..Ending::default() };
    Made { bytes: random.writer.finish(&ending).unwrap(), events: random.events }
}

/// What a reader found.
#[derive(Debug, Default)]
pub struct Found {
    pub events: Vec<Event>,
    pub warnings: Vec<String>,
    pub gaps: usize,
    pub after_gap: bool,
}

/// Reads all of it, and checks what a reader may rely on.
pub fn read_graph(bytes: &[u8]) -> Result<Found, TraceError> {
    let mut reader = Reader::with_name(bytes, "the test")?;
    let (mut batch, mut found) = (Batch::default(), Found::default());
    let mut rules = Rules::default();
    while reader.read(&mut batch)? {
        found.after_gap |= batch.after_gap;
        batch.events.iter().for_each(|event| rules.check(event, batch.next_event, batch.objects));
        found.events.append(&mut batch.events);
    }
    assert!(!rules.in_roots, "the last root point does not end");
    found.warnings = reader.tables().warnings.clone();
    found.gaps = reader.tables().gaps.len();
    Ok(found)
}

/// The rules that every sequence of events follows.
#[derive(Default)]
struct Rules {
    live: HashMap<u64, u64>,
    seen: HashSet<u64>,
    in_roots: bool,
}

impl Rules {
    fn has(&self, object: u64, offset: u64) {
        let size = self.live.get(&object).expect("a live object");
        assert!(offset < (*size).max(1), "object {object} has {size} bytes and not byte {offset}");
    }

    fn check(&mut self, event: &Event, next_event: u64, objects: u64) {
        match *event {
            Event::Allocate { object, size, .. } => {
                assert!(self.seen.insert(object), "{object} is allocated twice");
                assert!(object < objects);
                self.live.insert(object, size);
            }
            Event::Free { object, last_touch, .. } | Event::Kept { object, last_touch } => {
                assert!(self.live.remove(&object).is_some(), "{object} ends and is not live");
                assert!(last_touch.is_none_or(|touch| touch.event <= next_event));
            }
            Event::Edge { from, offset, to, to_offset } => {
                self.has(from, offset);
                self.has(to, to_offset);
            }
            Event::Clear { from, offset } => self.has(from, offset),
            Event::Touch { object } => self.has(object, 0),
            Event::Access { object, offset, .. } => self.has(object, offset),
            Event::RootsBegin { .. } => assert!(!std::mem::replace(&mut self.in_roots, true)),
            Event::Root { object, offset, .. } => {
                assert!(self.in_roots);
                self.has(object, offset);
            }
            Event::RootsEnd { .. } => assert!(std::mem::take(&mut self.in_roots)),
            Event::RequestBegin { .. } | Event::RequestEnd { .. } => {}
        }
    }
}
