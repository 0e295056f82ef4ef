//! The heap against models of its contents, addresses, alignments and counts. The parts have files of their own and
//! share this fixture.

extern crate std;

mod accounting;
mod blocks;
mod collecting;
mod generations;
mod graphs;
mod guard;
mod increments;
mod limits;
mod memory;
mod misuse;
mod mutator;
mod periods;
mod reserved;
mod sweeping;
mod threads;

use core::ptr::{self, NonNull};
use std::boxed::Box;
use std::sync::{Mutex, MutexGuard};
use std::vec::Vec;

use heaptoll_runtime::{LARGEST, Misuse, PAGE, RawCensus};

use super::*;
use crate::cache::Cache;
use crate::class::{CLASS, CLASSES, FREE, LARGE, SMALL_MAX, SpanClass, UNIT, class_of, is_small};
use crate::log::Reason;
use crate::settings::Settings;
use crate::spans::POISON;

/// Limits the number of heaps at once: a process has address space for some tens of regions.
static HEAP_PERMITS: [Mutex<()>; 4] = [const { Mutex::new(()) }; 4];

/// The largest request that a size class serves in every mode: collecting ones add the byte after the end.
const LAST: usize = SMALL_MAX - 1;

/// A heap with some caches.
struct HeapFixture {
    heap: Box<Heap>,
    caches: Vec<*mut Cache>,
    eager: bool,
    _permit: MutexGuard<'static, ()>,
}

impl HeapFixture {
    /// A heap that collects only when a test calls for it.
    fn new(mode: Mode, caches: usize) -> HeapFixture {
        HeapFixture::with(&Settings { mode, min_headroom: 1 << 40, poison: true, ..Settings::new() }, caches)
    }

    fn with(settings: &Settings, caches: usize) -> HeapFixture {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let permit = &HEAP_PERMITS[NEXT.fetch_add(1, Ordering::Relaxed) % HEAP_PERMITS.len()];
        let permit = permit.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let heap = Box::new(Heap::new());
        heap.configure(settings, None);
        let caches = (0..caches).map(|at| heap.open_cache(at as i32 + 1).expect("a cache")).collect();
        HeapFixture { heap, caches, eager: settings.eager, _permit: permit }
    }

    /// An open cache.
    #[allow(clippy::mut_from_ref)]
    fn cache(&self, at: usize) -> &mut Cache {
        let cache = self.caches[at % self.caches.len()];
        // SAFETY: `open_cache` returned it, and caches are never unmapped; tests use one reference at a time.
        unsafe { &mut *cache }
    }

    fn allocate(&self, bytes: usize) -> usize {
        let block = self.heap.allocate(self.cache(0), bytes, false);
        assert!(!block.is_null(), "there is memory for {bytes} bytes");
        block as usize
    }

    /// As [`HeapFixture::allocate`], every byte of it zero.
    fn allocate_clear(&self, bytes: usize, atomic: bool) -> usize {
        let block = self.heap.allocate(self.cache(0), bytes, atomic);
        assert!(!block.is_null(), "there is memory for {bytes} bytes");
        // SAFETY: the block was just allocated with this many bytes.
        unsafe { block.write_bytes(0, self.heap.usable(block)) };
        block as usize
    }

    fn free(&self, address: usize) -> Result<(), Misuse> {
        // SAFETY: tests do not use a block after its free; wrong addresses are rejected, which is tested.
        unsafe { self.heap.free(self.cache(0), address as *mut u8) }
    }

    fn usable(&self, address: usize) -> usize {
        self.heap.usable(address as *const u8)
    }

    /// Adds words as roots.
    fn add_roots(&self, words: &[usize]) {
        let range = words.as_ptr_range();
        let mut collector = self.heap.collector.lock();
        collector.added.add(range.start as usize, range.end as usize, 0).expect("memory for a range");
    }

    fn collect(&self) {
        assert_eq!(self.heap.collect(Reason::Called), Ok(()));
    }

    /// A collection after which everything waits to be swept.
    fn collect_lazily(&self) {
        assert_eq!(self.heap.collect(Reason::Memory), Ok(()));
        let eager = self.heap.swept.load(Ordering::Relaxed);
        assert_eq!(eager, self.eager);
    }

    /// The span class of a block.
    fn span_class(&self, address: usize) -> SpanClass {
        self.heap
            .reservation
            .span_class(self.heap.reservation.unit_of(address).expect("an address in the heap"))
    }

    /// Whether a reclaimed block holds poison, or zeros where its units were released.
    fn is_spoilt(&self, address: usize, bytes: usize) -> bool {
        let bytes = bytes_at(address, bytes);
        bytes.iter().all(|&byte| byte == POISON)
            || self.span_class(address) == FREE && bytes.iter().all(|&byte| byte == 0)
    }

    /// Closes the caches: their blocks return to the spans.
    fn close(&mut self) {
        for cache in self.caches.drain(..) {
            // SAFETY: a cache of this heap, removed from `caches` and not used again.
            unsafe { self.heap.close_cache(cache) };
        }
    }

    fn check(&self) {
        assert_eq!(self.heap.check(), Ok(()));
    }

    /// Whether an address is that of a block that is allocated or in a cache.
    fn is_taken(&self, address: usize) -> bool {
        self.heap.sweep_all();
        let Some(unit) = self.heap.reservation.unit_of(address) else { return false };
        let span_class = self.heap.reservation.span_class(unit);
        if span_class == FREE {
            return false;
        }
        let first = self.heap.reservation.first(unit);
        let offset = address - self.heap.reservation.address(first);
        // SAFETY: the first unit of a span of the heap; the test is its only thread.
        let span = unsafe { &*self.heap.reservation.span(first) };
        if !is_small(span_class) {
            return offset == 0;
        }
        let class = &CLASS[span_class as usize];
        let block = class.index(offset);
        block * class.size as usize == offset && block < class.blocks.into() && span.is_taken(block)
    }

    fn census(&self) -> RawCensus {
        let mut census = RawCensus {
            size: size_of::<RawCensus>() as u32,
            class_capacity: 0,
            class_count: 0,
            exact: 0,
            mapped_bytes: 0,
            mapped_high_bytes: 0,
            live_bytes: 0,
            free_bytes: 0,
            metadata_bytes: 0,
            quarantined_bytes: 0,
            unused_bytes: 0,
            requested_bytes: 0,
            classes: ptr::null_mut(),
        };
        // SAFETY: `classes` is null.
        unsafe { self.heap.census(&mut census, true) };
        census
    }

    /// Bytes in caches, and those that they have counted ahead.
    fn cached_bytes(&self) -> usize {
        let mut bytes = 0;
        self.heap.caches.lock().each(|cache| {
            for (span_class, class) in CLASS.iter().enumerate().skip(1) {
                // SAFETY: caches are never unmapped; the test is the only thread.
                bytes += unsafe { (*cache).length(span_class) } as usize * class.size as usize;
            }
            // SAFETY: as above.
            bytes += unsafe { (*cache).counted };
        });
        bytes
    }

    /// Checks everything that must hold at any time.
    fn audit(&self) {
        self.check();
        let census = self.census();
        self.check();
        assert_eq!(
            census.live_bytes
                + census.quarantined_bytes
                + census.free_bytes
                + census.metadata_bytes
                + census.unused_bytes,
            census.mapped_bytes
        );
        let mapped = {
            let units = self.heap.units.lock();
            let caches = self.heap.caches.lock().mapped_bytes();
            units.memory.mapped_bytes() + caches + self.heap.collector.lock().mapped_bytes()
        };
        assert_eq!(census.mapped_bytes, mapped as u64, "the census accounts for all mapped bytes");
        assert_eq!(
            self.heap.live_bytes() as u64,
            census.live_bytes + census.quarantined_bytes + self.cached_bytes() as u64,
            "the running count agrees with the census"
        );
    }
}

/// Reads a word of a live block.
fn word(address: usize) -> usize {
    // SAFETY: tests pass addresses of words in live blocks.
    unsafe { (address as *const usize).read() }
}

/// Writes a word of a live block.
fn set_word(address: usize, value: usize) {
    // SAFETY: tests pass addresses of words in live blocks.
    unsafe { (address as *mut usize).write(value) };
}

fn bytes_at(address: usize, bytes: usize) -> &'static [u8] {
    // SAFETY: tests pass memory of a heap that they keep.
    unsafe { core::slice::from_raw_parts(address as *const u8, bytes) }
}
