//! A program run under the recording layer, and all its events, straight from the rings.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use heaptoll_alloc_ring::{Flags, LeftOut, Options, RingEvent, Shared, Sink, Tap};
use heaptoll_stats_page::{SlotRecord, StatsPage, WriterKind};

use super::{Fixture, layers};

/// An event of a thread, without the fields of the ring's protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    Alloc { kind: u8, align_log2: u8, size: u64, block: u64, usable: u64 },
    Free { block: u64, delete: bool },
    ResizeBegin { block: u64 },
    ResizeEnd { block: u64, size: u64, usable: u64 },
    Failed { kind: u8, size: u64 },
}

/// One process image.
#[derive(Debug, Default)]
pub struct Image {
    pub pid: i32,
    pub parent_pid: i32,
    pub exe: PathBuf,
    /// The kernel's numbers of its threads.
    pub tids: BTreeMap<u32, i32>,
    /// In the order of the process, with the thread.
    pub events: Vec<(u32, Event)>,
    pub latencies: Vec<u32>,
    pub sites: Vec<u32>,
    /// Frames by site, innermost first. Site 0 defines other things.
    pub defined: BTreeMap<u32, Vec<u64>>,
    pub times: Vec<u64>,
    pub facts: Vec<Vec<u8>>,
}

impl Sink for Image {
    fn event(&mut self, thread: u32, event: RingEvent<'_>) {
        let (event, site, latency) = match event {
            RingEvent::Alloc { address, size, usable, kind, align_log2, site, latency_ns } => {
                (Event::Alloc { kind, align_log2, size, block: address, usable }, site, latency_ns)
            }
            RingEvent::Free { address, delete, latency_ns } => {
                (Event::Free { block: address, delete }, 0, latency_ns)
            }
            RingEvent::ResizeBegin { address } => (Event::ResizeBegin { block: address }, 0, 0),
            RingEvent::ResizeEnd { address, size, usable, site, latency_ns } => {
                (Event::ResizeEnd { block: address, size, usable }, site, latency_ns)
            }
            RingEvent::Failed { kind, size, site, latency_ns } => {
                (Event::Failed { kind, size }, site, latency_ns)
            }
            RingEvent::ExitBegins | RingEvent::Mapped { .. } | RingEvent::Remapped { .. } => return,
            RingEvent::Time { ns } => return self.times.push(ns),
            RingEvent::SiteDefinition { site, frames } => {
                self.defined.insert(site, frames.to_vec());
                return;
            }
        };
        self.events.push((thread, event));
        self.sites.push(site);
        self.latencies.push(latency);
    }

    fn thread(&mut self, thread: u32, tid: i32) {
        self.tids.insert(thread, tid);
    }
}

/// Calls, as the counting layer counts them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub malloc: u64,
    pub realloc: u64,
    pub free: u64,
    pub new: u64,
    pub delete: u64,
    pub failed: u64,
    pub requested_bytes: u64,
}

impl Image {
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for (_, event) in &self.events {
            match *event {
                Event::Alloc { kind, size, .. } => {
                    counts.malloc += 1;
                    counts.new += u64::from(kind == 3);
                    counts.requested_bytes = counts.requested_bytes.wrapping_add(size);
                }
                Event::Failed { kind, size } => {
                    counts.malloc += 1;
                    counts.new += u64::from(kind == 3);
                    counts.failed += 1;
                    counts.requested_bytes = counts.requested_bytes.wrapping_add(size);
                }
                Event::Free { delete, .. } => {
                    counts.free += 1;
                    counts.delete += u64::from(delete);
                }
                Event::ResizeBegin { .. } => counts.realloc += 1,
                Event::ResizeEnd { block, size, .. } => {
                    counts.failed += u64::from(block == 0 && size != 0);
                    counts.requested_bytes = counts.requested_bytes.wrapping_add(size);
                }
            }
        }
        counts
    }

    /// The events of the thread with this number, in order.
    pub fn of_thread(&self, tid: i32) -> Vec<Event> {
        let thread = self.tids.iter().find(|(_, t)| **t == tid).map(|(thread, _)| *thread);
        self.events.iter().filter(|(t, _)| Some(*t) == thread).map(|(_, event)| *event).collect()
    }

    /// Follows every block through the order of the process: panics when one is allocated that is live or freed that is
    /// not. Returns what is live at the end. `inherited`: blocks may come from before the beginning.
    pub fn follow(&self, inherited: bool) -> BTreeMap<u64, u64> {
        let mut live = BTreeMap::new();
        let mut lifted: BTreeMap<u32, (u64, Option<u64>)> = BTreeMap::new();
        for (number, (thread, event)) in self.events.iter().enumerate() {
            match *event {
                Event::Alloc { block, size, .. } => {
                    assert_eq!(live.insert(block, size), None, "event {number}: {event:x?} is live");
                }
                Event::Free { block, .. } => {
                    let found = live.remove(&block);
                    assert!(found.is_some() || inherited, "event {number}: {event:x?} is not live");
                }
                Event::ResizeBegin { block } => {
                    let found = live.remove(&block);
                    assert!(found.is_some() || inherited, "event {number}: {event:x?} is not live");
                    assert_eq!(lifted.insert(*thread, (block, found)), None, "event {number}");
                }
                Event::ResizeEnd { block, size, .. } => {
                    let (old, found) = lifted.remove(thread).expect("it has begun");
                    if block != 0 {
                        assert_eq!(live.insert(block, size), None, "event {number}: {event:x?} is live");
                    } else if size != 0 {
                        live.insert(old, found.unwrap_or(0));
                    }
                }
                Event::Failed { .. } => {}
            }
        }
        live
    }
}

/// A run under the layer.
pub struct Run {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
    /// In the order in which they registered.
    pub images: Vec<Image>,
    pub left_out: LeftOut,
    /// The counts of the counting layer after the recording one, by process.
    pub counted: Vec<SlotRecord>,
}

impl Run {
    pub fn ok(self) -> Run {
        assert!(self.status.success(), "{}\n{}\n{}", self.status, self.stdout, self.stderr);
        self
    }

    /// The only image.
    pub fn image(&self) -> &Image {
        assert_eq!(self.images.len(), 1, "{:?}", self.images.iter().map(|i| &i.exe).collect::<Vec<_>>());
        &self.images[0]
    }
}

/// Options of a run.
pub struct Recording<'a> {
    pub flags: Flags,
    pub options: Options,
    /// Objects preloaded after the layer.
    pub preload_after: Vec<&'a Path>,
    /// With the counting layer directly after the recording one.
    pub counting: bool,
    /// Request facts all the time,
    pub requests_facts: bool,
    /// with these flags.
    pub request_flags: u8,
    /// Environment.
    pub variables: Vec<(&'a str, &'a str)>,
}

impl Default for Recording<'_> {
    fn default() -> Self {
        // In the tests' own folder: what a test that is killed leaves behind goes with it.
        let options =
            Options { rings: 512, ring_log2: 14, block_log2: 10, processes: 64, ..Options::default() };
        Recording {
            flags: Flags::default(),
            options,
            preload_after: Vec::new(),
            counting: false,
            requests_facts: false,
            request_flags: 0,
            variables: Vec::new(),
        }
    }
}

/// Nothing that these tests run takes longer.
const PATIENCE: Duration = Duration::from_secs(60);

impl Recording<'_> {
    pub fn run(&self, fixture: &Fixture, program: &Path, arguments: &[&str]) -> Run {
        let mut preload = layers().join("libheaptoll_record.so").into_os_string();
        if self.counting {
            preload.push(":");
            preload.push(layers().join("libheaptoll_count.so"));
        }
        for object in &self.preload_after {
            preload.push(":");
            preload.push(object);
        }
        self.run_preloaded(fixture, program, arguments, Some(preload))
    }

    pub fn run_preloaded(
        &self,
        fixture: &Fixture,
        program: &Path,
        arguments: &[&str],
        preload: Option<std::ffi::OsString>,
    ) -> Run {
        let options = Options { flags: self.flags, ..self.options.clone() };
        let mut shared = Shared::create(&options).expect("the shared file");
        static RUNS: AtomicUsize = AtomicUsize::new(0);
        let unique = RUNS.fetch_add(1, Ordering::Relaxed);
        let page = StatsPage::create(&fixture.path(&format!("stats-{unique}")), 64).expect("a page");
        let (out, err) = (fixture.path(&format!("out-{unique}")), fixture.path(&format!("err-{unique}")));
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env("HEAPTOLL_RECORD", shared.path())
            .env("HEAPTOLL_STATS", page.path())
            .envs(self.variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(File::create(&out).expect("a file"))
            .stderr(File::create(&err).expect("a file"));
        if let Some(preload) = preload {
            command.env("LD_PRELOAD", preload);
        }
        let mut child = command.spawn().expect("it starts");
        let mut taps: Vec<(Option<Tap>, Image, u32)> = Vec::new();
        let (begun, mut ended) = (Instant::now(), false);
        loop {
            assert!(begun.elapsed() < PATIENCE, "{} does not end", program.display());
            // In this order: what registered before the end is seen.
            let over = ended;
            for arrival in shared.arrivals() {
                let image = Image {
                    pid: arrival.pid,
                    parent_pid: arrival.parent_pid,
                    exe: arrival.exe,
                    ..Image::default()
                };
                taps.push((Some(Tap::new(&shared, arrival.index)), image, 0));
            }
            for (tap, image, requested) in &mut taps {
                if let Some(open) = tap {
                    if self.requests_facts && *requested == 0 {
                        *requested = open.request_facts(self.request_flags);
                    }
                    // While facts are requested it drains little at a time: otherwise all events of a program may be
                    // drained at once, after which no thread is left to answer.
                    open.drain(if self.requests_facts { 1 << 12 } else { usize::MAX }, image);
                    if self.requests_facts
                        && let Some(facts) = open.facts(*requested)
                    {
                        image.facts.push(facts);
                        *requested = open.request_facts(self.request_flags);
                    }
                    if over || open.gone() {
                        tap.take().expect("it is open").end(image);
                    }
                }
            }
            if over && taps.iter().all(|(tap, ..)| tap.is_none()) {
                break;
            }
            shared.tick();
            shared.wait(Duration::from_millis(1));
            ended = ended || child.try_wait().expect("a child").is_some();
        }
        let read = |path: &Path| {
            let mut text = Vec::new();
            File::open(path).expect("it was written").read_to_end(&mut text).expect("it can be read");
            String::from_utf8_lossy(&text).into_owned()
        };
        let counted =
            page.read().expect("the page").into_iter().filter(|s| s.kind == WriterKind::Layer).collect();
        Run {
            status: child.wait().expect("it has ended"),
            stdout: read(&out),
            stderr: read(&err),
            images: taps.into_iter().map(|(_, image, _)| image).collect(),
            left_out: shared.left_out(),
            counted,
        }
    }
}

/// The events of each thread according to a program's own log (layer_programs/log.h).
pub fn logged(text: &str) -> BTreeMap<i32, Vec<Event>> {
    let mut threads: BTreeMap<i32, Vec<Event>> = BTreeMap::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| -> u64 {
            let field: &str = fields[at];
            match field.strip_prefix("0x") {
                Some(hexadecimal) => u64::from_str_radix(hexadecimal, 16).expect("a pointer"),
                None if field == "(nil)" => 0,
                None => field.parse().unwrap_or_else(|_| panic!("{line}")),
            }
        };
        let thread = threads.entry(number(1) as i32).or_default();
        match fields[0] {
            "A" => thread.push(Event::Alloc {
                kind: number(2) as u8,
                align_log2: if number(3) == 0 { 0 } else { number(3).ilog2() as u8 },
                size: number(4),
                block: number(5),
                usable: number(6),
            }),
            "F" => thread.push(Event::Free { delete: number(2) == 1, block: number(3) }),
            "R" => {
                thread.push(Event::ResizeBegin { block: number(2) });
                let size = number(4).min((1 << 60) - 1);
                thread.push(Event::ResizeEnd { block: number(3), size, usable: number(5) });
            }
            "X" => thread.push(Event::Failed { kind: number(2) as u8, size: number(3).min((1 << 60) - 1) }),
            "B" => {}
            _ => panic!("{line}"),
        }
    }
    threads
}

/// Panics unless `expected` is what was recorded, in order. `more`: what a library did in between is skipped.
pub fn agree(recorded: &[Event], expected: &[Event], more: bool) {
    if !more {
        for (number, (recorded, expected)) in recorded.iter().zip(expected).enumerate() {
            assert_eq!(recorded, expected, "event {number}");
        }
        assert_eq!(recorded.len(), expected.len());
        return;
    }
    let mut recorded = recorded.iter();
    for (number, expected) in expected.iter().enumerate() {
        assert!(recorded.any(|event| event == expected), "event {number} was not recorded: {expected:x?}");
    }
}

/// The events between the two marks of layer_programs/log.h.
pub fn marked(recorded: &[Event]) -> &[Event] {
    let at = |wanted| {
        recorded
            .iter()
            .position(|event| matches!(event, Event::Alloc { size, .. } if *size == wanted))
            .expect("the mark")
    };
    // Each mark is a block that is allocated and freed.
    &recorded[at(1_234_567) + 2..at(1_234_577)]
}
