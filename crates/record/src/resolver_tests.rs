//! The resolver against a model: threads that allocate, free and resize in steps which interleave in every way, over a
//! manager that gives an address again as soon as it can. The model follows objects, not addresses.

use std::collections::{BTreeMap, HashMap};

use heaptoll_trace::{Batch, Event, Header, Reader, Settings, Writer};
use proptest::prelude::*;

use super::*;

/// What happened to an object, in the order in which it was recorded.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Truth {
    Made { object: u32, kind: EventKind, size: u64 },
    Resized { object: u32, size: u64, moved: bool },
    Ended { object: u32, kind: EventKind },
    Noted { kind: EventKind },
}

/// Where a thread is in its call.
#[derive(Debug, Clone, Copy)]
enum Step {
    Idle,
    /// The manager returned a block whose allocation is not recorded yet.
    Allocated {
        block: u64,
        object: u32,
        kind: EventKind,
        size: u64,
    },
    /// The free was recorded, the manager still has to take the block.
    Freed {
        block: u64,
    },
    /// The beginning of a resize was recorded.
    Begun {
        block: u64,
        object: Option<u32>,
        size: u64,
    },
    /// The manager resized.
    Resized {
        old: u64,
        block: u64,
        object: Option<u32>,
        size: u64,
    },
}

struct Process {
    resolver: Resolver<Vec<u8>>,
    truth: Vec<Truth>,
    steps: Vec<Step>,
    /// The manager: free addresses, the last freed on top, and the highest address so far.
    free: Vec<u64>,
    fresh: u64,
    /// Objects whose allocation was recorded, by number, that no thread is freeing or resizing.
    live: BTreeMap<u32, u64>,
    /// The object last recorded at each address and not known to have left it.
    lies: HashMap<u64, u32>,
    next: u32,
}

fn call(kind: EventKind, thread: usize, size: u64) -> Allocation {
    let thread = thread as u32;
    Allocation { kind, thread, size, usable: size + 8, align_log2: 0, site: 0, latency_ns: 0 }
}

impl Process {
    fn new(threads: usize) -> Process {
        let writer = Writer::new(Vec::new(), &Header::default(), &Settings::default()).expect("memory");
        Process {
            resolver: Resolver::new(writer, true),
            truth: Vec::new(),
            steps: vec![Step::Idle; threads],
            free: Vec::new(),
            fresh: 0x5555_0000_0000,
            live: BTreeMap::new(),
            lies: HashMap::new(),
            next: 0,
        }
    }

    fn take(&mut self) -> u64 {
        self.free.pop().unwrap_or_else(|| {
            self.fresh += 32;
            self.fresh
        })
    }

    /// An object now lies where the trace may still have another.
    fn lay(&mut self, block: u64, object: u32) {
        if let Some(lost) = self.lies.insert(block, object) {
            self.truth.push(Truth::Ended { object: lost, kind: EventKind::Lost });
        }
    }

    fn pick(&mut self, choice: u64) -> Option<(u32, u64)> {
        let count = self.live.len() as u64;
        let object = *self.live.keys().nth((choice % count.max(1)) as usize)?;
        self.live.remove(&object).map(|block| (object, block))
    }

    fn advance(&mut self, thread: usize, choice: u64) {
        self.steps[thread] = match self.steps[thread] {
            Step::Idle => self.begin(thread, choice),
            Step::Allocated { block, object, kind, size } => {
                self.lay(block, object);
                self.truth.push(Truth::Made { object, kind, size });
                self.resolver.allocate(block, &call(kind, thread, size));
                self.live.insert(object, block);
                Step::Idle
            }
            Step::Freed { block } => {
                self.free.push(block);
                Step::Idle
            }
            Step::Begun { block, object, size } => self.manage(block, object, size, choice),
            Step::Resized { old, block, object, size } => {
                self.end_resize(thread, (old, block), object, size);
                Step::Idle
            }
        };
    }

    fn begin(&mut self, thread: usize, choice: u64) -> Step {
        let size = choice % 500;
        match choice % 16 {
            0..6 => {
                let kinds = [EventKind::Malloc, EventKind::Calloc, EventKind::Aligned, EventKind::New];
                self.next += 1;
                Step::Allocated {
                    block: self.take(),
                    object: self.next,
                    kind: kinds[size as usize % 4],
                    size,
                }
            }
            6..10 => {
                let Some((object, block)) = self.pick(choice / 16) else { return Step::Idle };
                let kind = if size.is_multiple_of(2) { EventKind::Free } else { EventKind::Delete };
                self.lies.remove(&block);
                self.truth.push(Truth::Ended { object, kind });
                self.resolver.free(block, kind, thread as u32, 0);
                Step::Freed { block }
            }
            10..14 => {
                let Some((object, block)) = self.pick(choice / 16) else { return Step::Idle };
                self.lies.remove(&block);
                self.resolver.resize_begin(block, thread as u32);
                Step::Begun { block, object: Some(object), size: if size < 60 { 0 } else { size } }
            }
            14 => {
                // A block whose allocation bypassed the layer is freed or resized.
                let block = self.take();
                if size.is_multiple_of(2) {
                    self.truth.push(Truth::Noted { kind: EventKind::Foreign });
                    self.lost_there(block, thread);
                    Step::Freed { block }
                } else {
                    // The trace takes it for the object that was there, if one was.
                    let object = self.lies.remove(&block);
                    self.resize_of(block, object, thread, size)
                }
            }
            _ => {
                // A free bypasses the layer: the object is lost when the address comes up again.
                let Some((_, block)) = self.pick(choice / 16) else { return Step::Idle };
                self.free.insert(0, block);
                Step::Idle
            }
        }
    }

    fn resize_of(&mut self, block: u64, object: Option<u32>, thread: usize, size: u64) -> Step {
        self.resolver.resize_begin(block, thread as u32);
        Step::Begun { block, object, size }
    }

    /// Frees a block where the trace may still have an object.
    fn lost_there(&mut self, block: u64, thread: usize) {
        if let Some(object) = self.lies.remove(&block) {
            self.truth.pop();
            self.truth.push(Truth::Ended { object, kind: EventKind::Free });
        }
        self.resolver.free(block, EventKind::Free, thread as u32, 0);
    }

    /// The manager resizes: in place, elsewhere, not at all, or to nothing.
    fn manage(&mut self, old: u64, object: Option<u32>, size: u64, choice: u64) -> Step {
        let block = match choice % 4 {
            _ if size == 0 => 0,
            0 => old,
            1 => 0,
            _ => {
                let block = self.take();
                self.free.push(old);
                block
            }
        };
        if size == 0 {
            self.free.push(old);
        }
        Step::Resized { old, block, object, size }
    }

    fn end_resize(&mut self, thread: usize, (old, block): (u64, u64), object: Option<u32>, size: u64) {
        match (object, block) {
            (Some(object), 0) if size == 0 => {
                self.truth.push(Truth::Ended { object, kind: EventKind::ReallocFree });
            }
            (Some(object), 0) => {
                self.lay(old, object);
                self.live.insert(object, old);
                self.truth.push(Truth::Noted { kind: EventKind::Failed });
            }
            (Some(object), _) => {
                self.lay(block, object);
                self.live.insert(object, block);
                self.truth.push(Truth::Resized { object, size, moved: block != old });
            }
            (None, 0) if size == 0 => self.truth.push(Truth::Noted { kind: EventKind::Foreign }),
            (None, 0) => self.truth.push(Truth::Noted { kind: EventKind::Failed }),
            (None, _) => {
                self.truth.push(Truth::Noted { kind: EventKind::Foreign });
                self.next += 1;
                let object = self.next;
                self.lay(block, object);
                self.live.insert(object, block);
                self.truth.push(Truth::Made { object, kind: EventKind::Malloc, size });
            }
        }
        self.resolver.resize_end(block, &call(EventKind::Realloc, thread, size));
    }
}

/// All events of a trace in memory.
fn events(bytes: &[u8]) -> Vec<Event> {
    let mut reader = Reader::new(bytes).expect("a trace");
    let (mut batch, mut all) = (Batch::default(), Vec::new());
    while reader.read(&mut batch).expect("reads") {
        all.extend_from_slice(&batch.events);
    }
    assert_eq!(reader.tables().warnings, Vec::<String>::new());
    all
}

/// Whether the events are what happened: slots are names that the trace gave to objects.
fn compare(truth: &[Truth], events: &[Event]) -> Result<(), TestCaseError> {
    prop_assert_eq!(truth.len(), events.len());
    let mut names: HashMap<u32, u32> = HashMap::new();
    for (truth, event) in truth.iter().zip(events) {
        match *truth {
            Truth::Made { object, kind, size } => {
                prop_assert_eq!((event.kind, event.size, event.usable), (kind, size, size + 8));
                prop_assert_eq!(names.insert(event.slot, object), None, "{:?} is live", event);
            }
            Truth::Resized { object, size, moved } => {
                prop_assert_eq!((event.kind, event.size, event.moved), (EventKind::Realloc, size, moved));
                prop_assert_eq!(names.get(&event.slot), Some(&object));
            }
            Truth::Ended { object, kind } => {
                prop_assert_eq!(event.kind, kind);
                prop_assert_eq!(names.remove(&event.slot), Some(object));
            }
            Truth::Noted { kind } => prop_assert_eq!(event.kind, kind),
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn it_follows_every_object_through_any_interleaving(
        threads in 1..5usize,
        turns in proptest::collection::vec((any::<u8>(), any::<u64>()), 0..2000),
    ) {
        let mut process = Process::new(threads);
        for (thread, choice) in turns {
            process.advance(usize::from(thread) % threads, choice);
        }
        let live = process.resolver.live().len();
        prop_assert_eq!(live, process.lies.len());
        let (writer, defect) = process.resolver.into_parts();
        prop_assert!(defect.is_none(), "{:?}", defect);
        let bytes = writer.finish(&Default::default()).expect("memory");
        compare(&process.truth, &events(&bytes))?;
    }
}

#[test]
fn an_address_that_another_thread_gets_while_it_is_being_resized_stays_the_others() {
    let mut process = Process::new(2);
    let resolver = &mut process.resolver;
    resolver.allocate(0x1000, &call(EventKind::Malloc, 0, 10));
    resolver.resize_begin(0x1000, 0);
    resolver.allocate(0x1000, &call(EventKind::Malloc, 1, 20));
    resolver.resize_end(0x2000, &call(EventKind::Realloc, 0, 30));
    resolver.free(0x1000, EventKind::Free, 1, 0);
    resolver.free(0x2000, EventKind::Free, 0, 0);
    let (writer, _) = process.resolver.into_parts();
    let events = events(&writer.finish(&Default::default()).expect("memory"));
    let recorded: Vec<_> = events.iter().map(|event| (event.kind, event.slot)).collect();
    let wanted = [
        (EventKind::Malloc, 0),
        (EventKind::Malloc, 1),
        (EventKind::Realloc, 0),
        (EventKind::Free, 1),
        (EventKind::Free, 0),
    ];
    assert_eq!(recorded, wanted);
    assert!(events[2].moved);
}

#[test]
fn a_resize_within_a_resize_of_the_same_thread_ends_first() {
    let mut process = Process::new(1);
    let resolver = &mut process.resolver;
    resolver.allocate(0x1000, &call(EventKind::Malloc, 0, 1));
    resolver.allocate(0x2000, &call(EventKind::Malloc, 0, 2));
    resolver.resize_begin(0x1000, 0);
    // A signal handler's.
    resolver.resize_begin(0x2000, 0);
    resolver.resize_end(0x2000, &call(EventKind::Realloc, 0, 4));
    resolver.resize_end(0x3000, &call(EventKind::Realloc, 0, 3));
    // An end that has no beginning: from before the record.
    resolver.resize_end(0x4000, &call(EventKind::Realloc, 0, 5));
    let (writer, _) = process.resolver.into_parts();
    let events = events(&writer.finish(&Default::default()).expect("memory"));
    let recorded: Vec<_> =
        events[2..].iter().map(|event| (event.kind, event.slot, event.size, event.moved)).collect();
    let wanted = [
        (EventKind::Realloc, 1, 4, false),
        (EventKind::Realloc, 0, 3, true),
        (EventKind::Foreign, 0, 0, false),
        (EventKind::Malloc, 2, 5, false),
    ];
    assert_eq!(recorded, wanted);
}
