//! The smallest heap from which a trace could have been served, by a manager that does not move objects.
//!
//! From below: at any time all live blocks, each rounded up to what its address must be a multiple of, have to be
//! somewhere. No manager needs less than the maximum of it. From above: packings made with the knowledge of when every
//! block will be freed, which no manager has; the best of them is a heap that would have been enough. The smallest heap
//! lies between. (Finding it is NP-hard: Garey & Johnson 1979, problem SR2, dynamic storage allocation.)
//!
//! A resize ends a block and begins another. It stays in place where that fits; otherwise it moves while its old place
//! counts as free, as if by `memmove`. Both bounds are of this model.
//!
//! The trace is read once for its demand, then once for each round of packing. Memory is that of live objects, some
//! gaps, and four bytes an object, which are in a temporary file when there are many.

use std::io::{self, Read};

use heaptoll_trace::{Batch, EventKind, Reader, Sample, TraceError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::by_object::ByObject;
use crate::subject::Subject;

mod demand;
mod gaps;
mod packer;
mod rectangles;
mod rounding;

pub use demand::Point;
use demand::{Demand, Live};
use packer::{Block, Packer, Rule};
use rectangles::{Order, Rectangle};
pub use rounding::Options;
use rounding::rounded;

/// Bytes kept for each object that is live at the same time as others: by the first reading, and by those that pack,
/// where each rule keeps an address and, where the heap is fragmented, gaps.
pub const EACH_OBJECT: usize = demand::EACH_OBJECT + READINGS * size_of::<u64>() + RULES * 24;
/// Concurrent readings, and rules tried in all of them.
const READINGS: usize = 4;
const RULES: usize = 12;
/// Up to this many blocks are packed as rectangles too.
pub const RECTANGLES_MAX: u64 = 20_000;

/// Lifetimes in events; that of an object which lives to the end, or longer than the entry can hold, is [`FOR_EVER`].
type Lifetimes = ByObject<u32>;
const FOR_EVER: u32 = <u32 as crate::by_object::Entry>::UNKNOWN;

/// Why there is no bound.
#[derive(Debug, Error)]
pub enum BoundError {
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// There is no space for the table of lifetimes.
    #[error(
        "cannot keep the lifetimes of {objects} objects in a temporary file: {source}; set TMPDIR to a folder with more space"
    )]
    Scratch {
        /// Objects so far.
        objects: usize,
        /// The system's reason.
        source: io::Error,
    },
    /// The file was not the same at the second reading.
    #[error("the trace changed while it was read: wait until its recording has ended")]
    Changed,
}

schemars::labelled!(BoundFigures, "heaptoll-bound/1");

/// The bounds of a trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BoundFigures {
    /// The recorded process.
    pub subject: Subject,
    /// Options of the computation.
    pub options: Options,
    /// Events.
    pub events: u64,
    /// Blocks: allocations and resizes.
    pub blocks: u64,
    /// Most requested bytes live at once.
    pub max_live_bytes: u64,
    /// No manager needs less: most bytes live at once, each block rounded up.
    pub lower_bound_bytes: u64,
    /// Number of the event at which that was.
    pub peak_event: u64,
    /// Packings, the best first.
    pub packings: Vec<Packing>,
    /// The manager that the trace was recorded over.
    pub recorded: RecordedManager,
    /// The sample after the peak at which most was held and not live; none when the process was not sampled there. The
    /// bounds are of the peak alone.
    pub after_peak: Option<AfterPeak>,
    /// Live bytes over the trace.
    pub curve: Vec<Point>,
}

impl BoundFigures {
    /// A heap of this many bytes would have been enough.
    pub fn best_bytes(&self) -> u64 {
        self.packings.first().map_or(self.lower_bound_bytes, |packing| packing.heap_bytes)
    }
}

/// A heap that would have been enough.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Packing {
    /// Its rule, as text.
    pub rule: String,
    /// Its size.
    pub heap_bytes: u64,
    /// Times the lower bound; 1 is the optimum.
    pub factor: f64,
}

/// The recorded manager's figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecordedManager {
    /// Most usable bytes live at once, by `malloc_usable_size`; none when some are not known.
    pub max_usable_bytes: Option<u64>,
    /// Peak size of its heap; none when not known.
    pub peak_heap_bytes: Option<u64>,
    /// That as a multiple of the lower bound: no manager could have saved more.
    pub over_lower_bound: Option<f64>,
    /// That as a multiple of the best packing: what could have been saved with knowledge of the future.
    pub over_best_packing: Option<f64>,
}

/// A sample of the process after the peak of its live bytes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AfterPeak {
    /// ns from the beginning.
    pub time_ns: u64,
    /// Bytes of the heap's mappings, at most the resident anonymous memory.
    pub held_bytes: u64,
    /// Requested bytes live then.
    pub live_bytes: u64,
}

/// Computes the bounds of a trace, which `open` opens repeatedly.
///
/// # Errors
/// The trace cannot be read, or not twice; there is no space for the lifetimes. Damage is no error.
pub fn bound<R: Read>(
    open: &(impl Fn() -> Result<Reader<R>, TraceError> + Sync),
    options: Options,
) -> Result<BoundFigures, BoundError> {
    let (demand, lifetimes, reader) = first_pass(open()?, options)?;
    let mut packings = Vec::new();
    if demand.blocks() <= RECTANGLES_MAX {
        let rectangles = gather(open()?, &lifetimes, options)?;
        for order in [Order::Size, Order::Area, Order::Lifetime] {
            let starts = rectangles::pack(&rectangles, order);
            packings.push((order.label(), rectangles::heap_bytes(&rectangles, &starts)));
        }
    }
    for (rule, heap_bytes) in second_pass(open, &demand, &lifetimes, options)? {
        packings.push((rule.label(), heap_bytes));
    }
    let lower = demand.lower_bound_bytes();
    let times = |bytes: u64, of: u64| if of == 0 { 1.0 } else { bytes as f64 / of as f64 };
    let mut packings: Vec<Packing> = packings
        .into_iter()
        .map(|(rule, heap_bytes)| Packing { rule, heap_bytes, factor: times(heap_bytes, lower) })
        .collect();
    packings.sort_by_key(|packing| packing.heap_bytes);
    let best = packings.first().map_or(lower, |packing| packing.heap_bytes);
    let peak_heap_bytes = reader.tables().ending.as_ref().and_then(|ending| ending.peak_heap_bytes);
    Ok(BoundFigures {
        subject: Subject::new(reader.tables(), demand.time_ns()),
        options,
        events: demand.events(),
        blocks: demand.blocks(),
        max_live_bytes: demand.max_live_bytes(),
        lower_bound_bytes: lower,
        peak_event: demand.peak_event(),
        packings,
        recorded: RecordedManager {
            max_usable_bytes: demand.max_usable_bytes(),
            peak_heap_bytes,
            over_lower_bound: peak_heap_bytes.map(|peak| times(peak, lower)),
            over_best_packing: peak_heap_bytes.map(|peak| times(peak, best)),
        },
        after_peak: after_peak(&reader.tables().samples, &demand),
        curve: demand.curve(),
    })
}

/// The sample after the peak at which most was held and not live.
fn after_peak(samples: &[Sample], demand: &Demand) -> Option<AfterPeak> {
    let curve = demand.curve();
    let later = samples.iter().filter(|sample| sample.time_ns > demand.peak_ns() && sample.heap_kib > 0);
    let later = later.filter_map(|sample| {
        let at = curve.partition_point(|point| point.time_ns <= sample.time_ns).checked_sub(1)?;
        let held_kib = sample.heap_kib.min(sample.anon_kib);
        Some(AfterPeak {
            time_ns: sample.time_ns,
            held_bytes: held_kib.saturating_mul(1024),
            live_bytes: curve[at].live_bytes,
        })
    });
    later.max_by_key(|sample| sample.held_bytes.saturating_sub(sample.live_bytes))
}

/// Demand and lifetimes.
fn first_pass<R: Read>(
    mut reader: Reader<R>,
    options: Options,
) -> Result<(Demand, Lifetimes, Reader<R>), BoundError> {
    let mut demand = Demand::new(options);
    let mut lifetimes = Lifetimes::default();
    let mut batch = Batch::default();
    while reader.read(&mut batch)? {
        for event in &batch.events {
            let begins_block = demand.take(event, |number, lifetime| lifetimes.set(number, lifetime));
            if begins_block {
                let objects = lifetimes.count();
                lifetimes.add().map_err(|source| BoundError::Scratch { objects, source })?;
            }
        }
    }
    Ok((demand, lifetimes, reader))
}

/// All blocks of a short trace.
fn gather<R: Read>(
    mut reader: Reader<R>,
    lifetimes: &Lifetimes,
    options: Options,
) -> Result<Vec<Rectangle>, BoundError> {
    let mut rectangles = Vec::with_capacity(lifetimes.count());
    let mut batch = Batch::default();
    let mut events = 0;
    while reader.read(&mut batch)? {
        for event in &batch.events {
            if event.kind.allocates() || event.kind == EventKind::Realloc {
                if rectangles.len() == lifetimes.count() {
                    return Err(BoundError::Changed);
                }
                let (length, align) = rounded(event, options);
                let lifetime = lifetimes.get(rectangles.len());
                let death = if lifetime == FOR_EVER { u64::MAX } else { events + u64::from(lifetime) };
                rectangles.push(Rectangle { birth: events, death, length, align });
            }
            events += 1;
        }
    }
    Ok(rectangles)
}

/// Packs without knowledge of the future, then with it.
fn second_pass<R: Read>(
    open: &(impl Fn() -> Result<Reader<R>, TraceError> + Sync),
    demand: &Demand,
    lifetimes: &Lifetimes,
    options: Options,
) -> Result<Vec<(Rule, u64)>, BoundError> {
    let lower = demand.lower_bound_bytes();
    let mut found = try_rules(open, &[Rule::FirstFit, Rule::BestFit], lifetimes, options)?;
    let best = found.iter().map(|&(_, heap_bytes)| heap_bytes).min().unwrap_or(lower);
    if best > lower {
        // From the top of the smallest possible heap, and of one half way to the best so far.
        let limits = [lower, lower + (best - lower) / 2];
        let rules: Vec<Rule> = demand
            .thresholds()
            .into_iter()
            .flat_map(|threshold| limits.map(|limit| (threshold, limit)))
            .flat_map(|(threshold, limit)| {
                [false, true].map(|tight| Rule::TwoEnds { threshold, limit, tight })
            })
            .collect();
        found.extend(try_rules(open, &rules, lifetimes, options)?);
    }
    Ok(found)
}

/// Packs by several rules on several cores; the rules of a group share one reading.
fn try_rules<R: Read>(
    open: &(impl Fn() -> Result<Reader<R>, TraceError> + Sync),
    rules: &[Rule],
    lifetimes: &Lifetimes,
    options: Options,
) -> Result<Vec<(Rule, u64)>, BoundError> {
    let cores = std::thread::available_parallelism().map_or(1, |count| count.get());
    let groups = cores.min(rules.len()).min(READINGS);
    let results = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..groups)
            .map(|group| {
                let rules: Vec<Rule> = rules.iter().skip(group).step_by(groups).copied().collect();
                let pack = move || pack(open()?, &rules, lifetimes, options, |_, _, _, _| {});
                std::thread::Builder::new().spawn_scoped(scope, pack)
            })
            .collect::<io::Result<_>>()
            .map_err(TraceError::no_thread)?;
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect::<Result<Vec<_>, BoundError>>()
    })?;
    Ok(results.into_iter().flatten().filter_map(|(rule, bytes)| Some((rule, bytes?))).collect())
}

/// Packs by some rules. `placed` receives the rule's index, the block's number, its address and its length.
fn pack<R: Read>(
    mut reader: Reader<R>,
    rules: &[Rule],
    lifetimes: &Lifetimes,
    options: Options,
    mut placed: impl FnMut(usize, usize, u64, u64),
) -> Result<Vec<(Rule, Option<u64>)>, BoundError> {
    let mut packers: Vec<Packer> = rules.iter().map(|&rule| Packer::new(rule)).collect();
    let mut live = Live::default();
    let mut number = 0;
    let mut batch = Batch::default();
    while reader.read(&mut batch)? {
        for event in &batch.events {
            if event.kind.frees() {
                let old = live.end(event.slot);
                packers.iter_mut().for_each(|packer| packer.release(event.slot, old));
            } else if event.kind.allocates() || event.kind == EventKind::Realloc {
                if number == lifetimes.count() {
                    return Err(BoundError::Changed);
                }
                let (length, align) = rounded(event, options);
                let block = Block { length, align, lifetime: lifetimes.get(number) };
                let old = live.begin(event.slot, length);
                for (which, packer) in packers.iter_mut().enumerate() {
                    let start = if event.kind == EventKind::Realloc {
                        packer.resize(event.slot, old, &block)
                    } else {
                        packer.place(event.slot, &block)
                    };
                    placed(which, number, start, length);
                }
                number += 1;
            }
        }
    }
    Ok(packers.iter().map(|packer| (packer.rule(), packer.heap_bytes())).collect())
}

impl Rule {
    fn label(self) -> String {
        match self {
            Rule::FirstFit => "first fit".to_string(),
            Rule::BestFit => "best fit".to_string(),
            Rule::TwoEnds { threshold, limit, tight } => {
                let fit = if tight { "best" } else { "first" };
                format!(
                    "{fit} fit from the bottom, blocks that die within {threshold} events from {limit} down"
                )
            }
        }
    }
}

impl Order {
    fn label(self) -> String {
        match self {
            Order::Size => "largest blocks first",
            Order::Lifetime => "longest-lived blocks first",
            Order::Area => "largest product of size and lifetime first",
        }
        .to_string()
    }
}

#[cfg(test)]
mod tests;
