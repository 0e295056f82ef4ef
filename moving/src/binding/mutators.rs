//! The mutator: there is one, the thread that replays.

use std::sync::atomic::{AtomicPtr, Ordering};

use mmtk::Mutator;
use mmtk::util::opaque_pointer::{VMMutatorThread, VMThread};
use mmtk::vm::ActivePlan;

use crate::vm::Binding;

/// The thread that replays, as MMTk sees it; null until it is bound.
pub static MUTATOR: AtomicPtr<Mutator<Binding>> = AtomicPtr::new(std::ptr::null_mut());
/// Its address is the name of the thread.
static NAME: u8 = 0;

/// The name of the mutator's thread.
pub fn name() -> usize {
    &raw const NAME as usize
}

fn mutator() -> &'static mut Mutator<Binding> {
    // SAFETY: MMTk calls for it only once it was bound, which nothing undoes; it uses it while the mutator waits or
    // on the mutator's own behalf.
    unsafe { &mut *MUTATOR.load(Ordering::Acquire) }
}

impl ActivePlan<Binding> for Binding {
    fn is_mutator(thread: VMThread) -> bool {
        thread.0.to_address().as_usize() == name()
    }

    fn mutator(_thread: VMMutatorThread) -> &'static mut Mutator<Binding> {
        mutator()
    }

    fn mutators<'a>() -> Box<dyn Iterator<Item = &'a mut Mutator<Binding>> + 'a> {
        Box::new(std::iter::once_with(|| -> &mut _ { mutator() }))
    }

    fn number_of_mutators() -> usize {
        1
    }
}
