//! When to collect: how many bytes may be allocated before the next collection.
//!
//! The collector passes the outcome of each collection ([`Cycle`]) and gets a budget. A small budget costs time, since
//! every collection scans all that is live and all roots again; a large one costs memory. The rules ([`Rule`]) differ
//! in how they trade one for the other. Nothing here reads a clock or the heap, so every rule can be simulated.

use heaptoll_assertions::assert_internal;
use heaptoll_runtime::Message;

use crate::mode::{HYBRID_HEADROOM, HYBRID_MIN_HEADROOM, Mode};
use crate::rule::Rule;
use crate::settings::Settings;

/// Mode `collect`: the headroom is counted in quarters, and grows from 4 of them to this many where collections are
/// expensive.
pub const COLLECT_QUARTERS: usize = 7;
/// The same where most of the cost is waiting for threads to stop, which get no processor. It applies to the bytes on
/// top as well.
pub const STOPPING_QUARTERS: usize = 32;
/// A collection is expensive when it takes more than this share of the time since the previous one, percent, and cheap
/// when it takes less than the second.
pub const EXPENSIVE: u64 = 20;
pub const CHEAP: u64 = 8;
/// Mode `collect`: the budget is so large that the cheapest collection so far takes this share of the time that the program
/// needs to allocate it, percent.
const FIXED_SHARE: u128 = 6;
/// Mode `collect`: a heap grows if its live bytes grew by more than an eighth of them, and of what was allocated.
const GROWING: usize = 8;
/// Mode `collect`: the bound on what the cost of a collection demands grows up to this number of processors.
const PROCESSORS_MAX: usize = 8;
/// Mode `hybrid`: how often the headroom may double while collections find next to nothing (2: four times as much).
pub const HYBRID_DOUBLINGS: u32 = 2;

/// The first heap of Zorn 1992, §2.2: 256 KiB.
pub const ZORN_START: usize = 256 << 10;

/// The size at which MemBalancer gives the same headroom as `proportional`, if the program allocates as fast as the
/// collector marks; smaller heaps get more in proportion, larger ones less.
pub const BALANCE_AT: usize = 16 << 20;

/// No budget is smaller, bytes: a collection costs some tens of microseconds even when nothing is live.
pub const LEAST: usize = 64 << 10;
/// No budget is larger, bytes: the address space of a process. Sums of a few such budgets do not overflow.
pub const MOST: usize = 1 << 47;

/// The outcome of a collection, and the period before it.
#[derive(Debug, Clone, Copy)]
pub struct Cycle {
    /// Bytes in blocks that the collection found live.
    pub live: usize,
    /// Bytes counted against the budget since the previous collection: allocated; in mode `hybrid` less those freed.
    pub allocated: usize,
    /// Bytes of roots that were scanned.
    pub roots: usize,
    /// From its start until everything is marked, the stop included, ns.
    pub mark_ns: u64,
    /// The part of it spent waiting for threads to stop, ns.
    pub stop_ns: u64,
    /// How long the program ran since the previous collection, ns.
    pub mutator_ns: u64,
    /// Bytes in blocks that the collection reclaimed.
    pub reclaimed: usize,
    /// Processors that the program's threads can use at once.
    pub processors: usize,
    /// How the heap is run.
    pub mode: Mode,
}

/// A rule with its parameters and its state from one collection to the next.
#[derive(Debug, Clone)]
pub struct Policy {
    rule: Rule,
    collects: bool,
    headroom: usize,
    min_headroom: usize,
    max_heap: Option<usize>,
    /// The budget is always this, whatever the rule.
    every: Option<usize>,
    /// The budget that [`Policy::next`] gave last.
    budget: usize,
    /// Collections abandoned since the last one that was finished.
    abandoned: u32,
    /// `Proportional` in mode `hybrid`: how often the headroom has been doubled.
    doublings: u32,
    /// `Proportional` in mode `collect`: the headroom in quarters.
    quarters: usize,
    adaptive: bool,
    /// `Proportional`: most bytes on top that the cost of a collection may demand, for each processor.
    cost_headroom: usize,
    /// The time of the cheapest collection so far: what one costs however little is live, ns.
    cheapest_ns: u64,
    /// Bytes that the last collection found live.
    live: usize,
    /// `Zorn1992`: the heap's size.
    size: usize,
    /// The program's rate of allocation.
    allocation: Rate,
    /// `MemBalancer`: the rate at which collections scan.
    marking: Rate,
    outgrown: Outgrown,
}

/// Whether live bytes have come too close to the maximum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outgrown {
    No,
    Unreported { live: usize },
    Reported,
}

impl Policy {
    /// The default: proportional, as for mode `hybrid`.
    pub const fn new() -> Policy {
        Policy {
            rule: Rule::Proportional,
            collects: true,
            headroom: HYBRID_HEADROOM,
            min_headroom: HYBRID_MIN_HEADROOM,
            max_heap: None,
            every: None,
            budget: HYBRID_MIN_HEADROOM,
            abandoned: 0,
            doublings: 0,
            quarters: 4,
            adaptive: true,
            cost_headroom: 0,
            cheapest_ns: u64::MAX,
            live: 0,
            size: ZORN_START,
            allocation: Rate::new(),
            marking: Rate::new(),
            outgrown: Outgrown::No,
        }
    }

    /// Applies the settings and resets the state.
    pub fn configure(&mut self, settings: &Settings) {
        *self = Policy {
            rule: settings.rule,
            collects: settings.mode != Mode::Explicit,
            headroom: settings.headroom,
            adaptive: settings.adaptive,
            min_headroom: settings.min_headroom,
            cost_headroom: settings.cost_headroom,
            max_heap: settings.max_heap,
            every: settings.every,
            ..Policy::new()
        };
        self.budget = self.first();
    }

    /// The budget at start, bytes.
    pub fn first(&self) -> usize {
        if !self.collects {
            return usize::MAX;
        }
        if let Some(every) = self.every {
            return every;
        }
        let wanted = match self.rule {
            // What a collection costs is not known yet: as if it demanded most. Many processes end before.
            Rule::Proportional => self.min_headroom.saturating_add(self.cost_headroom),
            Rule::MemBalancer => self.min_headroom,
            Rule::Fixed => MOST,
            Rule::Zorn1992 => ZORN_START,
        };
        match self.max_heap {
            Some(most) => wanted.min(most),
            None => wanted,
        }
        .clamp(LEAST, MOST)
    }

    /// The budget after a collection, bytes: what may be allocated (in mode `hybrid` net of what is freed) before the
    /// next one. `usize::MAX` in mode `explicit`, which does not collect.
    pub fn next(&mut self, cycle: &Cycle) -> usize {
        if !self.collects {
            return usize::MAX;
        }
        self.abandoned = 0;
        if let Some(every) = self.every {
            return every;
        }
        let wanted = match self.rule {
            Rule::Proportional => self.proportional(cycle),
            Rule::Fixed => MOST,
            Rule::Zorn1992 => self.zorn1992(cycle),
            Rule::MemBalancer => self.membalancer(cycle),
        };
        self.budget = self.below_maximum(wanted, cycle.live).clamp(LEAST, MOST);
        assert_internal!(
            self.max_heap.is_none_or(|most| {
                self.budget <= most.saturating_sub(cycle.live).max(most / 20).max(LEAST)
            }),
            "live blocks and budget stay below the maximum, or grow beyond it in small steps"
        );
        self.budget
    }

    /// The budget after a collection that could not begin and may succeed when it is tried again, bytes: as it was.
    pub fn postponed(&self) -> usize {
        if self.collects { self.budget } else { usize::MAX }
    }

    /// The budget after an abandoned collection, bytes. It doubles each time: waiting for a thread in vain costs the
    /// whole patience, and the next collection is unlikely to succeed.
    pub fn abandoned(&mut self) -> usize {
        if !self.collects {
            return usize::MAX;
        }
        self.abandoned = 20.min(self.abandoned + 1);
        let budget = self.budget.saturating_mul(1 << (self.abandoned - 1)).min(MOST);
        assert_internal!(
            self.every.is_some() || (LEAST..=MOST).contains(&budget),
            "a budget is neither so small that collections follow each other nor larger than any heap"
        );
        assert_internal!(
            budget >= self.budget.min(MOST),
            "an abandoned collection does not lower the budget"
        );
        budget
    }

    /// The warning, once, that the program needs more than the maximum. It must be written after the program is
    /// resumed, since standard error may be a pipe that the program itself reads.
    pub fn warning(&mut self) -> Option<Message> {
        let Outgrown::Unreported { live } = self.outgrown else { return None };
        self.outgrown = Outgrown::Reported;
        let mut line = Message::new().text("tithe: ");
        line = line.number(live as u64);
        line = line.text(" bytes are live, but TITHE_MAX_HEAP allows ");
        line = line.number(self.max_heap.unwrap_or(0) as u64);
        Some(
            line.text(
                ": the heap grows beyond it, in small steps; allow more, or expect a collection at each",
            ),
        )
    }

    /// Whether the collection came because the budget was exhausted, so that its outcome is evidence about the budget.
    /// One that the program requested, or on memory pressure, may come at any time.
    fn due(&self, cycle: &Cycle) -> bool {
        cycle.allocated >= self.budget / 2
    }

    fn proportional(&mut self, cycle: &Cycle) -> usize {
        if cycle.mode == Mode::Hybrid && self.due(cycle) {
            let share = percent(cycle.reclaimed, cycle.allocated);
            if share < 10 {
                self.doublings = HYBRID_DOUBLINGS.min(self.doublings + 1);
            } else if share >= 25 {
                self.doublings = self.doublings.saturating_sub(1);
            }
        }
        if cycle.mode != Mode::Hybrid && self.adaptive && self.due(cycle) {
            let costs_more_than = |share: u64| {
                u128::from(cycle.mark_ns) * 100 > u128::from(share) * u128::from(cycle.mutator_ns)
            };
            let stopping = cycle.stop_ns > cycle.mark_ns / 2;
            let most = match cycle.mode {
                _ if stopping => STOPPING_QUARTERS,
                Mode::Collect => COLLECT_QUARTERS,
                // What waits is memory that the program has given back.
                _ => 4,
            };
            if costs_more_than(EXPENSIVE) && self.quarters < most {
                self.quarters += 1 + usize::from(stopping);
            } else if !costs_more_than(CHEAP) || self.quarters > most {
                self.quarters = 4.max(self.quarters - 1);
            }
        }
        // A step of two may pass the bound by one.
        assert_internal!(
            (4..=STOPPING_QUARTERS + 1).contains(&self.quarters),
            "the headroom is at least the one that is set"
        );
        assert_internal!(
            self.doublings <= HYBRID_DOUBLINGS,
            "the headroom doubles no more often than allowed"
        );
        // Roots cost as much to scan as blocks, so a program with large statics and a small heap would otherwise scan
        // them far too often.
        let read = cycle.live.saturating_add(cycle.roots);
        let share = bytes(read as u128 * self.headroom as u128 * self.quarters as u128 / 400);
        // A heap that grows soon needs no more than its share. But the sizes at which it is collected later, and so its peak,
        // would depend on the time that its first collections took; so the first one counts from nothing.
        let grown = cycle.live.saturating_sub(self.live);
        let most = if grown > self.live.max(cycle.allocated) / GROWING {
            0
        } else {
            self.cost_headroom.saturating_mul(cycle.processors.min(PROCESSORS_MAX))
        };
        self.live = cycle.live;
        let on_top = self.min_headroom.max(self.demanded(cycle).saturating_sub(share).min(most));
        let stopping = self.quarters.saturating_sub(COLLECT_QUARTERS) / 4;
        let budget = share.saturating_add(on_top.saturating_mul(1 + stopping));
        assert_internal!(
            stopping > 0 || budget <= share.saturating_add(self.min_headroom.max(most)),
            "the cost of a collection demands no more than the bound"
        );
        budget.saturating_mul(1 << self.doublings)
    }

    /// The budget below which the fixed cost of collections is too large a share of the time, by the quickest allocation so
    /// far: the program may have waited for a processor in other periods.
    fn demanded(&mut self, cycle: &Cycle) -> usize {
        let found = Rate::of(cycle.allocated, cycle.mutator_ns);
        if self.due(cycle) && found.bytes * self.allocation.ns.max(1) > self.allocation.bytes * found.ns {
            self.allocation = found;
        }
        self.cheapest_ns = self.cheapest_ns.min(cycle.mark_ns);
        let Rate { bytes: allocated, ns } = self.allocation;
        bytes(allocated * u128::from(self.cheapest_ns) * 100 / (ns.max(1) * FIXED_SHARE))
    }

    fn zorn1992(&mut self, cycle: &Cycle) -> usize {
        if self.due(cycle) && cycle.reclaimed < self.size / 4 {
            self.size = grown_by_half(self.size);
        }
        // A block larger than the rest of the heap makes it grow as often as is needed; so does anything else that
        // would leave less than the quarter that the rule expects to be reclaimed.
        while self.size < MOST && self.size.saturating_sub(cycle.live) < self.size / 4 {
            self.size = grown_by_half(self.size);
        }
        assert_internal!(
            self.size >= MOST || self.size.saturating_sub(cycle.live) >= self.size / 4,
            "the heap of 1992 keeps the quarter that it expects to reclaim"
        );
        self.size.saturating_sub(cycle.live)
    }

    fn membalancer(&mut self, cycle: &Cycle) -> usize {
        let read = cycle.live.saturating_add(cycle.roots);
        self.allocation.add(cycle.allocated, cycle.mutator_ns);
        self.marking.add(read, cycle.mark_ns);
        // The rule is sqrt(live * g / (c * s)) with g the rate of allocation, s the speed of collection, and c the
        // share of time one is ready to pay for a byte less. Instead of c, which is hard to guess, the user sets the
        // headroom h for a heap of BALANCE_AT bytes with g = s: c = 1 / (h² * BALANCE_AT).
        let ratio = self.allocation.ratio(&self.marking);
        assert_internal!(
            ratio <= Rate::STEEPEST,
            "a ratio of two rates has a bound, so that no product overflows"
        );
        let product = read.min(MOST) as u128 * BALANCE_AT as u128 * ratio;
        let root = (product >> Rate::POINT).isqrt();
        bytes(root * self.headroom as u128 / 100).max(self.min_headroom)
    }

    /// Keeps live blocks and budget below the maximum, if there is one. When less than a twentieth of it is left the
    /// heap has to grow, or the program would do nothing but collect.
    fn below_maximum(&mut self, wanted: usize, live: usize) -> usize {
        let Some(most) = self.max_heap else { return wanted };
        let step = most / 20;
        let left = most.saturating_sub(live);
        if left < step {
            if self.outgrown == Outgrown::No {
                self.outgrown = Outgrown::Unreported { live };
            }
            return wanted.min(step);
        }
        wanted.min(left)
    }
}

impl Default for Policy {
    fn default() -> Policy {
        Policy::new()
    }
}

/// Bytes over time, smoothed: a new figure counts as much as all earlier ones together. MemBalancer smooths the speed
/// of collection this way, and the rate of allocation by a clock; here both are known only when a collection happens.
#[derive(Debug, Clone, Copy)]
struct Rate {
    bytes: u128,
    ns: u128,
}

impl Rate {
    /// Fractional binary digits of a ratio.
    const POINT: u32 = 16;
    /// No ratio is larger: 2^24.
    const STEEPEST: u128 = 1 << (24 + Rate::POINT);
    /// No time is longer, ns: 36 years.
    const LONGEST: u64 = 1 << 60;

    const fn new() -> Rate {
        Rate { bytes: 0, ns: 0 }
    }

    fn of(bytes: usize, ns: u64) -> Rate {
        Rate { bytes: bytes.min(MOST) as u128, ns: ns.clamp(1, Rate::LONGEST) as u128 }
    }

    /// Halving both sums keeps their ratio, so that the first figure counts in full.
    fn add(&mut self, bytes: usize, ns: u64) {
        let Rate { bytes, ns } = Rate::of(bytes, ns);
        (self.bytes, self.ns) = (self.bytes / 2 + bytes, self.ns / 2 + ns);
        assert_internal!(
            self.ns > 0 && self.ns <= 2 * u128::from(Rate::LONGEST) && self.bytes <= 2 * MOST as u128,
            "a smoothed rate is at most twice its largest figure"
        );
    }

    /// This rate in terms of another, a fixed-point number.
    fn ratio(&self, other: &Rate) -> u128 {
        // At most 2^48 * 2^61 * 2^16: no overflow.
        (((self.bytes * other.ns) << Rate::POINT) / (self.ns * other.bytes).max(1)).min(Rate::STEEPEST)
    }
}

fn percent(part: usize, whole: usize) -> usize {
    bytes(part as u128 * 100 / whole.max(1) as u128)
}

const _: () = {
    // Products of sizes and percentages fit 128 bits, sums of budgets 64.
    assert!(LEAST < MOST && MOST <= usize::MAX / 8);
    assert!(HYBRID_DOUBLINGS < 8 && COLLECT_QUARTERS < STOPPING_QUARTERS && CHEAP < EXPENSIVE);
    assert!(ZORN_START >= LEAST && HYBRID_MIN_HEADROOM >= LEAST);
};

fn grown_by_half(size: usize) -> usize {
    size.saturating_add(size / 2).min(MOST)
}

/// A product of sizes, as a size.
fn bytes(product: u128) -> usize {
    product.min(MOST as u128) as usize
}

#[cfg(test)]
mod tests;
