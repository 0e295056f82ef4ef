//! The sampling layer: a heap profile of a program in production.
//!
//! Preloaded in front of a manager it counts down the bytes that each thread allocates, and at random distances samples
//! an allocation with its call stack ([`heaptoll_layer_core::sample`]). A call that is not sampled costs a subtraction and a
//! comparison, and is then a jump to the manager; a free costs a load and a comparison. Without the folder that
//! `HEAPTOLL_SAMPLE` names it only forwards.
//!
//! - The layer has no thread, no signal handler and no descriptor. Whether it samples is a word of memory that it shares
//!   with the tool, which it reads where it would sample.
//! - Samples fire USDT probes for profilers outside ([`probes`]).
//! - A `realloc` counts as the free of the old block and the allocation of the new one: of a block that was not sampled
//!   nothing is known.
//! - Sums are those when `exit` begins: what handlers and destructors free stays live in them.
//! - `errno` is the manager's.
#![no_std]

mod calls;
mod next;
mod probes;
mod start;
mod thread;

use heaptoll_layer_core::sample::Sampler;
use heaptoll_stacks::CallStacks;

use crate::calls::Sample;

/// The samples of this process.
static SAMPLER: Sampler = Sampler::new();
/// The call stacks of this process.
static STACKS: CallStacks = CallStacks::new();

heaptoll_next::export_family!(Sample);
heaptoll_next::export_operators!(Sample);
heaptoll_stacks::export_dlclose!(STACKS);
heaptoll_next::export_ending!();

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    heaptoll_next::family::fatal(c"heaptoll: a defect in the sampling layer; please report it\n")
}
