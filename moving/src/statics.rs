//! What MMTk's threads reach without being passed it: its instance, and what mutator and collector share. One of the two
//! runs while the other waits, so each has it to itself.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use heaptoll_graph_replay::world::World;
use mmtk::MMTK;

use crate::plan::Plan;
use crate::vm::Binding;

/// The instance of this process.
static INSTANCE: OnceLock<Box<MMTK<Binding>>> = OnceLock::new();
static SHARED: AtomicPtr<Shared> = AtomicPtr::new(std::ptr::null_mut());

/// See the module.
#[derive(Debug)]
pub struct Shared {
    /// The plan.
    pub plan: Plan,
    /// What every collector shares with its replay.
    pub world: World,
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

/// Publishes what this process shares, for ever.
pub fn publish(shared: Shared) -> *mut Shared {
    let shared = Box::into_raw(Box::new(shared));
    SHARED.store(shared, Ordering::Release);
    shared
}

/// The plan. It was published.
pub fn plan() -> Plan {
    // SAFETY: what is published is never freed, and the plan never written.
    unsafe { (*SHARED.load(Ordering::Acquire)).plan }
}

/// The world.
///
/// # Safety
/// It was published, and no other reference to it is in use: the caller is the mutator outside of calls of MMTk, or
/// the one collector thread that MMTk has call the binding while the mutator waits.
pub unsafe fn world() -> &'static mut World {
    // SAFETY: what is published is never freed; the precondition of `world` excludes other references.
    unsafe { &mut (*SHARED.load(Ordering::Acquire)).world }
}
