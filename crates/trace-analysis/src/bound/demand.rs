//! The first pass: how much is live at each time, and how long objects live.

use heaptoll_trace::{Event, EventKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rounding::{Options, rounded};
use crate::objects::{Object, Objects};

/// Points of the curve: between half as many and this.
const POINTS: usize = 1024;

/// Bytes kept for each object that is live at the same time as others.
pub(super) const EACH_OBJECT: usize = size_of::<Block>();

/// Live bytes in an interval of the trace.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// Number of the first event of the interval.
    pub event: u64,
    /// Its time, ns from the beginning.
    pub time_ns: u64,
    /// Most requested bytes live in it.
    pub live_bytes: u64,
    /// Most of them rounded up.
    pub rounded_bytes: u64,
}

/// Rounded lengths of live blocks by slot.
#[derive(Debug, Default)]
pub(super) struct Live {
    lengths: Vec<u64>,
}

impl Live {
    /// The slot has a block of this length; returns the length before, 0 for none.
    pub(super) fn begin(&mut self, slot: u32, length: u64) -> u64 {
        let index = slot as usize;
        if index >= self.lengths.len() {
            self.lengths.resize(index + 1, 0);
        }
        std::mem::replace(&mut self.lengths[index], length)
    }

    /// The slot has none; returns the length before.
    pub(super) fn end(&mut self, slot: u32) -> u64 {
        self.lengths.get_mut(slot as usize).map_or(0, std::mem::take)
    }
}

/// A live block.
#[derive(Debug, Clone, Copy, Default)]
struct Block {
    size: u64,
    /// The size rounded up: never 0.
    length: u64,
    usable: u64,
    /// Event of its allocation, and its number in order of allocation.
    birth: u64,
    number: u64,
}

impl Object for Block {
    #[inline(always)]
    fn is_alive(&self) -> bool {
        self.length > 0
    }
}

/// The demand of a trace on its manager.
#[derive(Debug)]
pub(super) struct Demand {
    options: Options,
    objects: Objects<Block>,
    events: u64,
    blocks: u64,
    time_ns: u64,
    live_bytes: u64,
    rounded_bytes: u64,
    usable_bytes: u64,
    max_live_bytes: u64,
    max_rounded_bytes: u64,
    max_usable_bytes: u64,
    peak_event: u64,
    peak_ns: u64,
    unknown_usable: bool,
    /// Bytes of blocks by the binary logarithm of their lifetime in events.
    by_lifetime: [u64; 33],
    curve: Vec<Point>,
    stride: u64,
}

impl Demand {
    pub(super) fn new(options: Options) -> Demand {
        Demand {
            options,
            objects: Objects::default(),
            events: 0,
            blocks: 0,
            time_ns: 0,
            live_bytes: 0,
            rounded_bytes: 0,
            usable_bytes: 0,
            max_live_bytes: 0,
            max_rounded_bytes: 0,
            max_usable_bytes: 0,
            peak_event: 0,
            peak_ns: 0,
            unknown_usable: false,
            by_lifetime: [0; 33],
            curve: Vec::new(),
            stride: 1,
        }
    }

    /// Consumes the next event; calls `on_end` with the block that ended and its lifetime in events. Returns whether a
    /// block began.
    pub(super) fn take(&mut self, event: &Event, mut on_end: impl FnMut(usize, u32)) -> bool {
        let resizes = event.kind == EventKind::Realloc;
        let begins_block = event.kind.allocates() || resizes;
        if event.kind.frees() || resizes {
            let block = self.objects.ended(event.slot).unwrap_or_default();
            let lifetime = u32::try_from(self.events - block.birth).unwrap_or(u32::MAX);
            on_end(block.number as usize, lifetime);
            self.by_lifetime[lifetime.checked_ilog2().map_or(0, |log| log as usize + 1)] += block.length;
            self.live_bytes -= block.size;
            self.rounded_bytes -= block.length;
            self.usable_bytes -= block.usable;
        }
        if begins_block {
            let (length, _) = rounded(event, self.options);
            let (size, usable) = (event.size, event.usable);
            let block = Block { size, length, usable, birth: self.events, number: self.blocks };
            self.objects.born(event.slot, block);
            self.unknown_usable |= event.usable == 0;
            self.live_bytes += event.size;
            self.rounded_bytes += length;
            self.usable_bytes = self.usable_bytes.saturating_add(event.usable);
            self.max_live_bytes = self.max_live_bytes.max(self.live_bytes);
            self.max_usable_bytes = self.max_usable_bytes.max(self.usable_bytes);
            if self.rounded_bytes > self.max_rounded_bytes {
                self.max_rounded_bytes = self.rounded_bytes;
                self.peak_event = self.events;
                self.peak_ns = event.time_ns;
            }
            self.blocks += 1;
        }
        self.time_ns = event.time_ns;
        self.trace_curve();
        self.events += 1;
        begins_block
    }

    fn trace_curve(&mut self) {
        let index = (self.events / self.stride) as usize;
        if index == POINTS {
            // Intervals twice as wide, half as many.
            let merged = self.curve.chunks(2).map(|pair| Point {
                event: pair[0].event,
                time_ns: pair[0].time_ns,
                live_bytes: pair.iter().map(|point| point.live_bytes).max().unwrap_or(0),
                rounded_bytes: pair.iter().map(|point| point.rounded_bytes).max().unwrap_or(0),
            });
            self.curve = merged.collect();
            self.stride *= 2;
            return self.trace_curve();
        }
        if index == self.curve.len() {
            self.curve.push(Point {
                event: self.events,
                time_ns: self.time_ns,
                live_bytes: 0,
                rounded_bytes: 0,
            });
        }
        let point = &mut self.curve[index];
        point.live_bytes = point.live_bytes.max(self.live_bytes);
        point.rounded_bytes = point.rounded_bytes.max(self.rounded_bytes);
    }

    /// Lifetimes that split the bytes of all blocks: powers of two near the quarters and above.
    pub(super) fn thresholds(&self) -> Vec<u32> {
        let all: u128 = self.by_lifetime.iter().map(|&bytes| u128::from(bytes)).sum();
        let mut thresholds = Vec::new();
        for percent in [50, 90, 98] {
            let mut sum = 0_u128;
            for (log, &bytes) in self.by_lifetime.iter().enumerate().take(32) {
                sum += u128::from(bytes);
                if bytes > 0 && sum * 100 >= all * percent {
                    thresholds.push(1_u32 << log);
                    break;
                }
            }
        }
        thresholds.dedup();
        thresholds
    }

    /// Time of the peak, ns from the beginning.
    pub(super) fn peak_ns(&self) -> u64 {
        self.peak_ns
    }

    pub(super) fn events(&self) -> u64 {
        self.events
    }

    pub(super) fn blocks(&self) -> u64 {
        self.blocks
    }

    pub(super) fn time_ns(&self) -> u64 {
        self.time_ns
    }

    pub(super) fn max_live_bytes(&self) -> u64 {
        self.max_live_bytes
    }

    pub(super) fn lower_bound_bytes(&self) -> u64 {
        self.max_rounded_bytes
    }

    pub(super) fn peak_event(&self) -> u64 {
        self.peak_event
    }

    pub(super) fn max_usable_bytes(&self) -> Option<u64> {
        (!self.unknown_usable && self.blocks > 0).then_some(self.max_usable_bytes)
    }

    pub(super) fn curve(&self) -> Vec<Point> {
        self.curve.clone()
    }
}
