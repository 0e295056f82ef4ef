//! Which collections are young: they keep what is old unread, and read only what the program wrote since.
//!
//! A young collection pays while old blocks are many and most of them are not written. To record writes to all of them is
//! costly where they are: so it is first done to a few pages, and to all if fewer than a third of these were written by the next
//! collection. Nothing here reads a clock or the heap, so every decision can be simulated.

use heaptoll_assertions::assert_internal;
use heaptoll_roots::{Buffer, Untracked, WriteTracker};
use heaptoll_runtime::PAGE;

use crate::reservation::AHEAD;

/// Heaps with fewer live bytes have full collections: these take a millisecond at most.
pub const LIVE_MIN: usize = 1 << 20;
/// One page in so many is sampled, odd so that they are not all the first of their unit; and so many pages at most.
const SAMPLED: usize = 17;
const SAMPLES_MAX: usize = 128;
/// Old blocks may grow by so much, in percent of what the last full collection found live, until the next full one; by what
/// part of the growth was garbage the percentage moves between the bounds. And by so many bytes in any case.
const GROWTH: usize = 30;
const GROWTH_MIN: usize = 15;
const GROWTH_MAX: usize = 100;
const GROWTH_BYTES: usize = 1 << 20;
/// More collections without records of writes follow each time that a young one had to read most: 1, 2, 4, up to 32.
const SKIPS_MAX: u32 = 5;

/// What a collection reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generation {
    /// All that is reachable; ages and records of writes are not kept.
    Unaged,
    /// All that is reachable, which becomes old.
    Full,
    /// What is reachable from roots and from what was written of old blocks; it becomes old too.
    Young,
    /// All that is reachable, in increments; with generations it leaves ages, as a full one.
    Incremental,
}

impl Generation {
    /// Its name in the log.
    pub const fn as_str(self) -> &'static str {
        match self {
            Generation::Unaged => "unaged",
            Generation::Full => "full",
            Generation::Young => "young",
            Generation::Incremental => "incremental",
        }
    }
}

/// What the choice depends on.
#[derive(Debug, Clone, Copy)]
pub struct Facts {
    /// The budget is used up: no request, no memory pressure.
    pub due: bool,
    /// There is no memory: every free place is needed, also those between old blocks.
    pub pressure: bool,
    /// Bytes found live by the last collection.
    pub live: usize,
    /// Units of the heap.
    pub units: usize,
}

/// Whether few of the old pages are written between two collections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Forecast {
    /// Not known for so many more collections: there was reason not to ask.
    Unknown {
        wait: u32,
    },
    /// Writes to a few pages are recorded.
    Sampling,
    Few,
}

/// The state from one collection to the next.
#[derive(Debug)]
pub struct Generations {
    pub enabled: bool,
    /// Each young or incremental collection is followed by a full marking, and the two are compared.
    pub check: bool,
    pub tracker: WriteTracker,
    forecast: Forecast,
    /// The addresses of the pages by which it is made.
    pub samples: Buffer<usize>,
    /// With `check`: the words of the roots that point into the heap, and the marks of that collection.
    pub words: Buffer<usize>,
    pub marks: Buffer<u64>,
    /// The last collection has left ages.
    aged: bool,
    /// Of the last full collection.
    live_at_full: usize,
    units_at_full: usize,
    /// Percent.
    growth: usize,
    /// Collections that will not rely on records of writes, and how often there was reason for it, or for a forecast to
    /// wait, one after the other.
    skip: u32,
    skips: u32,
    /// Why there are no generations, for the log.
    unreported: Option<Untracked>,
}

impl Generations {
    pub const fn new() -> Generations {
        Generations {
            enabled: false,
            check: false,
            tracker: WriteTracker::new(),
            forecast: Forecast::Unknown { wait: 0 },
            samples: Buffer::new(),
            words: Buffer::new(),
            marks: Buffer::new(),
            aged: false,
            live_at_full: 0,
            units_at_full: 0,
            growth: GROWTH,
            skip: 0,
            skips: 0,
            unreported: None,
        }
    }

    /// The addresses of its working memory, which is no root.
    pub fn ranges(&self) -> [core::ops::Range<usize>; 5] {
        let [text, regions] = self.tracker.ranges();
        [text, regions, self.samples.range(), self.words.range(), self.marks.range()]
    }

    /// What the next collection is to read.
    pub fn choose(&self, facts: &Facts) -> Generation {
        // A full collection may find that a heap is a little smaller.
        let least = if self.aged { LIVE_MIN / 2 } else { LIVE_MIN };
        let pays = self.check || facts.live >= least && self.forecast == Forecast::Few;
        if !self.enabled || facts.pressure || self.skip > 0 || !pays {
            return Generation::Unaged;
        }
        // Words in units beyond those that were recorded as pointed to are not known.
        let known = facts.units <= self.units_at_full + AHEAD;
        let grown = facts.live.saturating_sub(self.live_at_full);
        if self.aged && facts.due && known && grown <= self.growth_bytes() {
            Generation::Young
        } else {
            Generation::Full
        }
    }

    fn growth_bytes(&self) -> usize {
        (self.live_at_full / 100 * self.growth).max(GROWTH_BYTES)
    }

    /// Whether writes to some pages are to be recorded after a collection without ages that has found so many bytes live.
    pub fn is_sampling_due(&self, live: usize) -> bool {
        let is_waiting = matches!(self.forecast, Forecast::Unknown { wait: 1.. });
        let is_known = self.check || self.forecast == Forecast::Few;
        self.enabled && self.skip == 0 && !is_known && !is_waiting && live >= LIVE_MIN
    }

    /// One page in how many is sampled of so many live bytes.
    pub fn sampling_step(live: usize) -> usize {
        SAMPLED.max((live / PAGE / SAMPLES_MAX) | 1)
    }

    /// Writes to some pages are recorded from now on.
    pub fn on_sampling(&mut self) {
        self.forecast = Forecast::Sampling;
    }

    /// Whether writes to some pages are recorded.
    pub fn is_sampling(&self) -> bool {
        self.forecast == Forecast::Sampling
    }

    /// So many of the pages were written by the next collection that was due.
    pub fn on_samples(&mut self, written: usize) {
        self.forecast = if written < self.samples.as_slice().len().div_ceil(3) {
            Forecast::Few
        } else {
            Forecast::Unknown { wait: self.next_wait() }
        };
    }

    /// Less than half of what is live and may hold pointers lies in dense spans: a young collection would read the rest in any
    /// case. So nothing is old, unless ages are to be checked.
    pub fn on_sparse(&mut self) {
        self.forecast = Forecast::Unknown { wait: self.next_wait() };
        self.aged &= self.check;
    }

    /// Whether the last collection has left ages.
    pub fn is_aged(&self) -> bool {
        self.aged
    }

    /// Before a collection changes marks or ages: until it has ended they are not to be relied on.
    pub fn begin(&mut self) {
        self.aged = false;
    }

    /// It is not known what was written: the collection was a full one.
    pub fn on_untracked(&mut self, cause: Untracked) {
        self.aged = false;
        if cause.may_pass() {
            self.back_off();
        } else {
            self.enabled = false;
            self.unreported = Some(cause);
        }
    }

    /// Whether the next collections are not to rely on records of writes.
    pub fn is_backing_off(&self) -> bool {
        self.skip > 0
    }

    /// Why there are no generations, once.
    pub fn take_unreported(&mut self) -> Option<Untracked> {
        self.unreported.take()
    }

    fn back_off(&mut self) {
        self.forecast = Forecast::Unknown { wait: 0 };
        self.skip = self.next_wait();
    }

    /// For how many collections there are no ages, each time twice as many.
    fn next_wait(&mut self) -> u32 {
        let wait = 1 << self.skips;
        self.skips = (self.skips + 1).min(SKIPS_MAX);
        wait
    }

    /// After a collection without ages.
    pub fn on_unaged(&mut self) {
        self.aged = false;
        self.skip = self.skip.saturating_sub(1);
        if let Forecast::Unknown { wait } = &mut self.forecast {
            *wait = wait.saturating_sub(1);
        }
    }

    /// After a full collection that has left ages: `before` are the live bytes that the collection before it found.
    pub fn on_full(&mut self, before: usize, live: usize, units: usize) {
        let grown = before.saturating_sub(self.live_at_full);
        let garbage = before.saturating_sub(live);
        if grown > 0 && self.live_at_full > 0 {
            if garbage > grown / 2 {
                self.growth = (self.growth / 2).max(GROWTH_MIN);
            } else if garbage < grown / 4 {
                self.growth = (self.growth * 2).min(GROWTH_MAX);
            }
        }
        assert_internal!(
            (GROWTH_MIN..=GROWTH_MAX).contains(&self.growth),
            "old blocks grow by the least to the most between two full collections"
        );
        (self.live_at_full, self.units_at_full) = (live, units);
        self.aged = true;
    }

    /// After a young collection that read `read` of `old` bytes in old blocks. `written` bytes of pages were written first
    /// since the one before: such a write takes as long as reading the page.
    pub fn on_young(&mut self, old: usize, read: usize, written: usize) {
        self.aged = true;
        if read + written > old / 2 && old >= LIVE_MIN && !self.check {
            // The program writes everywhere: reading all costs no more, and writes cost less without records.
            self.back_off();
        } else {
            self.skips = 0;
        }
    }

    /// In the child of a fork, whose memory no record covers yet.
    pub fn after_fork_in_child(&mut self) {
        self.aged = false;
        self.tracker.after_fork_in_child();
    }
}

impl Default for Generations {
    fn default() -> Generations {
        Generations::new()
    }
}

#[cfg(test)]
mod tests;
