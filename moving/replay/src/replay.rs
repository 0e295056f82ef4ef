//! The replay of a program under one plan. Once a process, since MMTk can be made once.

use std::sync::atomic::Ordering;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::binding::FITS;
use crate::check::{Model, in_heap};
use crate::error::Error;
use crate::header::Header;
use crate::mutator::Mutator;
use crate::plan::Plan;
use crate::program::{Operation, Program};
use crate::record::Record;
use crate::table::{COPIED_BYTES, COPIED_OBJECTS, Table};
use crate::world::{self, World};

/// Bytes of a page.
pub const PAGE: u64 = 4096;

/// How to replay.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// The collector.
    pub plan: Plan,
    /// Size of the heap, bytes; whole pages are used.
    pub heap_bytes: u64,
    /// Threads of the collector.
    pub collector_threads: usize,
    /// Whether each collection is checked against the trace's own graph.
    pub check: bool,
}

/// What a replay found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The plan.
    pub plan: String,
    /// Size of the heap, bytes.
    pub heap_bytes: u64,
    /// Whether every object found memory; otherwise the replay ended at the first that did not.
    pub fits: bool,
    /// Objects allocated.
    pub objects: u64,
    /// Bytes that the program had not freed at the end, rounded up to words: of the replay or where it did not fit.
    pub live_bytes: u64,
    /// Bytes of objects in the heap at the end, headers included. Where it did not fit, what the last collection of the
    /// whole heap kept, and what was allocated since.
    pub present_bytes: u64,
    /// Stores of pointers to objects that had been collected, their last touches being over: the words hold none.
    pub lost_edges: u64,
    /// Bytes that collections copied, headers included.
    pub copied_bytes: u64,
    /// Copies of objects.
    pub copied_objects: u64,
    /// Time from the first operation to the last, ns.
    pub replay_ns: u64,
    /// CPU time of the thread that replays, ns.
    pub mutator_cpu_ns: u64,
    /// CPU time of the collector, ns; with checks, theirs too.
    pub collector_cpu_ns: u64,
    /// Its collections.
    pub collections: Record,
}

/// Replays.
///
/// # Errors
/// MMTk refuses the settings.
pub fn replay(program: &Program, settings: &Settings) -> Result<Answer, Error> {
    let heap_pages = (settings.heap_bytes / PAGE).max(1) as usize;
    let world = world::publish(World {
        plan: settings.plan,
        heap_pages,
        table: Table::new(program.handles()),
        record: Record::default(),
        model: settings.check.then(|| Model::new(program.handles())),
    });
    let mutator = Mutator::begin(settings.plan, settings.collector_threads)?;
    let mut replay = Replay { world, mutator, objects: 0, lost_edges: 0 };
    let (process, thread) = (cpu_ns(libc::CLOCK_PROCESS_CPUTIME_ID), cpu_ns(libc::CLOCK_THREAD_CPUTIME_ID));
    let begin = Instant::now();
    let fits = if settings.check { replay.run::<true>(program) } else { replay.run::<false>(program) };
    let replay_ns = begin.elapsed().as_nanos() as u64;
    let mutator_cpu_ns = cpu_ns(libc::CLOCK_THREAD_CPUTIME_ID) - thread;
    let process_cpu_ns = cpu_ns(libc::CLOCK_PROCESS_CPUTIME_ID) - process;
    let world = replay.world();
    Ok(Answer {
        plan: settings.plan.name.to_string(),
        heap_bytes: heap_pages as u64 * PAGE,
        fits,
        objects: replay.objects,
        live_bytes: world.table.live_words * 8,
        // SAFETY: the mutator is this thread, and has stopped between two operations.
        present_bytes: unsafe { in_heap(&world.table) }.1,
        lost_edges: replay.lost_edges,
        copied_bytes: COPIED_BYTES.load(Ordering::Relaxed),
        copied_objects: COPIED_OBJECTS.load(Ordering::Relaxed),
        replay_ns,
        mutator_cpu_ns,
        collector_cpu_ns: process_cpu_ns.saturating_sub(mutator_cpu_ns),
        collections: std::mem::take(&mut world.record),
    })
}

fn cpu_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a local variable; both clocks always exist.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

struct Replay {
    world: *mut World,
    mutator: Mutator,
    objects: u64,
    lost_edges: u64,
}

impl Replay {
    #[inline(always)]
    fn world<'a>(&self) -> &'a mut World {
        // SAFETY: published in `replay`, never freed. The mutator runs, so no collector has it; no reference of ours
        // outlives one operation, or lives while MMTk is called.
        unsafe { &mut *self.world }
    }

    /// Whether everything fits.
    fn run<const CHECK: bool>(&mut self, program: &Program) -> bool {
        for operation in program.operations() {
            match operation {
                Operation::Allocate { handle, words, scanned } => {
                    if !self.allocate::<CHECK>(handle, words, scanned) {
                        return FITS.load(Ordering::Relaxed);
                    }
                }
                Operation::Edge { from, word, to } => self.edge::<CHECK>(from, word, to),
                Operation::Clear { from, word } => self.clear::<CHECK>(from, word),
                Operation::Root(handle) => self.world().table.root(handle),
                Operation::Point => self.world().table.point(),
                Operation::Release(handle) => self.world().table.release(handle),
                Operation::End(handle) => {
                    self.world().table.end(handle);
                    if CHECK && let Some(model) = &mut self.world().model {
                        model.end(handle);
                    }
                }
            }
        }
        true
    }

    /// Whether the replay goes on: there was memory, and no check has failed.
    #[inline(always)]
    fn allocate<const CHECK: bool>(&mut self, handle: u32, words: u32, scanned: u32) -> bool {
        let header = Header { words, scanned, number: self.objects };
        let address = self.mutator.allocate(&header);
        if address == 0 {
            return false;
        }
        self.objects += 1;
        let world = self.world();
        world.table.add(handle, address, words);
        if CHECK && let Some(model) = &mut world.model {
            model.add(handle);
            return world.record.violation.is_none();
        }
        true
    }

    #[inline(always)]
    fn edge<const CHECK: bool>(&mut self, from: u32, word: u32, to: u32) {
        let table = &self.world().table;
        let target = table.address(to);
        self.lost_edges += u64::from(target == 0);
        self.store::<CHECK>(from, word, (target != 0).then_some(to), target);
    }

    #[inline(always)]
    fn clear<const CHECK: bool>(&mut self, from: u32, word: u32) {
        self.store::<CHECK>(from, word, None, 0);
    }

    #[inline(always)]
    fn store<const CHECK: bool>(&mut self, from: u32, word: u32, to: Option<u32>, target: usize) {
        let source = self.world().table.address(from);
        if source == 0 {
            return;
        }
        // SAFETY: the table's addresses are those of objects in the heap; the program has been checked for the word.
        unsafe { self.mutator.store(source, word, target) };
        if CHECK && let Some(model) = &mut self.world().model {
            model.set(from, word, to);
        }
    }
}
