//! What a collection begins from, and what it finds dead.
//!
//! Roots are the trace's: entries of the table are the slots. What its last touch alone keeps is found when all that
//! the roots reach has been marked, and is then retained; so it is known how much of that there is. Entries of dead
//! objects are cleared, all others get the objects' new addresses.

use heaptoll_graph_replay::header::{Header, WORD};
use heaptoll_graph_replay::world::World;
use mmtk::Mutator;
use mmtk::scheduler::GCWorker;
use mmtk::util::opaque_pointer::VMWorkerThread;
use mmtk::util::{Address, ObjectReference};
use mmtk::vm::slot::SimpleSlot;
use mmtk::vm::{ObjectTracer, ObjectTracerContext, RootsWorkFactory, Scanning, SlotVisitor};

use crate::statics::{instance, world};
use crate::vm::Binding;

/// Roots of a packet of work.
const PACKET: usize = 4096;

impl Scanning<Binding> for Binding {
    #[inline(always)]
    fn scan_object<V: SlotVisitor<SimpleSlot>>(
        _thread: VMWorkerThread,
        object: ObjectReference,
        visitor: &mut V,
    ) {
        let at = object.to_raw_address();
        // SAFETY: MMTk scans objects in its heap, not those that it has left.
        let header = unsafe { Header::read(at.to_ptr()) };
        let first = at + header.own_words() as usize * WORD;
        for word in 0..header.scanned as usize {
            visitor.visit_slot(SimpleSlot::from_address(first + word * WORD));
        }
    }

    fn scan_roots_in_mutator_thread(
        _thread: VMWorkerThread,
        _mutator: &'static mut Mutator<Binding>,
        mut factory: impl RootsWorkFactory<SimpleSlot>,
    ) {
        // SAFETY: the mutator waits, and one worker scans its roots.
        let world = unsafe { world() };
        world.bookkeeping(|world| {
            let mut slots = Vec::with_capacity(PACKET);
            for entry in world.table.present(true) {
                slots.push(SimpleSlot::from_address(Address::from_mut_ptr(&raw mut entry.address)));
                if slots.len() == PACKET {
                    factory
                        .create_process_roots_work(std::mem::replace(&mut slots, Vec::with_capacity(PACKET)));
                }
            }
            if !slots.is_empty() {
                factory.create_process_roots_work(slots);
            }
        });
    }

    fn scan_vm_specific_roots(_thread: VMWorkerThread, _factory: impl RootsWorkFactory<SimpleSlot>) {}

    fn notify_initial_thread_scan_complete(_partial: bool, _thread: VMWorkerThread) {}

    fn supports_return_barrier() -> bool {
        false
    }

    fn prepare_for_roots_re_scanning() {}

    fn process_weak_refs(worker: &mut GCWorker<Binding>, context: impl ObjectTracerContext<Binding>) -> bool {
        // SAFETY: the mutator waits, and MMTk has one worker call this while the others have nothing to do.
        let world = unsafe { world() };
        world.bookkeeping(|world| {
            let hidden = retain_hidden(world, worker, context);
            if !hidden {
                forget_dead(world);
            }
            hidden
        })
    }

    fn forward_weak_refs(worker: &mut GCWorker<Binding>, context: impl ObjectTracerContext<Binding>) {
        // SAFETY: the mutator waits, and MMTk has one worker call this while the others have nothing to do.
        let world = unsafe { world() };
        world.bookkeeping(|world| {
            context.with_tracer(worker, |tracer| {
                let mut forward = |address: &mut usize| {
                    if let Some(object) = reference(*address) {
                        *address = tracer.trace_object(object).to_raw_address().as_usize();
                    }
                };
                world.table.present(false).for_each(|entry| forward(&mut entry.address));
                world.table.ended.iter_mut().for_each(forward);
            });
        });
    }
}

fn reference(address: usize) -> Option<ObjectReference> {
    // SAFETY: any number is an address.
    ObjectReference::from_raw_address(unsafe { Address::from_usize(address) })
}

/// Retains what is not reachable and has its last touch ahead. Whether there was any.
fn retain_hidden(
    world: &mut World,
    worker: &mut GCWorker<Binding>,
    context: impl ObjectTracerContext<Binding>,
) -> bool {
    let held = world.table.present(false).filter(|entry| entry.is_held());
    let hidden: Vec<ObjectReference> =
        held.filter_map(|entry| reference(entry.address)).filter(|object| !object.is_reachable()).collect();
    if hidden.is_empty() {
        return false;
    }
    world.count_hidden(hidden.len() as u64);
    context.with_tracer(worker, |tracer| {
        for object in hidden {
            tracer.trace_object(object);
        }
    });
    true
}

/// Where an object is after this collection; 0 when it is dead. Collectors that move objects after they have marked
/// all of them do so in `forward_weak_refs`.
fn new_address(address: usize) -> usize {
    match reference(address) {
        Some(object) if object.is_reachable() => {
            object.get_forwarded_object().unwrap_or(object).to_raw_address().as_usize()
        }
        _ => 0,
    }
}

fn forget_dead(world: &mut World) {
    let moves_later = instance().get_plan().constraints().needs_forward_after_liveness;
    // Root slots are updated as such: what they hold now is no address of before the collection.
    world.forget_dead(|address| match new_address(address) {
        new if new == 0 || !moves_later => new,
        _ => address,
    });
}
