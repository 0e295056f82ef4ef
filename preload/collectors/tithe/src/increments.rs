//! When a collection is incremental, and how much is done in each increment: for `TITHE_PAUSE`, and for long full
//! collections where there are generations.
//!
//! An incremental collection marks while the program runs on (mostly-parallel marking; Boehm, Demers and Shenker 1991), in
//! increments during which all threads are stopped. Writes to the heap are recorded from its first increment on. A pass
//! reads the roots and what was written of marked blocks, and marks from there; the first pass finds all pages unwritten.
//! The collection ends with a pass that begins and ends within one increment: nothing was written since it began.
//!
//! Nothing here reads a clock or the heap, so every decision can be simulated.

use heaptoll_assertions::assert_internal;
use heaptoll_runtime::Message;

/// Of the budget, the part that is used up when an incremental collection begins, percent: the rest is for the program to
/// go on with until it ends.
const BEGIN_PERCENT: usize = 50;
/// Of the pause, the part that is spent on marking, percent: threads have to stop and to go on.
const MARKING_PERCENT: u64 = 45;
/// Of the pause, the part up to which the next pass begins in the same increment, percent.
const PASS_PERCENT: u64 = 10;
/// Bytes that a marker reads in a nanosecond, times 1000, until it is known.
const RATE: u64 = 500;
/// Fewest bytes that the program allocates between two increments.
const STEP: usize = 64 << 10;
/// Passes after which the next one is not interrupted: the program writes faster than can be read.
const PASSES: u32 = 8;
/// Increments that are expected after everything has been marked once.
const LAST_INCREMENTS: usize = 4;

/// How far an incremental collection has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// There is none.
    Idle,
    /// Writes to the heap are being recorded, from this unit on. Nothing is marked yet.
    Recording { unit: usize },
    /// What was found is being marked.
    Marking,
    /// What was written of marked blocks is being read, from this unit on.
    Rereading { unit: usize },
}

/// The state from one increment to the next.
#[derive(Debug)]
pub struct Increments {
    /// The longest pause, ns; `None`: collections are not incremental.
    pub pause_ns: Option<u64>,
    /// There are generations: only full collections are incremental, begin when they are due, and leave ages.
    pub of_full: bool,
    pub stage: Stage,
    /// Bytes in blocks that were marked, and bytes of marked blocks that were read again.
    pub marked: usize,
    pub reread: usize,
    /// Of the roots, when they were read last.
    pub roots: usize,
    /// The last collection was not continued.
    is_whole_due: bool,
    /// The mark stack had no space.
    pub overflowed: bool,
    /// Passes that were begun.
    passes: u32,
    /// Increments so far, how long they took, how much of it the process had a processor, how much threads took to stop,
    /// and the longest, ns.
    pub count: u32,
    pub total_ns: u64,
    pub own_ns: u64,
    pub stop_ns: u64,
    pub longest_ns: u64,
    /// Units of the heap when it began.
    pub units: usize,
    /// What there is to mark, and what may be allocated until all is marked, bytes.
    work: usize,
    allowance: usize,
    /// Bytes that a marker reads in a nanosecond, times 1000.
    rate: u64,
    outrun: Outrun,
}

/// Whether the program has been found to write faster than can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outrun {
    No,
    Unreported { pause_ns: u64 },
    Reported,
}

impl Increments {
    pub const fn new() -> Increments {
        Increments {
            pause_ns: None,
            of_full: false,
            stage: Stage::Idle,
            marked: 0,
            reread: 0,
            roots: 0,
            is_whole_due: false,
            overflowed: false,
            passes: 0,
            count: 0,
            total_ns: 0,
            own_ns: 0,
            stop_ns: 0,
            longest_ns: 0,
            units: 0,
            work: 0,
            allowance: 0,
            rate: RATE,
            outrun: Outrun::No,
        }
    }

    /// Whether a collection has begun that has not ended.
    pub fn is_active(&self) -> bool {
        self.stage != Stage::Idle
    }

    /// Whether a collection of so many live bytes and roots has to be incremental: marking all of them at once would take
    /// longer than the pause allows. Roots are read at once, and twice at least: where they alone take longer and are more
    /// than the rest, a whole collection stops the program for little longer, and once.
    pub fn is_needed(&self, live: usize) -> bool {
        let percent = if self.of_full { 100 } else { MARKING_PERCENT };
        let most = self.pause_ns.unwrap_or(u64::MAX) / 100 * percent;
        let is_long = |bytes| self.marking_ns(bytes) > most;
        let roots = self.roots;
        self.pause_ns.is_some()
            && !self.is_whole_due
            && is_long(live.saturating_add(roots))
            && !(is_long(roots) && roots > live)
    }

    fn marking_ns(&self, bytes: usize) -> u64 {
        (bytes as u64).saturating_mul(1000) / self.rate.max(1)
    }

    /// Bytes that were marked and read since the collection began; 0 before.
    pub fn done(&self) -> usize {
        if self.is_active() { self.marked + self.reread } else { 0 }
    }

    /// What of a budget is allocated when a collection begins, bytes.
    pub fn trigger(&self, budget: usize) -> usize {
        if self.pause_ns.is_some() && !self.of_full { budget / 100 * BEGIN_PERCENT } else { budget }
    }

    /// When an increment has to end whose threads had stopped at that time, ns.
    pub fn deadline(&self, stopped_ns: u64) -> u64 {
        stopped_ns.saturating_add(self.pause_ns.unwrap_or(u64::MAX) / 100 * MARKING_PERCENT)
    }

    /// When an increment has to end in which a pass has read the roots by now, ns. What takes longer than the pause allows is
    /// not to be read in vain: the pass gets its time after it.
    pub fn deadline_after_roots(&self, deadline: u64, now_ns: u64) -> u64 {
        if now_ns > deadline { self.deadline(now_ns) } else { deadline }
    }

    /// Whether the program has allocated more, since the last collection ended, than it was to until this one ends.
    pub fn is_overdrawn(&self, allocated: isize) -> bool {
        self.is_active() && usize::try_from(allocated).is_ok_and(|allocated| allocated > self.allowance)
    }

    /// Until when the next pass may begin in an increment whose threads had stopped at that time, ns.
    pub fn pass_deadline(&self, stopped_ns: u64) -> u64 {
        stopped_ns.saturating_add(self.pause_ns.unwrap_or(u64::MAX) / 100 * PASS_PERCENT)
    }

    /// A collection of a heap of so many units begins that has `work` bytes to mark, while the program may allocate
    /// `allowance`.
    pub fn begin(&mut self, units: usize, work: usize, allowance: usize) {
        assert_internal!(!self.is_active(), "one collection is incremental at a time");
        *self = Increments {
            pause_ns: self.pause_ns,
            of_full: self.of_full,
            stage: Stage::Recording { unit: 0 },
            units,
            work,
            allowance,
            roots: self.roots,
            rate: self.rate,
            outrun: self.outrun,
            ..Increments::new()
        };
    }

    /// A pass begins.
    pub fn begin_pass(&mut self) {
        self.passes += 1;
    }

    /// Whether the pass is interrupted when the pause is over.
    pub fn is_interrupted(&self) -> bool {
        self.passes <= PASSES
    }

    /// After an increment that has marked and read so many bytes in so much time, but for the time that threads took to stop.
    /// Returns what may be allocated before the next one, where `allocated` bytes were since the last collection ended.
    pub fn end_increment(&mut self, bytes: usize, marking_ns: u64, pause_ns: u64, allocated: usize) -> usize {
        self.count += 1;
        self.total_ns += pause_ns;
        self.stop_ns += pause_ns.saturating_sub(marking_ns);
        self.longest_ns = self.longest_ns.max(pause_ns);
        self.measure(bytes, marking_ns);
        let done = bytes.max(STEP);
        let left = self.work.saturating_sub(self.marked) / done + LAST_INCREMENTS;
        (self.allowance.saturating_sub(allocated) / left).max(STEP)
    }

    /// A marker has read so many bytes in so much time: a new figure counts as much as all earlier ones together.
    pub fn measure(&mut self, bytes: usize, ns: u64) {
        if bytes > STEP && ns > 0 {
            self.rate = ((self.rate + (bytes as u64).saturating_mul(1000) / ns) / 2).max(1);
        }
    }

    /// The collection has ended with an increment of this length.
    pub fn end(&mut self, pause_ns: u64) {
        let is_longer = self.pause_ns.is_some_and(|most| pause_ns > most);
        if self.passes > PASSES && is_longer && !self.of_full && self.outrun == Outrun::No {
            self.outrun = Outrun::Unreported { pause_ns };
        }
    }

    /// The collection is not continued: marks are to be cleared, and the next one is whole, so that a program cannot keep all
    /// of them from ending.
    pub fn forget(&mut self) {
        self.stage = Stage::Idle;
        self.is_whole_due = true;
    }

    /// Writes are not recorded, and will not be: all collections are whole from now on.
    pub fn disable(&mut self) {
        self.pause_ns = None;
    }

    /// A whole collection has ended, which has read so many bytes of roots.
    pub fn on_whole(&mut self, roots: usize) {
        self.is_whole_due = false;
        self.roots = roots;
    }

    /// The warning, once, that the program writes faster than the collector reads. It must be written after the program is
    /// resumed.
    pub fn warning(&mut self) -> Option<Message> {
        let Outrun::Unreported { pause_ns } = self.outrun else { return None };
        self.outrun = Outrun::Reported;
        let line = Message::new().text("tithe: a pause took ").number(pause_ns / 1000);
        let line = line.text(" microseconds, more than TITHE_PAUSE allows: the program writes to old memory faster than it can");
        Some(line.text(" be read again; allow longer pauses, or expect such ones"))
    }
}

impl Default for Increments {
    fn default() -> Increments {
        Increments::new()
    }
}

#[cfg(test)]
mod tests;
