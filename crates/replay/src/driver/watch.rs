//! What is measured while calls are made: nothing, the time of each, or memory.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use hdrhistogram::Histogram;
use heaptoll_replay::job::{Checkpoint, Job, Latencies, Percentiles, Repetition};

use super::area;
use super::clock::{self, Clocks};
use super::process::{self, Pages};

/// Kinds of call whose latencies are kept separately.
#[derive(Debug, Clone, Copy)]
pub enum Call {
    Allocate,
    Resize,
    Free,
}

/// The driver's table of live blocks.
pub trait LiveTable {
    /// Visits each by slot, with its address and requested size.
    ///
    /// # Safety
    /// No other thread makes a call now, as in exact order.
    unsafe fn each(&self, visit: &mut dyn FnMut(u32, *mut u8, u64));
}

/// What measures one thread's calls.
pub trait Watch: Sized {
    /// What the threads share.
    type Common: Sync;
    /// Whether the sizes of blocks must be known.
    const SIZES: bool;

    /// Before the baseline.
    fn common(job: &Job, clocks: Clocks) -> Result<Self::Common, String>;

    /// A thread begins.
    fn begin(common: &Self::Common) -> Result<Self, String>;

    /// Makes a call of the manager.
    #[inline(always)]
    fn call<R>(&mut self, _kind: Call, call: impl FnOnce() -> R) -> R {
        call()
    }

    /// A block was made.
    #[inline(always)]
    fn made(&mut self, _common: &Self::Common, _block: *mut u8, _size: u64) {}

    /// A block was resized.
    #[inline(always)]
    fn resized(&mut self, _common: &Self::Common, _old: (*mut u8, u64), _new: (*mut u8, u64)) {}

    /// A block was freed.
    #[inline(always)]
    fn ended(&mut self, _common: &Self::Common, _block: *mut u8, _size: u64) {}

    /// A mark of the program was reached.
    #[inline(always)]
    fn mark(&mut self, _common: &Self::Common, _live: &dyn LiveTable) {}

    /// A thread ends.
    fn end(self, _common: &Self::Common) {}

    /// The tables are in place; the first call comes next.
    fn baseline(_common: &Self::Common) {}

    /// The trace has been replayed once; `freed`: and what it left was freed.
    fn repetition(_common: &Self::Common, _freed: bool) {}

    /// The measurements, at the end.
    fn measured(common: Self::Common) -> Measured;
}

/// What was measured.
#[derive(Default)]
pub struct Measured {
    pub latency: Option<Latencies>,
    pub checkpoints: Vec<Checkpoint>,
    pub repetitions: Vec<Repetition>,
    pub max_live_bytes: u64,
    pub peak_rss_bytes: u64,
    pub peak_heap_bytes: u64,
    pub start_bytes: u64,
}

/// Measures nothing.
pub struct Unwatched;

impl Watch for Unwatched {
    type Common = ();
    const SIZES: bool = false;

    fn common(_: &Job, _: Clocks) -> Result<(), String> {
        Ok(())
    }

    fn begin((): &()) -> Result<Unwatched, String> {
        Ok(Unwatched)
    }

    fn measured((): ()) -> Measured {
        Measured::default()
    }
}

/// Stamps each call.
pub struct Stopwatch {
    histograms: [Histogram<u64>; 3],
    clock: u64,
}

/// What stopwatches share.
pub struct Times {
    clocks: Clocks,
    all: Mutex<Option<[Histogram<u64>; 3]>>,
}

/// Longest call that is distinguished from longer ones, ticks: some minutes.
const LONGEST: u64 = 1 << 40;
/// Digits to which a latency is kept.
const DIGITS: u8 = 2;

fn histograms() -> Result<[Histogram<u64>; 3], String> {
    let one = || {
        Histogram::new_with_bounds(1, LONGEST, DIGITS)
            .map_err(|error| format!("cannot count latencies: {error}"))
    };
    Ok([one()?, one()?, one()?])
}

impl Watch for Stopwatch {
    type Common = Times;
    const SIZES: bool = false;

    fn common(_: &Job, clocks: Clocks) -> Result<Times, String> {
        Ok(Times { clocks, all: Mutex::new(Some(histograms()?)) })
    }

    fn begin(common: &Times) -> Result<Stopwatch, String> {
        Ok(Stopwatch { histograms: histograms()?, clock: common.clocks.tick_cost })
    }

    #[inline(always)]
    fn call<R>(&mut self, kind: Call, call: impl FnOnce() -> R) -> R {
        let begun = clock::before();
        let result = call();
        let ticks = clock::after().wrapping_sub(begun).saturating_sub(self.clock);
        self.histograms[kind as usize].saturating_record(ticks);
        result
    }

    fn end(self, common: &Times) {
        let mut all = common.all.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(all) = all.as_mut() {
            for (sum, own) in all.iter_mut().zip(&self.histograms) {
                // The bounds are the same, so that nothing is outside.
                let _ = sum.add(own);
            }
        }
    }

    fn measured(common: Times) -> Measured {
        let ns = common.clocks.ticks_per_ns;
        let of = |histogram: &Histogram<u64>| {
            let at = |quantile| histogram.value_at_quantile(quantile) as f64 / ns;
            Percentiles {
                calls: histogram.len(),
                mean: if histogram.is_empty() { 0.0 } else { histogram.mean() / ns },
                p50: at(0.5),
                p90: at(0.9),
                p99: at(0.99),
                p99_9: at(0.999),
                p99_99: at(0.9999),
                max: histogram.max() as f64 / ns,
            }
        };
        let all = common.all.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        let latency = all.map(|[allocate, resize, free]| Latencies {
            allocate: of(&allocate),
            resize: of(&resize),
            free: of(&free),
            clock_ns: common.clocks.tick_cost as f64 / ns,
        });
        Measured { latency, ..Measured::default() }
    }
}

/// Accounts for memory: live bytes, and what the process takes for them.
pub struct MemoryWatch;

/// What the threads share to account for memory.
pub struct MemoryAccounts {
    live_bytes: AtomicU64,
    live_objects: AtomicU64,
    max_live_bytes: AtomicU64,
    clock_bytes: AtomicU64,
    /// Live bytes at which a checkpoint is made between marks.
    next_sample_at: AtomicU64,
    marks: AtomicU64,
    /// Marks between checkpoints.
    stride: u64,
    last_repetition: u32,
    pages: Option<Pages>,
    samples: Mutex<Samples>,
}

struct Samples {
    start: u64,
    base_rss: u64,
    base_high_water: u64,
    marks_high_water: bool,
    lag: u64,
    repetition: u32,
    peak_in_repetition: u64,
    peak_rss: u64,
    peak_heap: u64,
    checkpoints: Vec<Checkpoint>,
    repetitions: Vec<Repetition>,
}

/// A new maximum of live bytes is sampled when it exceeds the last by this share, and by as many bytes.
const GROWTH: u64 = 100;
/// See [`GROWTH`].
const LEAST_GROWTH: u64 = 64 << 10;
/// Most checkpoints that are kept.
const KEPT: usize = 8192;

impl MemoryAccounts {
    fn samples(&self) -> std::sync::MutexGuard<'_, Samples> {
        self.samples.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Whether checkpoints are made in this repetition.
    fn is_sampled(&self, repetition: u32) -> bool {
        repetition == 0 || repetition == self.last_repetition
    }

    #[inline(always)]
    fn grown(&self, block: *mut u8, bytes: u64) {
        self.clock_bytes.fetch_add(bytes, Relaxed);
        let live = self.live_bytes.fetch_add(bytes, Relaxed).wrapping_add(bytes);
        self.max_live_bytes.fetch_max(live, Relaxed);
        if let Some(pages) = &self.pages {
            pages.note(block);
        }
        if live >= self.next_sample_at.load(Relaxed) {
            self.next_sample_at.store(live.saturating_add((live / GROWTH).max(LEAST_GROWTH)), Relaxed);
            self.sample();
        }
    }

    #[cold]
    fn sample(&self) {
        let mut samples = self.samples();
        if !self.is_sampled(samples.repetition) {
            return;
        }
        let checkpoint = Checkpoint {
            repetition: samples.repetition,
            clock_bytes: self.clock_bytes.load(Relaxed),
            live_bytes: self.live_bytes.load(Relaxed),
            live_objects: self.live_objects.load(Relaxed),
            rss_bytes: samples.rss(),
            heap_bytes: self.pages.as_ref().map_or(0, Pages::heap),
        };
        samples.peak_in_repetition = samples.peak_in_repetition.max(checkpoint.rss_bytes);
        samples.peak_heap = samples.peak_heap.max(checkpoint.heap_bytes);
        if samples.checkpoints.len() < samples.checkpoints.capacity() {
            samples.checkpoints.push(checkpoint);
        }
    }
}

impl Samples {
    /// The resident set less the driver's own.
    fn rss(&self) -> u64 {
        process::rss().saturating_sub(self.base_rss + area::since_baseline())
    }

    /// The high-water mark less the driver's own; 0 where there is none.
    fn high_water(&self) -> u64 {
        if !self.marks_high_water {
            return 0;
        }
        process::high_water().saturating_sub(self.base_high_water + area::since_baseline())
    }
}

impl Watch for MemoryWatch {
    type Common = MemoryAccounts;
    const SIZES: bool = true;

    fn common(job: &Job, _: Clocks) -> Result<MemoryAccounts, String> {
        Ok(MemoryAccounts {
            live_bytes: AtomicU64::new(0),
            live_objects: AtomicU64::new(0),
            max_live_bytes: AtomicU64::new(0),
            clock_bytes: AtomicU64::new(0),
            next_sample_at: AtomicU64::new(LEAST_GROWTH),
            marks: AtomicU64::new(0),
            stride: job.index.marks.div_ceil(u64::from(job.checkpoints.max(1))).max(1),
            last_repetition: job.repetitions.saturating_sub(1),
            pages: Pages::new(),
            samples: Mutex::new(Samples {
                start: 0,
                base_rss: 0,
                base_high_water: 0,
                marks_high_water: false,
                lag: process::lag(),
                repetition: 0,
                peak_in_repetition: 0,
                peak_rss: 0,
                peak_heap: 0,
                checkpoints: Vec::with_capacity(KEPT),
                repetitions: Vec::with_capacity(job.repetitions as usize),
            }),
        })
    }

    fn begin(_: &MemoryAccounts) -> Result<MemoryWatch, String> {
        Ok(MemoryWatch)
    }

    #[inline(always)]
    fn made(&mut self, accounts: &MemoryAccounts, block: *mut u8, size: u64) {
        accounts.live_objects.fetch_add(1, Relaxed);
        accounts.grown(block, size);
    }

    #[inline(always)]
    fn resized(
        &mut self,
        accounts: &MemoryAccounts,
        (old_block, old): (*mut u8, u64),
        (block, new): (*mut u8, u64),
    ) {
        if let Some(pages) = &accounts.pages {
            pages.forget(old_block);
        }
        accounts.live_bytes.fetch_sub(old.saturating_sub(new), Relaxed);
        accounts.grown(block, new.saturating_sub(old));
    }

    #[inline(always)]
    fn ended(&mut self, accounts: &MemoryAccounts, block: *mut u8, size: u64) {
        accounts.live_objects.fetch_sub(1, Relaxed);
        accounts.live_bytes.fetch_sub(size, Relaxed);
        if let Some(pages) = &accounts.pages {
            pages.forget(block);
        }
    }

    fn mark(&mut self, accounts: &MemoryAccounts, _: &dyn LiveTable) {
        if (accounts.marks.fetch_add(1, Relaxed) + 1).is_multiple_of(accounts.stride) {
            accounts.sample();
        }
    }

    fn baseline(accounts: &MemoryAccounts) {
        let mut samples = accounts.samples();
        // Read once before, so that what reading takes is in.
        process::rss();
        if let Some(pages) = &accounts.pages {
            pages.heap();
        }
        area::begin_baseline();
        samples.marks_high_water = process::forget_high_water();
        samples.base_high_water = process::high_water();
        samples.start = process::anonymous();
        samples.base_rss = process::rss();
    }

    fn repetition(accounts: &MemoryAccounts, freed: bool) {
        if !freed {
            accounts.sample();
        }
        let mut samples = accounts.samples();
        let rss = samples.rss();
        if freed {
            if let Some(last) = samples.repetitions.last_mut() {
                last.freed_rss_bytes = rss;
            }
            samples.repetition += 1;
            samples.peak_in_repetition = 0;
            accounts.clock_bytes.store(0, Relaxed);
            accounts.next_sample_at.store(LEAST_GROWTH, Relaxed);
            process::forget_high_water();
            return;
        }
        let mark = samples.high_water();
        // What the mark may be off by is no peak.
        let peak = samples.peak_in_repetition.max(rss).max(mark.saturating_sub(samples.lag));
        samples.peak_rss = samples.peak_rss.max(peak);
        let high_water_bytes = if samples.marks_high_water { mark } else { peak };
        samples.repetitions.push(Repetition { high_water_bytes, end_rss_bytes: rss, freed_rss_bytes: rss });
    }

    fn measured(accounts: MemoryAccounts) -> Measured {
        let samples = accounts.samples.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        Measured {
            latency: None,
            checkpoints: samples.checkpoints,
            repetitions: samples.repetitions,
            max_live_bytes: accounts.max_live_bytes.load(Relaxed),
            peak_rss_bytes: samples.peak_rss,
            peak_heap_bytes: samples.peak_heap,
            start_bytes: samples.start,
        }
    }
}
