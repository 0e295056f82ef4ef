//! Which collections are young: they keep what is old unread, and read only what the program wrote since.
//!
//! A young collection pays while old blocks are many and most of them are not written. Nothing here reads a clock or the
//! heap, so every decision can be simulated.

use heaptoll_assertions::assert_internal;
use heaptoll_roots::{Buffer, Untracked, WriteTracker};

use crate::reservation::AHEAD;

/// Heaps with fewer live bytes have full collections: these take a few milliseconds at most.
pub const LIVE_MIN: usize = 8 << 20;
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
    /// All that is reachable, in increments; ages are not kept.
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

/// The state from one collection to the next.
#[derive(Debug)]
pub struct Generations {
    pub enabled: bool,
    /// Each young or incremental collection is followed by a full marking, and the two are compared.
    pub check: bool,
    pub tracker: WriteTracker,
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
    /// Collections that will not rely on records of writes, and how often there was reason for it, one after the other.
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
    pub fn ranges(&self) -> [core::ops::Range<usize>; 4] {
        let [text, regions] = self.tracker.ranges();
        [text, regions, self.words.range(), self.marks.range()]
    }

    /// What the next collection is to read.
    pub fn choose(&self, facts: &Facts) -> Generation {
        if !self.enabled || facts.pressure || self.skip > 0 || facts.live < LIVE_MIN && !self.check {
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
        self.skip = 1 << self.skips.min(SKIPS_MAX);
        self.skips = (self.skips + 1).min(SKIPS_MAX);
    }

    /// After a collection without ages.
    pub fn on_unaged(&mut self) {
        self.aged = false;
        self.skip = self.skip.saturating_sub(1);
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

    /// After a young collection that has read so many bytes of `old` ones.
    pub fn on_young(&mut self, old: usize, read: usize) {
        self.aged = true;
        if read / 2 > old / 3 && old >= LIVE_MIN && !self.check {
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
mod tests {
    use super::*;

    const DUE: Facts = Facts { due: true, pressure: false, live: 10 << 20, units: 1000 };

    fn after_full(live: usize) -> Generations {
        let mut generations = Generations { enabled: true, ..Generations::new() };
        generations.on_full(0, live, 1000);
        generations
    }

    #[test]
    fn the_first_collection_is_full_and_the_next_young() {
        let generations = Generations { enabled: true, ..Generations::new() };
        assert_eq!(generations.choose(&DUE), Generation::Full);
        assert_eq!(after_full(10 << 20).choose(&DUE), Generation::Young);
        assert_eq!(Generations::new().choose(&DUE), Generation::Unaged);
    }

    #[test]
    fn small_heaps_have_no_ages() {
        let small = Facts { live: LIVE_MIN - 1, ..DUE };
        assert_eq!(after_full(LIVE_MIN - 1).choose(&small), Generation::Unaged);
        let checked = Generations { check: true, ..after_full(LIVE_MIN - 1) };
        assert_eq!(checked.choose(&small), Generation::Young);
    }

    #[test]
    fn a_collection_that_was_requested_is_full() {
        assert_eq!(after_full(10 << 20).choose(&Facts { due: false, ..DUE }), Generation::Full);
    }

    #[test]
    fn under_memory_pressure_there_are_no_ages() {
        let pressure = Facts { due: false, pressure: true, ..DUE };
        assert_eq!(after_full(10 << 20).choose(&pressure), Generation::Unaged);
    }

    #[test]
    fn a_heap_that_has_grown_beyond_what_was_recorded_is_collected_in_full() {
        let generations = after_full(10 << 20);
        assert_eq!(generations.choose(&Facts { units: 1000 + AHEAD, ..DUE }), Generation::Young);
        assert_eq!(generations.choose(&Facts { units: 1001 + AHEAD, ..DUE }), Generation::Full);
    }

    #[test]
    fn a_collection_that_does_not_end_leaves_no_ages() {
        let mut generations = after_full(10 << 20);
        generations.begin();
        assert_eq!(generations.choose(&DUE), Generation::Full);
    }

    #[test]
    fn old_garbage_is_bounded_and_growth_of_live_blocks_is_not_punished() {
        let mut generations = after_full(100 << 20);
        assert_eq!(generations.choose(&Facts { live: 130 << 20, ..DUE }), Generation::Young);
        assert_eq!(generations.choose(&Facts { live: 131 << 20, ..DUE }), Generation::Full);
        generations.on_full(131 << 20, 131 << 20, 1000);
        assert_eq!(generations.choose(&Facts { live: 200 << 20, ..DUE }), Generation::Young, "all was live");
        generations.on_full(209 << 20, 120 << 20, 1000);
        assert_eq!(
            generations.choose(&Facts { live: 160 << 20, ..DUE }),
            Generation::Full,
            "most was garbage"
        );
    }

    #[test]
    fn a_program_that_writes_everywhere_has_ever_fewer_young_collections() {
        let mut generations = after_full(10 << 20);
        let mut runs = std::vec::Vec::new();
        for _ in 0..7 {
            generations.on_young(9 << 20, 7 << 20);
            let mut skipped = 0;
            while generations.choose(&DUE) == Generation::Unaged {
                generations.on_unaged();
                skipped += 1;
            }
            runs.push(skipped);
            generations.on_full(10 << 20, 10 << 20, 1000);
        }
        assert_eq!(runs, [1, 2, 4, 8, 16, 32, 32]);
        generations.on_young(9 << 20, 5 << 20);
        assert_eq!(generations.choose(&DUE), Generation::Young);
    }

    #[test]
    fn a_kernel_without_records_is_not_tried_again() {
        let mut generations = after_full(10 << 20);
        generations.on_untracked(Untracked::Mapping);
        assert_eq!(generations.choose(&DUE), Generation::Unaged);
        generations.on_unaged();
        assert_eq!(generations.choose(&DUE), Generation::Full);
        generations.on_untracked(Untracked::Kernel(1));
        assert_eq!(generations.choose(&DUE), Generation::Unaged);
        assert!(!generations.enabled);
    }

    extern crate std;
}
