//! The program's threads and roots, as `heaptoll-roots` finds them.

use core::ops::Range;

use heaptoll_roots::{RootKinds, World};
use heaptoll_runtime::{AbandonCause, SignalMaskGuard};

use crate::support::{Mutators, Visitor};

/// How long a stop waits for the program's threads, ms.
const PATIENCE_MS: u32 = 2000;
/// Processors that the process is taken to have: a stop waits for replies awake at first.
const PROCESSORS: usize = 2;

impl Mutators for World {
    fn start(&'static self) {
        World::start(self, None, PATIENCE_MS, PROCESSORS);
    }

    fn with_world_stopped(
        &self,
        left_out: &[Range<usize>],
        visitor: &mut dyn Visitor,
    ) -> Result<(), AbandonCause> {
        let shown =
            self.on_own_stack(&SignalMaskGuard::all_but(&[]), || stop_and_show(self, left_out, visitor));
        shown.unwrap_or(Err(AbandonCause::Memory))
    }

    fn after_fork_in_child(&self) {
        World::after_fork_in_child(self);
    }
}

/// See [`Mutators::with_world_stopped`].
fn stop_and_show(
    world: &World,
    left_out: &[Range<usize>],
    visitor: &mut dyn Visitor,
) -> Result<(), AbandonCause> {
    let stopped = world.stop().map_err(|refused| refused.cause())?;
    let roots = stopped.roots(RootKinds::ALL, left_out, &mut |root| visitor.root(root));
    roots.map_err(|failed| failed.cause())?;
    visitor.finish();
    Ok(())
}
