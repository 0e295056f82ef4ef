//! The collector's state from one collection to the next: policy, markers, added roots, counters.

use heaptoll_assertions::assert_internal;
use heaptoll_marking::MarkStack;
use heaptoll_roots::{Buffer, World};
use heaptoll_stats_page::UnreadPlaces;

use crate::added::AddedRoots;
use crate::generations::Generations;
use crate::guard_settings::GuardSettings;
use crate::increments::Increments;
use crate::log::Sink;
use crate::markers::Markers;
use crate::policy::Policy;

/// Bytes of addresses that blocks may have for a hundred bytes of memory where every block is touched.
pub(crate) const ADDRESS_PERCENT_MIN: usize = 100;

/// Bytes of addresses kept for the tables of a collection: its stack has 256 KiB, the mark stack and lists begin with less.
pub(crate) const SPARE: usize = 1 << 20;

/// The state of the collector, kept from one collection to the next. Its lock lets one thread collect at a time.
pub struct Collector {
    pub(crate) policy: Policy,
    pub(crate) stack: MarkStack,
    pub(crate) markers: Markers,
    pub(crate) added: AddedRoots,
    /// Given back before a collection for which the program may have left no memory.
    pub(crate) spare: Buffer<u8>,
    pub(crate) generations: Generations,
    pub(crate) increments: Increments,
    pub(crate) statistics: Statistics,
    pub(crate) world: Option<&'static World>,
    pub(crate) log: Option<Sink>,
    pub(crate) guard: GuardSettings,
    /// That too many freed blocks wait is to be reported, in mode `guard`.
    pub(crate) outgrown: Outgrown,
    /// After each collection the chain that keeps the block at this address is written.
    pub(crate) why: Option<usize>,
    /// The last budget of the policy, bytes.
    pub(crate) last_budget: usize,
    /// Bytes of addresses that blocks may have for a hundred bytes of memory.
    pub(crate) address_percent: usize,
    /// Collections are due by allocated bytes, and not by a budget: `TITHE_EVERY`.
    pub(crate) every: Option<usize>,
    /// Every `reclaim`-th of the collections that were due reclaims.
    pub(crate) reclaim: u64,
    /// All is swept before the program is resumed.
    pub(crate) eager: bool,
    /// When the last collection ended, ns.
    pub(crate) ended_ns: u64,
    /// Processor time of the thread that collects, ns: when it began to, and at the end of the last collection.
    pub(crate) began_cpu_ns: u64,
    pub(crate) ended_cpu_ns: u64,
    /// Processors that the process could use when it started.
    pub(crate) cores: usize,
    /// A collection is running: a listener that it calls must not start another.
    pub(crate) busy: bool,
    /// Places that collections cannot read, which the log has.
    pub(crate) unread: UnreadPlaces,
}

/// Whether freed blocks have reached their bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outgrown {
    No,
    /// Bytes that words lead to, or of blocks that were released.
    Unreported(usize),
    Reported,
}

/// Counters since the start.
#[derive(Debug, Clone, Copy, Default)]
pub struct Statistics {
    pub collections: u64,
    pub abandoned: u64,
    pub pause_total_ns: u64,
    pub pause_max_ns: u64,
    pub collected_bytes: u64,
}

impl Statistics {
    /// Adds a pause, ns.
    pub fn add_pause(&mut self, pause_ns: u64) {
        self.pause_total_ns += pause_ns;
        self.pause_max_ns = self.pause_max_ns.max(pause_ns);
        assert_internal!(
            self.pause_max_ns <= self.pause_total_ns,
            "the longest pause is one of those that are added up"
        );
    }
}

impl Collector {
    pub const fn new() -> Collector {
        Collector {
            policy: Policy::new(),
            stack: MarkStack::new(),
            markers: Markers::new(),
            added: AddedRoots::new(),
            spare: Buffer::new(),
            generations: Generations::new(),
            increments: Increments::new(),
            statistics: Statistics {
                collections: 0,
                abandoned: 0,
                pause_total_ns: 0,
                pause_max_ns: 0,
                collected_bytes: 0,
            },
            world: None,
            log: None,
            guard: GuardSettings::new(),
            outgrown: Outgrown::No,
            why: None,
            last_budget: 0,
            address_percent: ADDRESS_PERCENT_MIN,
            every: None,
            reclaim: 1,
            eager: false,
            ended_ns: 0,
            began_cpu_ns: 0,
            ended_cpu_ns: 0,
            cores: 1,
            busy: false,
            unread: UnreadPlaces::NONE,
        }
    }

    /// Bytes of its own mapped memory.
    pub fn mapped_bytes(&self) -> usize {
        let generations: usize = self.generations.ranges().iter().map(|range| range.len()).sum();
        self.stack.mapped_bytes() + self.markers.mapped_bytes() + generations
    }
}
