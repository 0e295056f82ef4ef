//! The scene that a tracer works in: everything locked, swept and stopped, and memory to work with.

use core::ops::Range;
use core::slice;

use heaptoll_floor::{PAGE, Region};
use heaptoll_roots::{Origin, Root, StoppedWorld, World};

use super::mappings::{self, Mapping};
use super::tracer::{Block, Entry, Source, Tracer, block_at};
use super::{Frame, NotTold};
use crate::added::Added;
use crate::api::readable;
use crate::class::{CLASS, FREE};
use crate::collection::Collection;
use crate::heap::{Heap, Held};

/// Our own frames reach no further below the one that is asked in, bytes.
const FRAMES: usize = 8 << 10;
/// Ranges that are left out, at most.
const LEFT_OUT: usize = 16;

/// Everything stands still until the scene is over.
pub struct Scene<'a> {
    heap: &'a Heap,
    held: &'a Held<'a>,
    added: &'a Added,
    stopped: Option<&'a StoppedWorld<'static>>,
    /// Where the world keeps the registers of the asking thread as they are here.
    world: Range<usize>,
    left_out: [Range<usize>; LEFT_OUT],
    /// The asking thread's stack, from the frame that asked on.
    own_stack: Range<usize>,
    /// [`mappings::ROOM`] bytes, and entries.
    memory: usize,
    capacity: usize,
}

/// What is wished of a scene.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// Only [`Scene::live`]: nothing needs memory.
    Blocks,
    /// Everything.
    Chains,
}

/// How many blocks are handed out or in caches.
fn taken(heap: &Heap) -> usize {
    let room = &heap.room;
    let (mut unit, mut taken) = (0, 0);
    while unit < room.units() {
        let kind = room.kind(unit);
        if kind == FREE {
            unit += 1;
            continue;
        }
        // SAFETY: a span or a large block of the heap, whose locks are held.
        let span = unsafe { &*room.span(room.first(unit)) };
        let words = CLASS.get(kind as usize).map_or(1, |class| usize::from(class.blocks).div_ceil(64));
        taken += span.bits[..words].iter().map(|bits| bits.taken.count_ones() as usize).sum::<usize>();
        unit += span.units as usize;
    }
    taken
}

/// Sweeps, locks and stops everything, does `act`, and lets it run on. The collection's lock is the caller's.
///
/// # Errors
/// [`NotTold`]: it cannot be stopped, or there is no memory.
pub fn with_scene<T>(
    heap: &Heap,
    collection: &mut Collection,
    wish: Wish,
    frame: Frame,
    act: impl FnOnce(&Scene<'_>) -> T,
) -> Result<T, NotTold> {
    // SAFETY: errno's address is valid for the calling thread.
    let errno = unsafe { *libc::__errno_location() };
    let done = stop_and_act(heap, collection, wish, frame, act);
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
    done
}

fn stop_and_act<T>(
    heap: &Heap,
    collection: &mut Collection,
    wish: Wish,
    frame: Frame,
    act: impl FnOnce(&Scene<'_>) -> T,
) -> Result<T, NotTold> {
    heap.sweep_all();
    let (held, stopped) = heap.halt(collection.world).map_err(|_| NotTold)?;
    let mut region = Region::new();
    let mut capacity = 0;
    if wish == Wish::Chains {
        capacity = taken(heap);
        let bytes = (mappings::ROOM + capacity * size_of::<Entry>()).next_multiple_of(PAGE);
        region.grow(bytes).ok_or(NotTold)?;
    }
    let world = collection.world.map_or(0..0, |world| {
        let start = core::ptr::from_ref(world) as usize;
        start..start + size_of::<World>()
    });
    heap.reserve(&held);
    let mut left_out = [const { 0..0 }; LEFT_OUT];
    let marker = &raw const left_out as usize;
    let ours = heap.left_out(collection, &held);
    let frames = marker.saturating_sub(FRAMES)..frame;
    let mine = [region.start()..region.end(), if frame == 0 { 0..0 } else { frames }];
    for (place, range) in left_out.iter_mut().zip(ours.into_iter().chain(mine)) {
        *place = range;
    }
    let mut scene = Scene {
        heap,
        held: &held,
        added: &collection.added,
        stopped: stopped.as_ref(),
        world,
        left_out,
        own_stack: 0..0,
        memory: region.start(),
        capacity,
    };
    if frame != 0 {
        let end = scene.mapping(frame).map_or(frame, |mapping| mapping.range.end);
        scene.own_stack = frame..end;
    }
    let done = act(&scene);
    heap.forget_marks();
    drop(stopped);
    drop(held);
    Ok(done)
}

impl<'a> Scene<'a> {
    /// The block that is handed out at an address. To be asked before anything is traced.
    pub fn live(&self, address: usize) -> Option<Block> {
        block_at(self.heap, address).filter(|block| !block.is_marked(self.heap))
    }

    /// Bytes of the block at an address.
    pub fn size(&self, address: usize) -> usize {
        block_at(self.heap, address).map_or(0, |block| block.bytes)
    }

    /// A tracer that has reached nothing yet. There is one at a time.
    pub fn tracer(&self, target: usize) -> Tracer<'a> {
        self.heap.forget_marks();
        self.heap.reserve(self.held);
        let entries = (self.memory + mappings::ROOM) as *mut Entry;
        // SAFETY: the memory was mapped for that many; marks are as they should be.
        unsafe { Tracer::new(self.heap, entries, self.capacity, target) }
    }

    /// Shows the words of all roots; whether they are the asking thread's own comes with them.
    ///
    /// # Errors
    /// [`NotTold`]: not all of them can be read.
    pub fn roots(&self, visit: &mut dyn FnMut(Range<usize>, Source, bool)) -> Result<(), NotTold> {
        for range in self.added.ranges() {
            readable(range, &mut |range| visit(range, Source::Added, false));
        }
        if let Some(block) = block_at(self.heap, self.own_stack.start) {
            // The program has put a stack into a block, which the collector reads as a part of the heap.
            visit(self.own_stack.start..block.start + block.bytes, Source::Stack, true);
        }
        let Some(stopped) = self.stopped else { return Ok(()) };
        let each = &mut |Root { range, origin }: Root| {
            let is_own = self.own_stack.contains(&range.start);
            match origin {
                // The frame has them as they were when it was asked.
                Origin::Registers if self.world.contains(&range.start) => {}
                Origin::Registers => visit(range, Source::Registers, false),
                Origin::Stack => visit(range, Source::Stack, is_own),
                Origin::Statics => visit(range, Source::Statics, is_own),
                Origin::Mapping => visit(range, Source::Mapping, is_own),
                Origin::Code => visit(range, Source::Code, is_own),
            }
        };
        stopped.roots(&self.left_out, each).map_err(|_| NotTold)
    }

    /// The thread in whose registers or on whose stack a word lies.
    pub fn thread_of(&self, word: usize) -> Option<i32> {
        self.stopped.and_then(|stopped| stopped.thread_of(word))
    }

    /// The mapping that an address lies in.
    pub fn mapping(&self, address: usize) -> Option<Mapping<'_>> {
        // SAFETY: the memory was mapped for this; a mapping found before is not used any more.
        let room = unsafe { slice::from_raw_parts_mut(self.memory as *mut u8, mappings::ROOM) };
        mappings::find(address, room)
    }
}

const _: () = assert!(mappings::ROOM.is_multiple_of(align_of::<Entry>()));
