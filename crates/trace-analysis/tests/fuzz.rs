//! Damaged traces, mostly under right checksums, through everything that reads one: no panic, no memory beyond a bound,
//! and an error that has a type. A failure names the seed.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use heaptoll_testing::damage::Dice;
use heaptoll_trace::{Batch, Memory, Reader, TraceError};
use heaptoll_trace_analysis::bound::{self, Options};
use heaptoll_trace_analysis::lifetimes::{By, Lifetimes};
use heaptoll_trace_analysis::stacks::CallSites;
use heaptoll_trace_analysis::stat::Stat;
use heaptoll_trace_analysis::subject::Subject;

/// Bytes that a trace of a few kilobytes may cost: its tables are at most 256 MiB, objects what is allowed below, and
/// tables by thread and site some tens.
const MEMORY_MAX: usize = 512 << 20;
const MEMORY: Memory = Memory { limit_bytes: 16 << 20, each_object_bytes: 512 };

/// Counts what is allocated.
struct Counted;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(now, Ordering::Relaxed);
        // SAFETY: the caller of `alloc` keeps the contract of `GlobalAlloc`, and `System.alloc` has the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: `block` was allocated by `alloc` above with this layout, so by `System`.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counted = Counted;

fn reader(bytes: &[u8]) -> Result<Reader<&[u8]>, TraceError> {
    let mut reader = Reader::new(bytes)?;
    reader.limit(MEMORY);
    Ok(reader)
}

/// Everything that reads a trace.
fn analyse_all(bytes: &[u8]) -> Result<u64, TraceError> {
    let mut reader_of_all = reader(bytes)?;
    let mut stat = Stat::new(true, true);
    let mut lifetimes = Lifetimes::new(By::Site);
    let mut batch = Batch::default();
    while reader_of_all.read(&mut batch)? {
        stat.events(&batch.events);
        lifetimes.batch(&batch);
    }
    let tables = reader_of_all.tables();
    let sites = tables.sites.clone().unwrap_or_default();
    let (first, last) = (Subject::new(tables, stat.time_ns()), Subject::new(tables, lifetimes.time_ns()));
    let events = stat.figures(first, &tables.samples, &mut CallSites::new(&sites, 3)).events;
    lifetimes.figures(last, Some(&mut CallSites::new(&sites, 3)));
    match bound::bound(&|| reader(bytes), Options { small_blocks_of_8: false }) {
        Err(bound::BoundError::Trace(error)) => return Err(error),
        Err(error) => panic!("neither the disk is full nor does the trace change: {error}"),
        Ok(_) => {}
    }
    Ok(events)
}

fn fuzz(seeds: std::ops::Range<u64>) {
    let whole: Vec<Vec<u8>> = [(1, 300, 64, true), (2, 200, 32, false), (3, 60, 16, true)]
        .map(|(seed, events, chunk, full)| crate::common::trace(seed, events, chunk, full))
        .into();
    let (mut read, mut refused) = (0, 0);
    for seed in seeds {
        let mut dice = Dice::new(seed);
        let which = dice.below(whole.len());
        let bytes = heaptoll_testing::damage::trace(&mut dice, &whole[which]);
        let before = NOW.load(Ordering::Relaxed);
        MOST.store(before, Ordering::Relaxed);
        let result = std::panic::catch_unwind(|| analyse_all(&bytes));
        let Ok(result) = result else { panic!("seed {seed}: panicked, see above") };
        match result {
            Ok(events) => read += u64::from(events > 0),
            Err(_) => refused += 1,
        }
        let took = MOST.load(Ordering::Relaxed) - before;
        assert!(took < MEMORY_MAX, "seed {seed}: {took} bytes");
    }
    assert!(read > refused, "most damage leaves something to read: {read} of {}", read + refused);
}

#[test]
fn damaged_traces_are_read_or_refused() {
    fuzz(0..40);
}

#[test]
#[ignore = "slow: twenty thousand damaged traces"]
fn many_damaged_traces_are_read_or_refused() {
    fuzz(1_000..21_000);
}
