//! The events of one process, in the order of the process.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::counter::SampledCounter;
use super::decode::Reader;
use super::drained::Drained;
use super::event::Sink;
use super::map::Map;
use super::merge::Merge;
use super::proc::ProcessIdentity;
use super::shared::{REPLACED, Shared};
use crate::atomic::Ordering;
use crate::layout::{SHARED, gate, state};
use crate::sys::Instant;

/// What no ring has of a process image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Losses {
    /// Threads that found no ring: there was no memory for one.
    pub threads: u32,
    /// The process has stopped recording, although it was not dismissed.
    pub stopped: bool,
    /// Words of a ring could not be read before it was given to another thread, or at the end: there was no memory for
    /// their pages.
    pub unread: bool,
    /// Invalid words in its rings, and missing events of threads that run: they were overwritten.
    pub damaged: u64,
}

/// Reads the events of one process image.
pub struct Tap {
    map: Arc<Map>,
    process: usize,
    at: ProcessIdentity,
    merge: Merge,
    /// The number of a missing event, and since when it is missing.
    stuck: Option<(u64, Instant)>,
    reaped: Instant,
    /// Where the last scan for ended threads stopped.
    reaped_to: usize,
    ended: bool,
    /// Words that were skipped, because they were overwritten.
    damaged: u64,
    /// Whether it was dismissed.
    dismissed: AtomicBool,
    /// Threads that found no ring.
    left_out: SampledCounter,
    /// Whether a ring was abandoned before all its words were read.
    unread: bool,
    /// The losses when it ended.
    losses: Option<Losses>,
}

/// How long an event may be missing before the threads are checked.
const STUCK: Duration = Duration::from_millis(20);
/// How long an event may be missing whose thread exists but makes no progress: a process may be stopped. The event is
/// delivered when it arrives, after later ones.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often the tap scans for threads that have ended,
const REAP: Duration = Duration::from_millis(50);
/// and how often when rings are scarce,
const REAP_SCARCE: Duration = Duration::from_millis(2);
/// and how many at a time.
const REAP_THREADS: usize = 256;

impl Tap {
    /// A reader of the process in entry `process`, which an arrival names.
    pub fn new(shared: &Shared, process: usize) -> Tap {
        let map = Arc::clone(&shared.map);
        let at = ProcessIdentity::from_entry(&map, process);
        let merge = Merge::new(Arc::clone(&map), process);
        Tap {
            map,
            process,
            at,
            merge,
            stuck: None,
            reaped: Instant::now(),
            reaped_to: 0,
            ended: false,
            damaged: 0,
            dismissed: AtomicBool::new(false),
            left_out: SampledCounter::default(),
            unread: false,
            losses: None,
        }
    }

    /// Delivers the events that are there, at most about `budget` words.
    pub fn drain(&mut self, budget: usize, sink: &mut impl Sink) -> Drained {
        if self.ended {
            return Drained { idle: true, ..Drained::default() };
        }
        self.sample_counters();
        self.adopt(sink);
        // No more than the rings hold: a corrupted thread may write for ever.
        let budget = budget.min(self.merge.reach().max(1));
        let mut drained = self.merge.deliver(budget, None, sink);
        if drained.blocked {
            // Under load one number or another is always missing: each is timed on its own.
            let next = self.merge.next();
            let stuck = self.stuck.take_if(|(number, _)| *number == next);
            let (_, begun) = *self.stuck.insert(stuck.unwrap_or_else(|| (next, Instant::now())));
            let since = begun.elapsed();
            if since > STUCK {
                // Numbers below this are taken. If no thread is busy after that, their events are written or lost.
                // The rings of threads that took one are in the list, so all of them are checked.
                let taken = self.map.process(self.process).sequence.0.load(Ordering::Acquire);
                self.adopt(sink);
                if since > PATIENCE || !self.any_thread_busy() {
                    let more = self.merge.deliver(budget, Some(taken), sink);
                    drained = Drained { words: drained.words + more.words, ..more };
                    self.stuck = None;
                }
            }
        } else {
            self.stuck = None;
        }
        self.reap();
        self.damaged += drained.corrupted;
        drained
    }

    /// The losses, as far as they are known by now.
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

    /// Delivers the remaining events of a process that has [gone](Tap::gone), and frees its entry and its rings. Of one
    /// that has not gone, delivers what is there without waiting for missing events, and keeps its rings.
    pub fn end(&mut self, sink: &mut impl Sink) -> Drained {
        if self.ended {
            return Drained { idle: true, ..Drained::default() };
        }
        let gone = self.gone();
        self.sample_counters();
        self.adopt(sink);
        self.merge.stop_waiting();
        let taken = self.map.process(self.process).sequence.0.load(Ordering::Acquire);
        let mut all = Drained { idle: true, ..Drained::default() };
        // At most twice what the rings hold: the process may still run, and may be corrupted. The reader finds how far
        // a ring reaches only when it gets to the edge of what it knows.
        while all.words <= 2 * self.merge.reach().max(1) {
            let drained = self.merge.deliver(self.merge.reach().max(1), Some(taken), sink);
            all.words += drained.words;
            all.missing += drained.missing;
            self.damaged += drained.corrupted;
            if drained.words == 0 {
                break;
            }
        }
        let skipped = self.merge.skip_to(taken);
        all.missing += skipped.missing;
        self.damaged += skipped.corrupted;
        // Nothing is written any more that the rings do not have now.
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

    /// Requests that the process, and children that it forks, record no more events. It must be drained and ended like
    /// others.
    pub fn dismiss(&self) {
        self.dismissed.store(true, Ordering::Relaxed);
        let gate = &self.map.process(self.process).gate.0;
        gate.fetch_or(gate::DISMISSED, Ordering::AcqRel);
        crate::sys::futex_wake(gate);
    }

    /// Whether the process has begun to end, and waits for [`Tap::go_on`].
    pub fn is_ending(&self) -> bool {
        self.map.process(self.process).gate.0.load(Ordering::Acquire) & gate::ENDING != 0
    }

    /// Whether the process has come to its [`StopPoint`](crate::StopPoint), and waits for [`Tap::go_on`].
    pub fn is_stopped(&self) -> bool {
        self.map.process(self.process).gate.0.load(Ordering::Acquire) & gate::STOPPED != 0
    }

    /// Lets a process go on that waits for it.
    pub fn go_on(&self) {
        let gate = &self.map.process(self.process).gate.0;
        gate.fetch_and(!(gate::ENDING | gate::STOPPED), Ordering::AcqRel);
        crate::sys::futex_wake(gate);
    }

    /// Requests facts from the process; returns the number of the request. The layer finds `options` in the first byte.
    /// The process answers at its next event, paused or not.
    pub fn request_facts(&self, options: u8) -> u32 {
        let process = self.map.process(self.process);
        process.facts_options.store(options.into(), Ordering::Relaxed);
        let request = process.facts_requested.fetch_add(1, Ordering::AcqRel).wrapping_add(1);
        process.gate.0.fetch_or(gate::FACTS, Ordering::AcqRel);
        crate::sys::futex_wake(&process.gate.0);
        request
    }

    /// Whether a thread has taken the request: then the answer may still take a while.
    pub fn is_answering(&self) -> bool {
        self.map.process(self.process).gate.0.load(Ordering::Acquire) & gate::FACTS == 0
    }

    /// The facts that answer `request`, once they are there. Empty: the layer has none.
    pub fn facts(&self, request: u32) -> Option<Vec<u8>> {
        let process = self.map.process(self.process);
        if process.facts_answered.load(Ordering::Acquire) != request {
            return None;
        }
        let length = process.facts_bytes.load(Ordering::Relaxed) as usize;
        Some(process.facts.0.iter().take(length).map(|byte| byte.load(Ordering::Relaxed)).collect())
    }

    /// Checks whether the reader's structures are consistent with each other and the file.
    ///
    /// # Errors
    /// The first defect, in words.
    pub fn check(&self) -> Result<(), String> {
        self.merge.check()?;
        for reader in self.merge.readers() {
            let id = self.map.control(reader.ring).owner.0.id.load(Ordering::Relaxed);
            if id >> 32 != self.process as u64 + 1 {
                return Err(format!(
                    "ring {} is read for entry {} but belongs to {id:x}",
                    reader.ring, self.process
                ));
            }
        }
        Ok(())
    }

    /// Samples the counters of the process.
    fn sample_counters(&mut self) {
        self.left_out.sample(self.map.process(self.process).threads_left_out.load(Ordering::Relaxed));
    }

    /// Finds the rings of new threads.
    fn adopt(&mut self, sink: &mut impl Sink) {
        let newest = &self.map.process(self.process).newest.0;
        if newest.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut next = newest.swap(0, Ordering::AcqRel);
        let mut rings = Vec::new();
        // A corrupted program may have overwritten the list.
        while next != 0 && next as usize <= self.map.geometry.rings && rings.len() < self.map.geometry.rings {
            let ring = next as usize - 1;
            self.map.highest.fetch_max(ring + 1, Ordering::Relaxed);
            rings.push(ring);
            next = self.map.control(ring).owner.0.next.load(Ordering::Relaxed);
        }
        let waits = self.map.flags.latency;
        for ring in rings.into_iter().rev() {
            let owner = self.map.control(ring).owner.0.id.load(Ordering::Relaxed);
            if owner >> 32 != self.process as u64 + 1
                || self.merge.readers().any(|reader| reader.ring == ring)
            {
                continue;
            }
            let mut reader = Reader::new(&self.map, self.process, (ring, owner as u32 as i32), waits);
            if reader.thread != SHARED {
                // An overwritten number is replaced: the thread's events must be drained in any case.
                let threads = self.map.threads(self.process).max(1);
                reader.thread = reader.thread.min(threads - 1);
                sink.thread(reader.thread, reader.tid);
            }
            self.merge.add(reader);
        }
    }

    /// Whether a running thread is between its number and its words, or between its free and the free's latency.
    fn any_thread_busy(&mut self) -> bool {
        let (map, at) = (&self.map, &self.at);
        self.merge.readers_mut().any(|reader| {
            // The next words may lie in the blocks reserved last.
            reader.extend(map);
            let owner = &map.control(reader.ring).owner.0;
            let busy = owner.busy.load(Ordering::Acquire) != 0 || reader.waiting();
            if !busy {
                return false;
            }
            let tid = reader.tid;
            let runs = if tid == 0 { at.runs() } else { at.thread_runs(tid) };
            if !runs {
                reader.stop_waiting();
            }
            runs
        })
    }

    /// Frees the rings of threads that have ended.
    fn reap(&mut self) {
        let hint = self.map.header().registry.0.ring_hint.load(Ordering::Relaxed) as usize;
        let scarce = hint > self.map.geometry.rings / 4 * 3;
        if self.reaped.elapsed() < if scarce { REAP_SCARCE } else { REAP } {
            return;
        }
        let caught_up = self.merge.caught_up();
        let count = caught_up.len().min(REAP_THREADS);
        let from = if self.reaped_to < caught_up.len() { self.reaped_to } else { 0 };
        self.reaped_to = from + count;
        let scanned: Vec<usize> = (0..count).map(|n| caught_up[(from + n) % caught_up.len()]).collect();
        for index in scanned {
            let Some(reader) = self.merge.reader_mut(index) else { continue };
            if reader.tid == 0 || self.at.thread_runs(reader.tid) {
                self.damaged += reader.unblock(&self.map) as u64;
                continue;
            }
            // Its last events may lie in the blocks that it reserved last.
            reader.extend(&self.map);
            // Only now: before, the thread may have been about to write.
            if reader.waiting() {
                reader.stop_waiting();
            } else if reader.empty() {
                let ring = reader.ring;
                self.unread |= reader.is_cut();
                self.merge.remove(index);
                self.map.recycle(ring);
            }
        }
        self.reaped = Instant::now();
    }
}

#[cfg(test)]
mod tests;
