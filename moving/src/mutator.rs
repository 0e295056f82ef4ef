//! The mutator's side of MMTk: allocation by its bump pointer where the plan has one, and stores through its barrier.

use std::sync::atomic::Ordering;

use heaptoll_graph_replay::error::Error;
use heaptoll_graph_replay::header::{Header, WORD};
use heaptoll_graph_replay::heap::{Copied, Heap};
use heaptoll_graph_replay::world::World;
use mmtk::plan::BarrierSelector;
use mmtk::util::alloc::{AllocatorInfo, AllocatorSelector};
use mmtk::util::opaque_pointer::*;
use mmtk::util::{Address, ObjectReference};
use mmtk::vm::slot::SimpleSlot;
use mmtk::{AllocationSemantics, MMTKBuilder, memory_manager};

use crate::binding::{self, copied};
use crate::plan::Plan;
use crate::statics::{self, Shared};
use crate::vm::Binding;

/// Larger objects do not try the bump pointer.
const BUMPED_BYTES: usize = 2048;

/// The thread that replays.
#[derive(Debug)]
pub struct Mutator {
    shared: *mut Shared,
    inner: *mut mmtk::Mutator<Binding>,
    semantics: AllocationSemantics,
    /// Cursor and limit of the bump allocator; null where the plan has none, or must see every object.
    bump: *mut [usize; 2],
    /// Larger objects go to the space of large objects.
    most_small_bytes: usize,
    remembers: bool,
}

impl Mutator {
    /// Publishes the world, makes the instance of this process and binds the calling thread to it. Once a process.
    ///
    /// # Errors
    /// MMTk refuses an option.
    pub fn begin(plan: Plan, collector_threads: usize, world: World) -> Result<Mutator, Error> {
        use mmtk::util::options::GCTriggerSelector::Delegated;
        let shared = statics::publish(Shared { plan, world });
        // The environment is the user's, for other programs.
        let mut builder = MMTKBuilder::new_no_env_vars();
        let accepted = [
            (builder.options.plan.set(plan.selector), "the plan"),
            (builder.options.threads.set(collector_threads), "the number of the collector's threads"),
            (builder.options.gc_trigger.set(Delegated), "to have its heap's size set"),
        ];
        if let Some((_, what)) = accepted.into_iter().find(|(accepted, _)| !accepted) {
            return Err(Error::Refused(what));
        }
        statics::set_instance(memory_manager::mmtk_init::<Binding>(&builder));
        memory_manager::initialize_collection(statics::instance(), VMThread::UNINITIALIZED);
        Ok(Mutator::bind(plan, shared))
    }

    fn bind(plan: Plan, shared: *mut Shared) -> Mutator {
        let instance = statics::instance();
        // SAFETY: any number is an address; MMTk only hands it back.
        let name = OpaquePointer::from_address(unsafe { Address::from_usize(binding::mutator_name()) });
        let inner = Box::into_raw(memory_manager::bind_mutator(instance, VMMutatorThread(VMThread(name))));
        binding::MUTATOR.store(inner, Ordering::Release);
        let selector = memory_manager::get_allocator_mapping(instance, plan.semantics);
        let bump = match (AllocatorInfo::new::<Binding>(selector), selector) {
            // It has a word of its own in front of each object, and a bit for it.
            (_, AllocatorSelector::MarkCompact(_)) => std::ptr::null_mut(),
            (AllocatorInfo::BumpPointer { bump_pointer_offset }, _) => {
                inner.wrapping_byte_add(bump_pointer_offset).cast()
            }
            _ => std::ptr::null_mut(),
        };
        let constraints = instance.get_plan().constraints();
        Mutator {
            shared,
            inner,
            semantics: plan.semantics,
            bump,
            most_small_bytes: constraints.max_non_los_default_alloc_bytes,
            remembers: constraints.barrier == BarrierSelector::ObjectBarrier,
        }
    }

    #[inline(never)]
    fn allocate_slowly(&mut self, header: &Header, bytes: usize) -> usize {
        let large = bytes > self.most_small_bytes;
        let semantics = if large { AllocationSemantics::Los } else { self.semantics };
        // SAFETY: bound in `bind`, never freed; only this thread uses it outside of collections, in which it waits.
        let inner = unsafe { &mut *self.inner };
        let address = memory_manager::alloc(inner, bytes, WORD, 0, semantics);
        if address.is_zero() {
            return 0;
        }
        // SAFETY: MMTk has just given these bytes.
        let object = unsafe {
            header.write(address.to_mut_ptr());
            ObjectReference::from_raw_address_unchecked(address)
        };
        memory_manager::post_alloc(inner, object, bytes, semantics);
        address.as_usize()
    }
}

impl Heap for Mutator {
    #[inline(always)]
    fn world(&mut self) -> &mut World {
        // SAFETY: published in `begin`, never freed. The mutator runs, so no collector has it; no reference to it
        // lives while MMTk is called.
        unsafe { &mut (*self.shared).world }
    }

    #[inline(always)]
    fn allocate(&mut self, header: &Header) -> usize {
        let bytes = header.total_bytes();
        if !self.bump.is_null() && bytes <= BUMPED_BYTES {
            // SAFETY: cursor and limit lie in the mutator, which lives as long as the process and which only this
            // thread uses outside of collections. What is between them is zeroed memory of this thread's.
            unsafe {
                let [cursor, limit] = *self.bump;
                if cursor + bytes <= limit {
                    (*self.bump)[0] = cursor + bytes;
                    header.write(cursor as *mut u64);
                    return cursor;
                }
            }
        }
        self.allocate_slowly(header, bytes)
    }

    #[inline(always)]
    unsafe fn store(&mut self, from: usize, word: u32, to: usize) {
        // SAFETY: the precondition of this function: both are objects, and the word is one of the first.
        unsafe {
            let own = Header::read(from as *const u64).own_words() as usize;
            let slot = from + (own + word as usize) * WORD;
            (slot as *mut usize).write(to);
            if self.remembers {
                let from = ObjectReference::from_raw_address_unchecked(Address::from_usize(from));
                let slot = SimpleSlot::from_address(Address::from_usize(slot));
                let to = ObjectReference::from_raw_address(Address::from_usize(to));
                memory_manager::object_reference_write_post(&mut *self.inner, from, slot, to);
            }
        }
    }

    fn collect(&mut self) {
        // SAFETY: any number is an address; MMTk only hands it back.
        let name = OpaquePointer::from_address(unsafe { Address::from_usize(binding::mutator_name()) });
        memory_manager::handle_user_collection_request(statics::instance(), VMMutatorThread(VMThread(name)));
    }

    fn copied(&self) -> Copied {
        copied()
    }
}
