//! What mutator and collector share: the table of objects, and what collections have done. One of the two runs while
//! the other waits, so each has it to itself.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use mmtk::MMTK;

use crate::check::Model;
use crate::plan::Plan;
use crate::record::Record;
use crate::table::Table;
use crate::vm::Binding;

/// The instance of this process.
static INSTANCE: OnceLock<Box<MMTK<Binding>>> = OnceLock::new();
static WORLD: AtomicPtr<World> = AtomicPtr::new(std::ptr::null_mut());

/// See the module.
#[derive(Debug)]
pub struct World {
    /// The plan.
    pub plan: Plan,
    /// Pages of the heap, of 4 KiB.
    pub heap_pages: usize,
    /// Where objects are.
    pub table: Table,
    /// What collections have done.
    pub record: Record,
    /// The trace's own graph, where collections are checked.
    pub model: Option<Model>,
}

/// Sets the instance, once.
pub fn set_instance(instance: Box<MMTK<Binding>>) {
    // A second one would be another replay in the same process, which `Mutator::begin` does not make.
    let _ = INSTANCE.set(instance);
}

/// The instance.
pub fn instance() -> &'static MMTK<Binding> {
    match INSTANCE.get() {
        Some(instance) => instance,
        None => unreachable!("MMTk calls its binding only once it was made"),
    }
}

/// Publishes the world of this process, for ever.
pub fn publish(world: World) -> *mut World {
    let world = Box::into_raw(Box::new(world));
    WORLD.store(world, Ordering::Release);
    world
}

/// The world.
///
/// # Safety
/// It was published, and no other reference to it is in use: the caller is the mutator outside of calls of MMTk, or
/// the one collector thread that MMTk has call the binding while the mutator waits.
pub unsafe fn world() -> &'static mut World {
    // SAFETY: published worlds are never freed; the precondition of `world` excludes other references.
    unsafe { &mut *WORLD.load(Ordering::Acquire) }
}
