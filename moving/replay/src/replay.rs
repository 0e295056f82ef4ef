//! The replay of a program over a heap.

use heaptoll_moving_answers::{PAGE, Replayed};

use crate::check::in_heap;
use crate::clock::{Span, process_cpu_ns};
use crate::header::{Header, WORD};
use crate::heap::Heap;
use crate::program::{Access, Operation, Program};
use crate::simulate::{Simulation, Unwatched, Watch};
use crate::table::Entry;

/// Replays over a heap that nothing has used, of the collector of this name.
pub fn replay<H: Heap>(program: &Program, plan: &str, heap: &mut H) -> Replayed {
    match heap.world().simulate.take() {
        None => watched(program, plan, heap, &mut Unwatched),
        Some(settings) => {
            let mut simulation = Simulation::new(program.handles(), &settings);
            let replayed = watched(program, plan, heap, &mut simulation);
            Replayed { simulated: Some(simulation.finish()), ..replayed }
        }
    }
}

fn watched<H: Heap, W: Watch>(program: &Program, plan: &str, heap: &mut H, watch: &mut W) -> Replayed {
    let heap_pages = heap.world().heap_pages;
    let check = heap.world().model.is_some();
    let mut replay = Replay { heap, watch, objects: 0, lost_edges: 0, accesses: 0, lost_accesses: 0 };
    let (process, begin) = (process_cpu_ns(), Span::begin());
    let fits = if check { replay.run::<true>(program) } else { replay.run::<false>(program) };
    let (replay_ns, thread_cpu_ns) = (begin.elapsed_ns(), begin.cpu_ns());
    let others_cpu_ns = (process_cpu_ns() - process).saturating_sub(thread_cpu_ns);
    let Replay { heap, objects, lost_edges, accesses, lost_accesses, .. } = replay;
    let own_cpu_ns = heap.collector_cpu_ns();
    let copied = heap.copied();
    let world = heap.world();
    Replayed {
        plan: plan.to_string(),
        heap_bytes: heap_pages as u64 * PAGE,
        fits,
        objects,
        live_bytes: world.table.live_words * 8,
        // SAFETY: the mutator is this thread, and has stopped between two operations.
        present_bytes: unsafe { in_heap(&world.table) }.1,
        lost_edges,
        copied_bytes: copied.bytes,
        copied_objects: copied.objects,
        replay_ns,
        mutator_cpu_ns: thread_cpu_ns.saturating_sub(own_cpu_ns.unwrap_or(0)),
        collector_cpu_ns: own_cpu_ns.unwrap_or(others_cpu_ns),
        accesses,
        lost_accesses,
        simulated: None,
        collections: std::mem::take(&mut world.record),
    }
}

struct Replay<'a, H, W> {
    heap: &'a mut H,
    watch: &'a mut W,
    objects: u64,
    lost_edges: u64,
    accesses: u64,
    lost_accesses: u64,
}

/// Bytes of a cache's line.
const LINE: usize = 64;

impl<H: Heap, W: Watch> Replay<'_, H, W> {
    /// Whether everything fits.
    fn run<const CHECK: bool>(&mut self, program: &Program) -> bool {
        for operation in program.operations() {
            match operation {
                Operation::Allocate { handle, words, scanned } => {
                    let Some(right) = self.allocate::<CHECK>(handle, words, scanned) else { return false };
                    if !right {
                        return true;
                    }
                }
                Operation::Edge { from, word, to } => self.edge::<CHECK>(from, word, to),
                Operation::Clear { from, word } => self.clear::<CHECK>(from, word),
                Operation::Root(handle) => self.heap.root(handle),
                Operation::Point => self.heap.point(),
                Operation::Release(handle) => self.heap.world().table.release(handle),
                Operation::End(handle) => {
                    let world = self.heap.world();
                    world.table.end(handle);
                    if CHECK && let Some(model) = &mut world.model {
                        model.end(handle);
                    }
                }
                Operation::Access(access) => self.access(&access),
                Operation::RequestBegin(thread) => self.watch.request_begins(thread),
                Operation::RequestEnd(thread) => self.watch.request_ends(thread),
            }
        }
        true
    }

    /// Whether the collections so far were right; none when the object does not fit.
    #[inline(always)]
    fn allocate<const CHECK: bool>(&mut self, handle: u32, words: u32, scanned: u32) -> Option<bool> {
        let header = Header { words, scanned, number: self.objects };
        let collections = self.collections();
        if self.watch.wants_collection(header.total_bytes()) {
            self.heap.collect();
        }
        let address = self.heap.allocate(&header);
        if self.collections() != collections {
            let world = self.heap.world();
            self.watch.collected(&world.table, world.record.full != collections.0);
        }
        if address == 0 {
            return None;
        }
        self.objects += 1;
        let world = self.heap.world();
        world.table.add(handle, address, words);
        self.watch.allocated(handle, address, &header);
        if CHECK && let Some(model) = &mut world.model {
            model.add(handle);
            return Some(!world.record.is_wrong());
        }
        Some(true)
    }

    /// Collections of the whole heap, and of a nursery.
    #[inline(always)]
    fn collections(&mut self) -> (u64, u64) {
        let record = &self.heap.world().record;
        (record.full, record.nursery)
    }

    /// Loads, and where the program stores, stores what is there: what the program stored is not known, and references
    /// go through the barrier.
    #[inline(always)]
    fn access(&mut self, access: &Access) {
        let Entry { address: object, words, .. } = self.heap.world().table.entry(access.handle);
        if object == 0 {
            self.lost_accesses += 1;
            return;
        }
        self.accesses += 1;
        let own_words = Header { words, scanned: 0, number: 0 }.own_words() as usize;
        let begin = object + own_words * WORD + access.offset as usize;
        let last = begin + access.bytes as usize - 1;
        let mut at = begin;
        loop {
            // SAFETY: the program has been checked for the bytes: they are the object's, which is in the heap. No
            // collector runs, and no reference of Rust leads there.
            unsafe {
                let byte = (at as *const u8).read_volatile();
                if access.store {
                    (at as *mut u8).write_volatile(byte);
                }
            }
            if at == last {
                break;
            }
            at = last.min(at + LINE);
        }
        self.watch.access(begin, access);
    }

    #[inline(always)]
    fn edge<const CHECK: bool>(&mut self, from: u32, word: u32, to: u32) {
        let target = self.heap.world().table.address(to);
        self.lost_edges += u64::from(target == 0);
        self.store::<CHECK>(from, word, (target != 0).then_some(to), target);
    }

    #[inline(always)]
    fn clear<const CHECK: bool>(&mut self, from: u32, word: u32) {
        self.store::<CHECK>(from, word, None, 0);
    }

    #[inline(always)]
    fn store<const CHECK: bool>(&mut self, from: u32, word: u32, to: Option<u32>, target: usize) {
        let source = self.heap.world().table.address(from);
        if source == 0 {
            return;
        }
        // SAFETY: the table's addresses are those of objects in the heap; the program has been checked for the word.
        unsafe { self.heap.store(source, word, target) };
        if CHECK && let Some(model) = &mut self.heap.world().model {
            model.set(from, word, to);
        }
    }
}
