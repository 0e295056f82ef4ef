//! The stopped heap that a tracer reads: all locks held, everything swept, the world stopped; and memory for the
//! tracer.

use core::ops::Range;
use core::slice;

use heaptoll_assertions::{assert_expensive, assert_internal};
use heaptoll_roots::{Origin, Root, RootKinds, StoppedWorld, World};
use heaptoll_runtime::{PAGE, Region, SignalMaskGuard};

use super::mappings::{self, Mapping};
use super::tracer::{Block, Entry, Source, Tracer, block_at};
use crate::added::AddedRoots;
use crate::ages::words_of;
use crate::collector::Collector;
use crate::heap::{Heap, HeapGuards};
use crate::readable::readable;
use crate::signal::unblocked;
use crate::stopped::OWN_RANGES;

/// Calls that have returned, of this module and of the dynamic linker that found it, reach at most this far below where
/// the stack was left, bytes.
const RETURNED: usize = 8 << 10;
/// The ranges of a query, which are excluded as the heap's own are.
const QUERY_RANGES: usize = 2;

/// The address from which on the calling thread's stack is read: that of the caller's frame, with the registers that calls
/// preserve. 0: no roots are needed.
pub type Frame = usize;

/// There is no answer: a thread did not stop, the mappings are not readable, or there is no memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unavailable;

/// The heap while the world is stopped.
pub struct StoppedHeap<'a> {
    heap: &'a Heap,
    guards: &'a HeapGuards<'a>,
    added: &'a AddedRoots,
    stopped: Option<&'a StoppedWorld<'static>>,
    /// Where the world keeps the registers of the calling thread as they are inside this module.
    world: Range<usize>,
    excluded_ranges: [Range<usize>; OWN_RANGES + QUERY_RANGES],
    /// The calling thread's stack, from the caller's frame on.
    own_stack: Range<usize>,
    /// [`mappings::SCRATCH_BYTES`] bytes, followed by the tracer's entries.
    memory: usize,
    capacity: usize,
}

/// What a query of the stopped heap needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Query {
    /// Only [`StoppedHeap::live`]: no memory.
    Blocks,
    /// Everything, with memory for a tracer.
    Chains,
}

/// How many blocks are allocated or in caches.
fn taken(heap: &Heap) -> usize {
    let mut taken = 0;
    heap.each_span(&mut |_, span| {
        let bits = &span.bits[..words_of(span.span_class)];
        taken += bits.iter().map(|bits| bits.taken.count_ones() as usize).sum::<usize>();
    });
    taken
}

/// Sweeps the heap, takes its locks, stops the world, runs `act`, and resumes the world. The caller holds the
/// collector's lock.
///
/// # Errors
/// [`Unavailable`]: it cannot be stopped, or there is no memory.
pub fn with_stopped_heap<T>(
    heap: &Heap,
    collector: &mut Collector,
    query: Query,
    frame: Frame,
    act: impl FnOnce(&StoppedHeap<'_>) -> T,
) -> Result<T, Unavailable> {
    // SAFETY: errno's address is valid for the calling thread.
    let errno = unsafe { *libc::__errno_location() };
    let world = collector.world;
    let query = || stop_and_act(heap, collector, query, frame, act);
    let done = match world {
        None => query(),
        Some(world) => {
            let all = SignalMaskGuard::all_but(unblocked());
            world.on_own_stack(&all, query).unwrap_or(Err(Unavailable))
        }
    };
    // SAFETY: errno's address is valid for the calling thread.
    unsafe { *libc::__errno_location() = errno };
    done
}

fn stop_and_act<T>(
    heap: &Heap,
    collector: &mut Collector,
    query: Query,
    frame: Frame,
    act: impl FnOnce(&StoppedHeap<'_>) -> T,
) -> Result<T, Unavailable> {
    heap.sweep_all();
    let (guards, stopped) = heap.stop_world(collector.world).map_err(|_| Unavailable)?;
    let mut region = Region::new();
    let mut capacity = 0;
    if query == Query::Chains {
        capacity = taken(heap);
        let bytes = (mappings::SCRATCH_BYTES + capacity * size_of::<Entry>()).next_multiple_of(PAGE);
        region.grow(bytes).ok_or(Unavailable)?;
    }
    let world = collector.world.map_or(0..0, |world| {
        let start = core::ptr::from_ref(world) as usize;
        start..start + size_of::<World>()
    });
    assert_internal!(heap.is_all_swept(), "a heap whose blocks are queried is swept");
    heap.forget_increments(collector);
    heap.mark_cached(&guards, false);
    // The calls that lead to the collector's stack, and some that have returned, have the address of the query.
    let frames = collector.world.map_or(0, World::program_stack).saturating_sub(RETURNED)..frame;
    let query_ranges: [_; QUERY_RANGES] = [region.mapped(), frames];
    let mut ranges = heap.excluded_ranges(collector, &guards).into_iter().chain(query_ranges);
    let excluded_ranges = core::array::from_fn(|_| ranges.next().unwrap_or_default());
    let mut stopped_heap = StoppedHeap {
        heap,
        guards: &guards,
        added: &collector.added,
        stopped: stopped.as_ref(),
        world,
        excluded_ranges,
        own_stack: 0..0,
        memory: region.start(),
        capacity,
    };
    if frame != 0 {
        let end = stopped_heap.mapping(frame).map_or(frame, |mapping| mapping.range.end);
        stopped_heap.own_stack = frame..end;
    }
    let done = act(&stopped_heap);
    heap.clear_marks();
    assert_expensive!(heap.is_unmarked(), "a query leaves no mark");
    drop(stopped);
    drop(guards);
    Ok(done)
}

impl<'a> StoppedHeap<'a> {
    /// The allocated block at an address. Valid only before anything is traced, since it reads the marks of blocks in
    /// caches.
    pub fn live(&self, address: usize) -> Option<Block> {
        block_at(self.heap, address).filter(|block| !block.is_marked(self.heap))
    }

    /// Bytes of the block at an address.
    pub fn size(&self, address: usize) -> usize {
        block_at(self.heap, address).map_or(0, |block| block.bytes)
    }

    /// A tracer that has reached nothing yet. There must be one at a time.
    pub fn tracer(&self, target: usize) -> Tracer<'a> {
        self.heap.clear_marks();
        self.heap.mark_cached(self.guards, false);
        let entries = (self.memory + mappings::SCRATCH_BYTES) as *mut Entry;
        // SAFETY: the memory was mapped for `capacity` entries; only blocks in caches are marked, by the two calls
        // above.
        unsafe { Tracer::new(self.heap, entries, self.capacity, target) }
    }

    /// Visits all roots, each with whether it is the calling thread's own.
    ///
    /// # Errors
    /// [`Unavailable`]: some of them cannot be read.
    pub fn roots(&self, visit: &mut dyn FnMut(Range<usize>, Source, bool)) -> Result<(), Unavailable> {
        for range in self.added.ranges() {
            readable(range, &mut |range| visit(range, Source::Added, false));
        }
        if let Some(block) = block_at(self.heap, self.own_stack.start) {
            // The program runs on a stack in a block, which the collector reads as a part of the heap.
            visit(self.own_stack.start..block.start + block.bytes, Source::Stack, true);
        }
        let Some(stopped) = self.stopped else { return Ok(()) };
        let each = &mut |Root { range, origin }: Root| {
            let is_own = self.own_stack.contains(&range.start);
            match origin {
                // The caller's frame holds them as they were at the call.
                Origin::Registers if self.world.contains(&range.start) => {}
                Origin::Registers => visit(range, Source::Registers, false),
                Origin::Stack => visit(range, Source::Stack, is_own),
                Origin::Statics => visit(range, Source::Statics, is_own),
                Origin::Mapping => visit(range, Source::Mapping, is_own),
                Origin::Code => visit(range, Source::Code, is_own),
                Origin::Kernel => visit(range, Source::Kernel, false),
            }
        };
        stopped.roots(RootKinds::ALL, &self.excluded_ranges, each).map_err(|_| Unavailable)
    }

    /// The thread in whose registers or on whose stack a word lies.
    pub fn thread_of(&self, word: usize) -> Option<i32> {
        self.stopped.and_then(|stopped| stopped.thread_of(word))
    }

    /// The mapping that an address lies in.
    pub fn mapping(&self, address: usize) -> Option<Mapping<'_>> {
        // SAFETY: `memory` begins with these bytes, mapped for this; `Mapping` borrows `self`, and callers drop one
        // before they find the next.
        let scratch = unsafe { slice::from_raw_parts_mut(self.memory as *mut u8, mappings::SCRATCH_BYTES) };
        mappings::find(address, scratch)
    }
}

const _: () = assert!(mappings::SCRATCH_BYTES.is_multiple_of(align_of::<Entry>()));
