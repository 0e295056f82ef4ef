//! What is looked at while calls are made: nothing, the time of each, or the books.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use hdrhistogram::Histogram;
use heaptoll_replay::job::{Checkpoint, Job, Latencies, Percentiles, Repetition};

use super::area;
use super::clock::{self, Clocks};
use super::process::{self, Pages};

/// Kinds of call whose latencies are kept apart.
#[derive(Debug, Clone, Copy)]
pub enum Call {
    Allocate,
    Resize,
    Free,
}

/// What one thread's calls are watched with.
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
    fn mark(&mut self, _common: &Self::Common) {}

    /// A thread ends.
    fn end(self, _common: &Self::Common) {}

    /// The tables are in place; the first call comes next.
    fn baseline(_common: &Self::Common) {}

    /// The trace has been replayed once; `freed`: and what it left was freed.
    fn repetition(_common: &Self::Common, _freed: bool) {}

    /// The end.
    fn found(common: Self::Common) -> Found;
}

/// What was seen.
#[derive(Default)]
pub struct Found {
    pub latency: Option<Latencies>,
    pub checkpoints: Vec<Checkpoint>,
    pub repetitions: Vec<Repetition>,
    pub max_live_bytes: u64,
    pub peak_rss_bytes: u64,
    pub peak_heap_bytes: u64,
    pub start_bytes: u64,
}

/// Looks at nothing.
pub struct Nothing;

impl Watch for Nothing {
    type Common = ();
    const SIZES: bool = false;

    fn common(_: &Job, _: Clocks) -> Result<(), String> {
        Ok(())
    }

    fn begin((): &()) -> Result<Nothing, String> {
        Ok(Nothing)
    }

    fn found((): ()) -> Found {
        Found::default()
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

/// Longest call that is told from longer ones, ticks: some minutes.
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

    fn found(common: Times) -> Found {
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
        Found { latency, ..Found::default() }
    }
}

/// Keeps the books: what is live, and what the process takes for it.
pub struct Bookkeeper;

/// The books.
pub struct Books {
    live_bytes: AtomicU64,
    live_objects: AtomicU64,
    max_live_bytes: AtomicU64,
    clock_bytes: AtomicU64,
    /// Live bytes at which a checkpoint is made between marks.
    look_at: AtomicU64,
    marks: AtomicU64,
    /// Marks between checkpoints.
    stride: u64,
    last_repetition: u32,
    pages: Option<Pages>,
    seen: Mutex<Seen>,
}

struct Seen {
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

/// A new maximum of live bytes is looked at when it is by this share above the last, and by as many bytes.
const GROWTH: u64 = 100;
/// See [`GROWTH`].
const LEAST_GROWTH: u64 = 64 << 10;
/// Most checkpoints that are kept.
const KEPT: usize = 8192;

impl Books {
    fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Whether checkpoints are made in this repetition.
    fn is_looked_at(&self, repetition: u32) -> bool {
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
        if live >= self.look_at.load(Relaxed) {
            self.look_at.store(live.saturating_add((live / GROWTH).max(LEAST_GROWTH)), Relaxed);
            self.look();
        }
    }

    #[cold]
    fn look(&self) {
        let mut seen = self.seen();
        if !self.is_looked_at(seen.repetition) {
            return;
        }
        let checkpoint = Checkpoint {
            repetition: seen.repetition,
            clock_bytes: self.clock_bytes.load(Relaxed),
            live_bytes: self.live_bytes.load(Relaxed),
            live_objects: self.live_objects.load(Relaxed),
            rss_bytes: seen.rss(),
            heap_bytes: self.pages.as_ref().map_or(0, Pages::heap),
        };
        seen.peak_in_repetition = seen.peak_in_repetition.max(checkpoint.rss_bytes);
        seen.peak_heap = seen.peak_heap.max(checkpoint.heap_bytes);
        if seen.checkpoints.len() < seen.checkpoints.capacity() {
            seen.checkpoints.push(checkpoint);
        }
    }
}

impl Seen {
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

impl Watch for Bookkeeper {
    type Common = Books;
    const SIZES: bool = true;

    fn common(job: &Job, _: Clocks) -> Result<Books, String> {
        Ok(Books {
            live_bytes: AtomicU64::new(0),
            live_objects: AtomicU64::new(0),
            max_live_bytes: AtomicU64::new(0),
            clock_bytes: AtomicU64::new(0),
            look_at: AtomicU64::new(LEAST_GROWTH),
            marks: AtomicU64::new(0),
            stride: job.index.marks.div_ceil(u64::from(job.checkpoints.max(1))).max(1),
            last_repetition: job.repetitions.saturating_sub(1),
            pages: Pages::new(),
            seen: Mutex::new(Seen {
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

    fn begin(_: &Books) -> Result<Bookkeeper, String> {
        Ok(Bookkeeper)
    }

    #[inline(always)]
    fn made(&mut self, books: &Books, block: *mut u8, size: u64) {
        books.live_objects.fetch_add(1, Relaxed);
        books.grown(block, size);
    }

    #[inline(always)]
    fn resized(&mut self, books: &Books, (old_block, old): (*mut u8, u64), (block, new): (*mut u8, u64)) {
        if let Some(pages) = &books.pages {
            pages.forget(old_block);
        }
        books.live_bytes.fetch_sub(old.saturating_sub(new), Relaxed);
        books.grown(block, new.saturating_sub(old));
    }

    #[inline(always)]
    fn ended(&mut self, books: &Books, block: *mut u8, size: u64) {
        books.live_objects.fetch_sub(1, Relaxed);
        books.live_bytes.fetch_sub(size, Relaxed);
        if let Some(pages) = &books.pages {
            pages.forget(block);
        }
    }

    fn mark(&mut self, books: &Books) {
        if (books.marks.fetch_add(1, Relaxed) + 1).is_multiple_of(books.stride) {
            books.look();
        }
    }

    fn baseline(books: &Books) {
        let mut seen = books.seen();
        // Read once before, so that what reading takes is in.
        process::rss();
        if let Some(pages) = &books.pages {
            pages.heap();
        }
        area::begin_baseline();
        seen.marks_high_water = process::forget_high_water();
        seen.base_high_water = process::high_water();
        seen.start = process::anonymous();
        seen.base_rss = process::rss();
    }

    fn repetition(books: &Books, freed: bool) {
        if !freed {
            books.look();
        }
        let mut seen = books.seen();
        let rss = seen.rss();
        if freed {
            if let Some(last) = seen.repetitions.last_mut() {
                last.freed_rss_bytes = rss;
            }
            seen.repetition += 1;
            seen.peak_in_repetition = 0;
            books.clock_bytes.store(0, Relaxed);
            books.look_at.store(LEAST_GROWTH, Relaxed);
            process::forget_high_water();
            return;
        }
        let mark = seen.high_water();
        // What the mark may be off by is no peak.
        let peak = seen.peak_in_repetition.max(rss).max(mark.saturating_sub(seen.lag));
        seen.peak_rss = seen.peak_rss.max(peak);
        let high_water_bytes = if seen.marks_high_water { mark } else { peak };
        seen.repetitions.push(Repetition { high_water_bytes, end_rss_bytes: rss, freed_rss_bytes: rss });
    }

    fn found(books: Books) -> Found {
        let seen = books.seen.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        Found {
            latency: None,
            checkpoints: seen.checkpoints,
            repetitions: seen.repetitions,
            max_live_bytes: books.max_live_bytes.load(Relaxed),
            peak_rss_bytes: seen.peak_rss,
            peak_heap_bytes: seen.peak_heap,
            start_bytes: seen.start,
        }
    }
}
