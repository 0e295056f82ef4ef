//! One process's events, in the order of the process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::copied::Copied;
use super::decode::{Reader, Sink, threads};
use super::map::Map;
use super::merge::Merge;
use super::proc::Whereabouts;
use super::shared::{REPLACED, Shared};
use crate::layout::{SHARED, gate, state};

/// What a drain did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Drained {
    /// Words read.
    pub words: usize,
    /// Nothing more was there.
    pub idle: bool,
    /// Events are there, but one before them is not: a thread has been interrupted while telling it.
    pub blocked: bool,
    /// Events that will never come, or come late: their threads died while telling them, or stood still.
    pub missing: u64,
    /// Of these, those whose numbers nobody has taken.
    pub(crate) wild: u64,
}

/// What of a process image is in no ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Losses {
    /// Threads that found no ring: there was no memory for one.
    pub threads: u32,
    /// The process has stopped telling, although it was not dismissed.
    pub stopped: bool,
    /// Words of a ring could not be reached before it was given to another thread, or at the end: there was no memory for
    /// their pages.
    pub unread: bool,
    /// Words of its rings that made no sense, and events that threads which live have not told: somebody has written
    /// over them.
    pub damaged: u64,
}

/// One process image, read.
pub struct Tap {
    map: Arc<Map>,
    process: usize,
    at: Whereabouts,
    merge: Merge,
    /// The number of an event that is missing, and since when.
    stuck: Option<(u64, Instant)>,
    reaped: Instant,
    /// Where the last look for ended threads stopped.
    looked: usize,
    ended: bool,
    /// Words that were given up, because somebody had written over them.
    damaged: u64,
    /// Whether it was dismissed.
    dismissed: AtomicBool,
    /// Threads that found no ring.
    left_out: Copied,
    /// Whether a ring was given up before all its words were reached.
    unread: bool,
    /// As they were when it ended.
    losses: Option<Losses>,
}

/// How long an event may be missing before the threads are looked at.
const STUCK: Duration = Duration::from_millis(20);
/// How long an event may be missing whose thread is there but does not go on: a process may be stopped. The event is
/// given when it comes, after later ones.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often threads are looked for that have ended,
const REAP: Duration = Duration::from_millis(50);
/// and how often when rings are scarce,
const REAP_SCARCE: Duration = Duration::from_millis(2);
/// and how many at a time.
const REAP_THREADS: usize = 256;

impl Tap {
    /// A reader of the process in entry `process`, as an arrival says.
    pub fn new(shared: &Shared, process: usize) -> Tap {
        let map = Arc::clone(&shared.map);
        let at = Whereabouts::of(&map, process);
        let merge = Merge::new(Arc::clone(&map), process);
        Tap {
            map,
            process,
            at,
            merge,
            stuck: None,
            reaped: Instant::now(),
            looked: 0,
            ended: false,
            damaged: 0,
            dismissed: AtomicBool::new(false),
            left_out: Copied::default(),
            unread: false,
            losses: None,
        }
    }

    /// Gives what is there, at most about `budget` words.
    pub fn drain(&mut self, budget: usize, sink: &mut impl Sink) -> Drained {
        if self.ended {
            return Drained { idle: true, ..Drained::default() };
        }
        self.look();
        self.adopt(sink);
        // No more than can be there: a thread that has run wild may write for ever.
        let budget = budget.min(self.merge.reach().max(1));
        let mut drained = self.merge.give(budget, None, sink);
        if drained.blocked {
            // Under load one number or another is always missing: each has its own time.
            let next = self.merge.next();
            let stuck = self.stuck.take_if(|(number, _)| *number == next);
            let (_, begun) = *self.stuck.insert(stuck.unwrap_or_else(|| (next, Instant::now())));
            let since = begun.elapsed();
            if since > STUCK {
                // Numbers below this are taken. If nobody is busy after that, their events are there or lost.
                // Whoever took one has its ring in the list, and is looked at.
                let taken = self.map.process(self.process).sequence.0.load(Ordering::Acquire);
                self.adopt(sink);
                if since > PATIENCE || !self.anyone_busy() {
                    let more = self.merge.give(budget, Some(taken), sink);
                    drained = Drained { words: drained.words + more.words, ..more };
                    self.stuck = None;
                }
            }
        } else {
            self.stuck = None;
        }
        self.reap();
        self.damaged += drained.wild;
        drained
    }

    /// What is not there, as far as can be known by now.
    pub fn losses(&self) -> Losses {
        if let Some(losses) = self.losses {
            return losses;
        }
        let process = self.map.process(self.process);
        let skipped = match self.merge.skipped() {
            0 => 0,
            // A thread that is killed takes one number with it.
            skipped => skipped.saturating_sub(self.merge.threads()),
        };
        let damaged = self.damaged.saturating_add(u64::from(self.left_out.is_damaged()));
        Losses {
            threads: self.left_out.value(),
            unread: self.unread,
            stopped: process.detached.load(Ordering::Acquire) == 1 && !self.dismissed.load(Ordering::Relaxed),
            damaged: damaged.saturating_add(skipped),
        }
    }

    /// Gives all that is left of a process that has [gone](Tap::gone), and makes its entry and its rings free for
    /// others. Of one that has not gone, gives what is there without waiting for what is missing, and keeps its rings.
    pub fn end(&mut self, sink: &mut impl Sink) -> Drained {
        if self.ended {
            return Drained { idle: true, ..Drained::default() };
        }
        let gone = self.gone();
        self.look();
        self.adopt(sink);
        self.merge.wait_no_more();
        let taken = self.map.process(self.process).sequence.0.load(Ordering::Acquire);
        let mut all = Drained { idle: true, ..Drained::default() };
        // As much as can be there, twice: the process may still run, and may have run wild. How far a ring reaches the
        // reader finds only as it comes to the edge of what it knows.
        while all.words <= 2 * self.merge.reach().max(1) {
            let drained = self.merge.give(self.merge.reach().max(1), Some(taken), sink);
            all.words += drained.words;
            all.missing += drained.missing;
            self.damaged += drained.wild;
            if drained.words == 0 {
                break;
            }
        }
        let skipped = self.merge.skip_to(taken);
        all.missing += skipped.missing;
        self.damaged += skipped.wild;
        // What lies there now is all that there was.
        self.merge.readers_mut().for_each(|reader| reader.extend(&self.map));
        self.unread |= self.merge.readers().any(Reader::is_cut);
        self.losses = Some(self.losses());
        self.ended = true;
        self.map.live().retain(|&index| index != self.process);
        if gone {
            self.map.recycle_all(self.process);
            self.map.process(self.process).state.store(state::FREE, Ordering::Release);
            self.map.header().registry.0.process_hint.fetch_min(self.process as u32, Ordering::AcqRel);
            self.map.freed();
        }
        all
    }

    /// The process number, as the tool sees it; 0: it had ended before it could be found.
    pub fn pid(&self) -> i32 {
        self.at.pid()
    }

    /// Whether the process image has ended: the process has, or another image that registered has replaced it.
    pub fn gone(&self) -> bool {
        self.map.process(self.process).detached.load(Ordering::Acquire) == REPLACED || !self.at.runs()
    }

    /// Tells the process that nobody wants its events, nor those of children it forks. It is to be drained and ended
    /// like others.
    pub fn dismiss(&self) {
        self.dismissed.store(true, Ordering::Relaxed);
        let gate = &self.map.process(self.process).gate.0;
        gate.fetch_or(gate::DISMISSED, Ordering::AcqRel);
        crate::sys::futex_wake(gate);
    }

    /// Asks the process for facts about itself; gives the number of the question. `wishes` is what the layer finds in
    /// the first byte. Answered at its next event, paused or not.
    pub fn ask(&self, wishes: u8) -> u32 {
        let process = self.map.process(self.process);
        process.facts_wishes.store(wishes.into(), Ordering::Relaxed);
        let asked = process.facts_asked.fetch_add(1, Ordering::AcqRel).wrapping_add(1);
        process.gate.0.fetch_or(gate::FACTS, Ordering::AcqRel);
        crate::sys::futex_wake(&process.gate.0);
        asked
    }

    /// Whether a thread is at the question: it has been taken note of, and the answer may take its time.
    pub fn is_answering(&self) -> bool {
        self.map.process(self.process).gate.0.load(Ordering::Acquire) & gate::FACTS == 0
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

    /// Whether the reader's structures fit each other and the file; what does not.
    ///
    /// # Errors
    /// The first defect, in words.
    pub fn check(&self) -> Result<(), String> {
        self.merge.check()?;
        for reader in self.merge.readers() {
            let who = self.map.control(reader.ring).owner.0.who.load(Ordering::Relaxed);
            if who >> 32 != self.process as u64 + 1 {
                return Err(format!(
                    "ring {} is read for entry {} but belongs to {who:x}",
                    reader.ring, self.process
                ));
            }
        }
        Ok(())
    }

    /// Copies what it counts itself.
    fn look(&mut self) {
        self.left_out.look(self.map.process(self.process).threads_left_out.load(Ordering::Relaxed));
    }

    /// Finds the rings of new threads.
    fn adopt(&mut self, sink: &mut impl Sink) {
        let newest = &self.map.process(self.process).newest.0;
        if newest.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut next = newest.swap(0, Ordering::AcqRel);
        let mut rings = Vec::new();
        // What a program that has run wild wrote into the list must not lead astray.
        while next != 0 && next as usize <= self.map.geometry.rings && rings.len() < self.map.geometry.rings {
            let ring = next as usize - 1;
            self.map.highest.fetch_max(ring + 1, Ordering::Relaxed);
            rings.push(ring);
            next = self.map.control(ring).owner.0.next.load(Ordering::Relaxed);
        }
        let waits = self.map.flags.latency;
        for ring in rings.into_iter().rev() {
            let owner = self.map.control(ring).owner.0.who.load(Ordering::Relaxed);
            if owner >> 32 != self.process as u64 + 1
                || self.merge.readers().any(|reader| reader.ring == ring)
            {
                continue;
            }
            let mut reader = Reader::new(&self.map, self.process, (ring, owner as u32 as i32), waits);
            if reader.thread != SHARED {
                // A number that somebody has written over is replaced: what the thread tells must be taken out.
                let threads = threads(&self.map, self.process).max(1);
                reader.thread = reader.thread.min(threads - 1);
                sink.thread(reader.thread, reader.tid);
            }
            self.merge.add(reader);
        }
    }

    /// Whether a thread that lives is between its number and its words, or its free and the free's latency.
    fn anyone_busy(&mut self) -> bool {
        let (map, at) = (&self.map, &self.at);
        self.merge.readers_mut().any(|reader| {
            // What follows may lie in what was reserved last.
            reader.extend(map);
            let owner = &map.control(reader.ring).owner.0;
            let busy = owner.busy.load(Ordering::Acquire) != 0 || reader.waiting();
            if !busy {
                return false;
            }
            let tid = reader.tid;
            let runs = if tid == 0 { at.runs() } else { at.thread_runs(tid) };
            if !runs {
                reader.wait_no_more();
            }
            runs
        })
    }

    /// Makes the rings of threads that have ended free.
    fn reap(&mut self) {
        let hint = self.map.header().registry.0.ring_hint.load(Ordering::Relaxed) as usize;
        let scarce = hint > self.map.geometry.rings / 4 * 3;
        if self.reaped.elapsed() < if scarce { REAP_SCARCE } else { REAP } {
            return;
        }
        let dry = self.merge.dry();
        let looks = dry.len().min(REAP_THREADS);
        let from = if self.looked < dry.len() { self.looked } else { 0 };
        self.looked = from + looks;
        let places: Vec<usize> = (0..looks).map(|n| dry[(from + n) % dry.len()]).collect();
        for place in places {
            let Some(reader) = self.merge.reader_mut(place) else { continue };
            if reader.tid == 0 || self.at.thread_runs(reader.tid) {
                self.damaged += reader.help(&self.map) as u64;
                continue;
            }
            // What it told last may lie in what it reserved last.
            reader.extend(&self.map);
            // Only now: before, the thread may have been about to write.
            if reader.waiting() {
                reader.wait_no_more();
            } else if reader.empty() {
                let ring = reader.ring;
                self.unread |= reader.is_cut();
                self.merge.remove(place);
                self.map.recycle(ring);
            }
        }
        self.reaped = Instant::now();
    }
}

#[cfg(test)]
mod tests;
