//! Stopping the mutator and letting it go on.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use mmtk::Mutator;
use mmtk::memory_manager;
use mmtk::util::alloc::AllocationError;
use mmtk::util::heap::GCTriggerPolicy;
use mmtk::util::opaque_pointer::*;
use mmtk::vm::{ActivePlan, Collection, GCThreadContext};

use super::trigger::Trigger;
use crate::statics::{instance, plan, world};
use crate::vm::Binding;

/// Whether the mutator waits, and for which collection.
static STOP: Stop =
    Stop { state: Mutex::new(State { waits: false, round: 0, began: None }), changed: Condvar::new() };

/// See [`STOP`].
#[derive(Debug)]
struct Stop {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    waits: bool,
    round: u64,
    /// When the world stopped, and the bookkeeping until then.
    began: Option<(Instant, u64)>,
}

impl Stop {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A thread that panics aborts the process: the state is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }
}

impl Collection<Binding> for Binding {
    fn stop_all_mutators<F: FnMut(&'static mut Mutator<Binding>)>(_thread: VMWorkerThread, mut visit: F) {
        let mut state = STOP.lock();
        while !state.waits {
            state = STOP.wait(state);
        }
        // SAFETY: the mutator waits, and one worker stops it.
        let bookkeeping_ns = unsafe { world() }.record.bookkeeping_ns;
        state.began = Some((Instant::now(), bookkeeping_ns));
        drop(state);
        visit(Binding::mutator(VMMutatorThread(VMThread::UNINITIALIZED)));
    }

    fn resume_mutators(_thread: VMWorkerThread) {
        let mut state = STOP.lock();
        if let Some((began, before_ns)) = state.began.take() {
            finish(began, before_ns);
        }
        state.round += 1;
        state.waits = false;
        STOP.changed.notify_all();
    }

    fn block_for_gc(_thread: VMMutatorThread) {
        let mut state = STOP.lock();
        let round = state.round;
        state.waits = true;
        STOP.changed.notify_all();
        while state.round == round {
            state = STOP.wait(state);
        }
    }

    fn spawn_gc_thread(_thread: VMThread, context: GCThreadContext<Binding>) {
        let GCThreadContext::Worker(worker) = context;
        let spawned = std::thread::Builder::new().name("collector".into()).spawn(move || {
            let name = OpaquePointer::from_address(mmtk::util::Address::from_ref(&*worker));
            memory_manager::start_worker(instance(), VMWorkerThread(VMThread(name)), worker);
        });
        if let Err(error) = spawned {
            eprintln!("heaptoll-mmtk: cannot start a collector's thread: {error}");
            std::process::abort();
        }
    }

    fn out_of_memory(_thread: VMThread, error: AllocationError) {
        // Where the heap is full, the mutator gets no address for the object.
        if matches!(error, AllocationError::MmapOutOfMemory) {
            eprintln!("heaptoll-mmtk: the system has no memory for a heap of this size");
            std::process::abort();
        }
    }

    fn create_gc_trigger() -> Box<dyn GCTriggerPolicy<Binding>> {
        // SAFETY: the world is published before MMTk is made, and nothing else runs then.
        let pages = unsafe { world() }.heap_pages;
        Box::new(Trigger { pages, collects: plan().collects })
    }
}

/// Records a collection that is complete, and checks it.
fn finish(began: Instant, bookkeeping_before_ns: u64) {
    let pause_ns = began.elapsed().as_nanos() as u64;
    // SAFETY: the mutator waits until the caller lets it go on, and the collection is complete.
    let world = unsafe { world() };
    let record = &mut world.record;
    record.pauses_ns.push(pause_ns.saturating_sub(record.bookkeeping_ns - bookkeeping_before_ns));
    let nursery = instance().get_plan().generational().is_some_and(|plan| !plan.last_collection_full_heap());
    *(if nursery { &mut record.nursery } else { &mut record.full }) += 1;
    record.emergency += u64::from(instance().is_emergency_collection());
    // SAFETY: the mutator waits, the collection is complete, and has brought the table up to date.
    unsafe { world.check() };
}
