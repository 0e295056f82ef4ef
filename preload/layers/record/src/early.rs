//! What the program allocated before there was a manager to forward to: it is recorded when the layer starts.

use heaptoll_next::arena;

use crate::RINGS;

/// Records the program's blocks of the bootstrap arena, and those of their frees that came before.
pub fn record() {
    for early in arena::of_program() {
        let Some(mut producer) = RINGS.thread() else { return };
        producer.alloc(early.block as usize, early.requested, early.usable);
        if early.is_freed {
            producer.free(early.block as usize, false);
        }
    }
}
