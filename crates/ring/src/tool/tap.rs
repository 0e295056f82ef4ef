//! One process's events, in the order of the process.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::decode::{Head, Reader, Sink};
use super::map::Map;
use super::proc::{process_runs, thread_runs};
use super::shared::Shared;
use crate::layout::{SHARED, gate};

/// What a drain did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Drained {
    /// Words read.
    pub words: usize,
    /// Nothing more was there.
    pub idle: bool,
    /// Events are there, but one before them is not: a thread has been interrupted while telling it.
    pub blocked: bool,
    /// Sequence numbers whose events will never come: their threads died while telling them.
    pub missing: u64,
}

/// One process image, read.
pub struct Tap {
    map: Arc<Map>,
    process: usize,
    pid: i32,
    readers: Vec<Option<Reader>>,
    /// Readers whose next event has a number: the numbers and the readers.
    heads: BinaryHeap<Reverse<(u64, usize)>>,
    /// Readers that had nothing to read, the last active last.
    dry: Vec<usize>,
    /// The next number.
    next: u64,
    /// When the tap was first stuck.
    stuck: Option<Instant>,
    reaped: Instant,
}

/// How long an event may be missing before the threads are looked at.
const STUCK: Duration = Duration::from_millis(20);
/// How often threads are looked for that have ended.
const REAP: Duration = Duration::from_millis(20);

impl Tap {
    /// A reader of the process in entry `process`, as an arrival says.
    pub fn new(shared: &Shared, process: usize) -> Tap {
        let map = Arc::clone(&shared.map);
        let pid = (map.process(process).state.load(Ordering::Acquire) >> 8) as i32;
        Tap {
            map,
            process,
            pid,
            readers: Vec::new(),
            heads: BinaryHeap::new(),
            dry: Vec::new(),
            next: 0,
            stuck: None,
            reaped: Instant::now(),
        }
    }

    /// Gives what is there, at most about `budget` words.
    pub fn drain(&mut self, budget: usize, sink: &mut impl Sink) -> Drained {
        self.adopt(sink);
        let mut drained = self.merge(budget, sink, false);
        if drained.blocked {
            let since = *self.stuck.get_or_insert_with(Instant::now);
            if since.elapsed() > STUCK && !self.anyone_busy() {
                self.adopt(sink);
                let more = self.merge(budget, sink, true);
                drained.words += more.words;
                drained.missing += more.missing;
            }
        } else {
            self.stuck = None;
        }
        if self.reaped.elapsed() > REAP {
            self.reap();
            self.reaped = Instant::now();
        }
        drained
    }

    /// Gives all that is left of a process that is dead, and makes its entry and its rings free.
    pub fn end(mut self, sink: &mut impl Sink) -> Drained {
        self.adopt(sink);
        let mut all = Drained::default();
        loop {
            let drained = self.merge(usize::MAX, sink, true);
            all.words += drained.words;
            all.missing += drained.missing;
            if drained.words == 0 {
                break;
            }
        }
        all.idle = true;
        for ring in 0..self.map.geometry.rings {
            let who = self.map.control(ring).owner.0.who.load(Ordering::Acquire);
            if who >> 32 == self.process as u64 + 1 {
                self.map.recycle(ring);
            }
        }
        self.map.live().retain(|&index| index != self.process);
        let entry = self.map.process(self.process);
        entry.state.store(crate::layout::state::FREE, Ordering::Release);
        self.map.header().registry.0.process_hint.fetch_min(self.process as u32, Ordering::AcqRel);
        all
    }

    /// Whether the process has ended, or detached. Another image that registered with its number has replaced it.
    pub fn gone(&self) -> bool {
        !process_runs(self.pid)
    }

    /// Tells the process that nobody wants its events, nor those of children it forks.
    pub fn dismiss(&self) {
        let gate = &self.map.process(self.process).gate.0;
        gate.fetch_or(gate::DISMISSED, Ordering::AcqRel);
        crate::sys::futex_wake(gate);
    }

    /// Asks the process for facts about itself; gives the number of the question. Answered at its next event.
    pub fn ask(&self) -> u32 {
        let process = self.map.process(self.process);
        let asked = process.facts_asked.fetch_add(1, Ordering::AcqRel) + 1;
        process.gate.0.fetch_or(gate::FACTS, Ordering::AcqRel);
        crate::sys::futex_wake(&process.gate.0);
        asked
    }

    /// The answer to question `asked`, once it is there. Empty: the layer has none.
    pub fn answer(&self, asked: u32) -> Option<Vec<u8>> {
        let process = self.map.process(self.process);
        if process.facts_answered.load(Ordering::Acquire) != asked {
            return None;
        }
        let length = process.facts_bytes.load(Ordering::Relaxed) as usize;
        Some(process.facts.0.iter().take(length).map(|byte| byte.load(Ordering::Relaxed)).collect())
    }

    /// Finds the rings of new threads.
    fn adopt(&mut self, sink: &mut impl Sink) {
        let newest = &self.map.process(self.process).newest.0;
        if newest.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut next = newest.swap(0, Ordering::AcqRel);
        let mut rings = Vec::new();
        while next != 0 {
            let ring = next as usize - 1;
            rings.push(ring);
            next = self.map.control(ring).owner.0.next.load(Ordering::Relaxed);
        }
        for ring in rings.into_iter().rev() {
            let reader = Reader::new(&self.map, ring, self.map.header().flags().latency);
            if reader.thread != SHARED {
                let who = self.map.control(ring).owner.0.who.load(Ordering::Relaxed);
                sink.thread(reader.thread, who as u32 as i32);
            }
            let place = self.readers.iter().position(Option::is_none).unwrap_or(self.readers.len());
            if place == self.readers.len() {
                self.readers.push(None);
            }
            self.readers[place] = Some(reader);
            self.dry.push(place);
        }
    }

    /// Gives events in order: of each ring those without a number as they come, those with one by number.
    fn merge(&mut self, budget: usize, sink: &mut impl Sink, skip: bool) -> Drained {
        let mut drained = Drained::default();
        loop {
            // Rings that had nothing: what is there now?
            let mut at = self.dry.len();
            while at > 0 {
                at -= 1;
                let place = self.dry[at];
                let Some(reader) = &mut self.readers[place] else { continue };
                drained.words += reader.plain(&self.map, budget.saturating_sub(drained.words), sink);
                if let Head::Numbered(number) = reader.head() {
                    self.heads.push(Reverse((number, place)));
                    self.dry.swap_remove(at);
                }
            }
            let mut gave = false;
            while drained.words < budget {
                let Some(&Reverse((number, place))) = self.heads.peek() else { break };
                if number != self.next {
                    if !skip || gave {
                        break;
                    }
                    drained.missing += number.saturating_sub(self.next);
                    self.next = number;
                }
                self.heads.pop();
                gave = true;
                let Some(reader) = &mut self.readers[place] else { continue };
                loop {
                    drained.words += reader.group(&self.map, sink);
                    self.next += 1;
                    drained.words += reader.plain(&self.map, usize::MAX, sink);
                    match reader.head() {
                        Head::Numbered(number) if number == self.next && drained.words < budget => {}
                        Head::Numbered(number) => {
                            self.heads.push(Reverse((number, place)));
                            break;
                        }
                        _ => {
                            self.dry.push(place);
                            break;
                        }
                    }
                }
            }
            if drained.words >= budget {
                return drained;
            }
            if !gave {
                drained.idle = self.heads.is_empty();
                drained.blocked = !drained.idle;
                return drained;
            }
        }
    }

    /// Whether a thread that lives is between its number and its words.
    fn anyone_busy(&self) -> bool {
        self.readers.iter().flatten().any(|reader| {
            let owner = &self.map.control(reader.ring).owner.0;
            let tid = owner.who.load(Ordering::Relaxed) as u32 as i32;
            owner.busy.load(Ordering::Acquire) != 0 && (tid == 0 || thread_runs(self.pid, tid))
        })
    }

    /// Makes the rings of threads that have ended free.
    fn reap(&mut self) {
        let mut at = 0;
        while at < self.dry.len() {
            let place = self.dry[at];
            let over = self.readers[place].as_ref().is_some_and(|reader| {
                let who = self.map.control(reader.ring).owner.0.who.load(Ordering::Relaxed) as u32 as i32;
                who != 0 && !thread_runs(self.pid, who) && reader.head() == Head::Nothing
            });
            if over {
                if let Some(reader) = self.readers[place].take() {
                    self.map.recycle(reader.ring);
                }
                self.dry.swap_remove(at);
            } else {
                at += 1;
            }
        }
    }
}
