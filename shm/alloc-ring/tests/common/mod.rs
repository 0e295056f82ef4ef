//! Shared by the tests of the ring: a thread word, a sink that keeps all events, scripts of events.
#![allow(dead_code, reason = "each test uses some of it")]

use std::cell::Cell;
use std::sync::{Mutex, MutexGuard, PoisonError};

use heaptoll_alloc_ring::{Options, Producer, RingEvent, Rings, Shared, Sink, ThreadWord};

thread_local! {
    static WORD: Cell<usize> = const { Cell::new(0) };
}

/// A thread word of the test program.
pub struct Word;

impl ThreadWord for Word {
    #[inline(always)]
    fn get() -> usize {
        WORD.get()
    }
    #[inline(always)]
    fn set(word: usize) {
        WORD.set(word);
    }
}

/// An event as a thread records it, with its data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    Alloc { address: u64, size: u64, usable: u64, kind: u8, align_log2: u8, site: u32, latency_ns: u32 },
    Free { address: u64, delete: bool, latency_ns: u32 },
    ResizeBegin { address: u64 },
    ResizeEnd { address: u64, size: u64, usable: u64, site: u32, latency_ns: u32 },
    Failed { kind: u8, size: u64, site: u32, latency_ns: u32 },
    Definition { site: u32, frames: Vec<u64> },
    ExitBegins,
}

impl Event {
    /// Records it.
    pub fn emit(&self, mut producer: Producer<'_, Word>, took: bool) {
        match *self {
            Event::ExitBegins => producer.exit_begins(),
            Event::Alloc { address, size, usable, kind, align_log2, site, latency_ns } => {
                producer.site(site);
                producer.latency(latency_ns);
                let (address, size, usable) = (address as usize, size as usize, usable as usize);
                if kind == 0 && align_log2 == 0 {
                    producer.alloc(address, size, usable);
                } else {
                    producer.alloc_long(address, size, usable, kind, align_log2);
                }
            }
            Event::Free { address, delete, latency_ns } => {
                producer.free(address as usize, delete);
                if took {
                    producer.took(latency_ns);
                }
            }
            Event::ResizeBegin { address } => producer.resize_begin(address as usize),
            Event::ResizeEnd { address, size, usable, site, latency_ns } => {
                producer.site(site);
                producer.latency(latency_ns);
                producer.resize_end(address as usize, size as usize, usable as usize);
            }
            Event::Failed { kind, size, site, latency_ns } => {
                producer.site(site);
                producer.latency(latency_ns);
                producer.failed(kind, size as usize);
            }
            Event::Definition { site, ref frames } => {
                let frames: Vec<usize> = frames.iter().map(|&frame| frame as usize).collect();
                producer.define_site(site, &frames);
            }
        }
    }
}

/// A sink that keeps events, threads and times.
#[derive(Debug, Default)]
pub struct Received {
    pub events: Vec<(u32, Event)>,
    pub threads: Vec<(u32, i32)>,
    pub times: Vec<(u32, u64)>,
}

impl Sink for Received {
    fn event(&mut self, thread: u32, event: RingEvent<'_>) {
        assert!(
            self.threads.iter().rev().any(|known| known.0 == thread),
            "thread {thread} records before it is known"
        );
        let event = match event {
            RingEvent::Alloc { address, size, usable, kind, align_log2, site, latency_ns } => {
                Event::Alloc { address, size, usable, kind, align_log2, site, latency_ns }
            }
            RingEvent::Free { address, delete, latency_ns } => Event::Free { address, delete, latency_ns },
            RingEvent::ResizeBegin { address } => Event::ResizeBegin { address },
            RingEvent::ResizeEnd { address, size, usable, site, latency_ns } => {
                Event::ResizeEnd { address, size, usable, site, latency_ns }
            }
            RingEvent::Failed { kind, size, site, latency_ns } => {
                Event::Failed { kind, size, site, latency_ns }
            }
            RingEvent::SiteDefinition { site, frames } => Event::Definition { site, frames: frames.to_vec() },
            RingEvent::ExitBegins => Event::ExitBegins,
            RingEvent::Mapped { .. } | RingEvent::Remapped { .. } => return,
            RingEvent::Time { ns } => return self.times.push((thread, ns)),
        };
        self.events.push((thread, event));
    }
    fn thread(&mut self, thread: u32, tid: i32) {
        self.threads.push((thread, tid));
    }
}

/// Held by a test, since the environment names one file at a time.
static ENVIRONMENT: Mutex<()> = Mutex::new(());

/// A file of tiny rings, and a handle on it in this process, as if of a process of its own. Its threads must be new.
pub struct Fixture {
    pub shared: Shared,
    pub rings: &'static Rings<Word>,
    pub flags: heaptoll_alloc_ring::Flags,
    _environment: MutexGuard<'static, ()>,
}

impl Fixture {
    pub fn new(options: &Options) -> Fixture {
        let environment = ENVIRONMENT.lock().unwrap_or_else(PoisonError::into_inner);
        let shared = Shared::create(options).expect("a file can be made");
        // SAFETY: tests change and read the environment only while they hold the lock above.
        unsafe { std::env::set_var("HEAPTOLL_RECORD", shared.path()) };
        let rings = Box::leak(Box::new(Rings::new()));
        Fixture { shared, rings, flags: options.flags, _environment: environment }
    }
}

/// Rings of 2^`ring_log2` words in blocks of 64, `rings` of them.
pub fn tiny(ring_log2: u32, rings: usize) -> Options {
    Options { rings, ring_log2, block_log2: 6, processes: 16, ..Options::default() }
}
