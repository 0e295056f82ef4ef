//! Made-up traces: what a program does is stated by calls, and events and last touches follow from them.

#![allow(dead_code, reason = "each test uses some of it")]

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use heaptoll_trace::graph::{
    Access, Allocation, AllocationKind, Edge, FreeCause, LastTouch, Root, RootKind, Writer,
};
use heaptoll_trace::{Ending, Header, Output, Settings};

pub mod gcbench;

/// A trace that is being made.
pub struct Scenario<W> {
    writer: Writer<W>,
    live: HashMap<u64, Object>,
    /// Objects touched or allocated since the last root point.
    recent: HashSet<u64>,
}

#[derive(Default)]
struct Object {
    size: u64,
    touch: Option<LastTouch>,
}

impl<W: Output> Scenario<W> {
    pub fn begin(out: W) -> Scenario<W> {
        let header = Header { command: vec!["scenario".into()], ..Header::default() };
        let writer = Writer::new(out, &header, &Settings::default()).unwrap();
        Scenario { writer, live: HashMap::new(), recent: HashSet::new() }
    }

    pub fn allocate(&mut self, size: u64) -> u64 {
        let (kind, align_log2) = (AllocationKind::Plain, 0);
        let object = self.writer.allocate(&Allocation { size, site: 0, thread: 0, kind, align_log2 });
        self.live.insert(object, Object { size, touch: None });
        self.recent.insert(object);
        object
    }

    pub fn touch(&mut self, object: u64) {
        if self.recent.insert(object) {
            self.writer.touch(object);
        }
        let touch = LastTouch { event: self.writer.events(), clock_bytes: self.writer.clock_bytes() };
        self.live.get_mut(&object).unwrap().touch = Some(touch);
    }

    pub fn set(&mut self, from: u64, word: u64, to: u64) {
        self.set_inside(from, word, to, 0);
    }

    pub fn set_inside(&mut self, from: u64, word: u64, to: u64, to_offset: u64) {
        self.touch(from);
        self.writer.edge(&Edge { from, offset: 8 * word, to, to_offset });
    }

    /// A load or store of eight bytes.
    pub fn access(&mut self, object: u64, offset: u64, store: bool) {
        self.touch(object);
        self.writer.access(&Access { object, offset, size: 8, store, thread: 0 });
        let event = self.writer.events();
        if let Some(touch) = &mut self.live.get_mut(&object).unwrap().touch {
            touch.event = event;
        }
    }

    pub fn request(&mut self, make: impl FnOnce(&mut Scenario<W>)) {
        self.writer.request_begin(0);
        make(self);
        self.writer.request_end(0);
    }

    pub fn clear(&mut self, from: u64, word: u64) {
        self.touch(from);
        self.writer.clear(from, 8 * word);
    }

    pub fn roots(&mut self, objects: &[u64]) {
        let root = |&object| Root { object, kind: RootKind::Stack, offset: 0 };
        self.writer.roots(&objects.iter().map(root).collect::<Vec<_>>());
        self.recent.clear();
    }

    pub fn free(&mut self, object: u64) {
        let Object { size, touch } = self.live.remove(&object).unwrap();
        self.recent.remove(&object);
        self.writer.free(object, size, 0, FreeCause::Free, touch);
    }

    pub fn clock_bytes(&self) -> u64 {
        self.writer.clock_bytes()
    }

    pub fn end(mut self) -> W {
        let mut kept: Vec<_> = self.live.into_iter().collect();
        kept.sort_unstable_by_key(|(object, _)| *object);
        for (object, Object { touch, .. }) in kept {
            self.writer.kept(object, touch);
        }
        self.writer.finish(&Ending::default()).unwrap()
    }
}

/// A scenario of a test, in a file of its own.
pub fn trace_of(make: impl FnOnce(&mut Scenario<Vec<u8>>)) -> (tempfile::TempDir, PathBuf) {
    let mut scenario = Scenario::begin(Vec::new());
    make(&mut scenario);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    std::fs::write(&path, scenario.end()).unwrap();
    (folder, path)
}

/// The file of the program of a trace.
pub fn program_of(trace: &Path) -> PathBuf {
    trace.with_extension("program")
}
