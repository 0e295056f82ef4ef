//! The recording layer: reports every allocation call to heaptoll, through the rings of a shared file.
//!
//! Preloaded in front of a manager it exports the whole malloc family and every `operator new` and `operator delete`,
//! forwards each call to the next object's malloc family, and records it in the thread's ring ([`heaptoll_alloc_ring`]), in
//! the file that `HEAPTOLL_RECORD` names. Without that file it only forwards.
//!
//! - An allocation is recorded after the manager has returned, a free before the manager is called: so in the record an
//!   address is freed before it is allocated again, on whichever thread.
//! - The layer's own allocations while it starts are not recorded. Blocks that the program allocated before it could
//!   start (see [`heaptoll_next::arena`]) are recorded when it does, without a call stack.
//! - Execs and started processes are noted, so that heaptoll learns of images into which the layer is not loaded.
//! - Large mappings that the program makes itself are noted with their call stacks, for the ledger.
//! - A limit of the address space that the program sets itself takes effect for what the layer has mapped.
//! - The fast path, for calls when neither latencies nor sites are wanted, is inlined into `malloc` and `free`;
//!   everything else is in functions marked cold. `errno` is the manager's.
#![no_std]

mod calls;
mod early;
mod execs;
mod facts;
mod limits;
mod maps;
mod start;
mod thread;
mod usable;

use heaptoll_alloc_ring::Rings;
use heaptoll_stacks::CallStacks;

use crate::calls::Record;
use crate::thread::Word;

/// The rings of this process.
static RINGS: Rings<Word> = Rings::new();
/// The call stacks of this process.
static STACKS: CallStacks = CallStacks::new();

heaptoll_next::export_family!(Record);
heaptoll_next::export_operators!(Record);
heaptoll_stacks::export_dlclose!(STACKS);
heaptoll_next::export_ending!();

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    heaptoll_next::family::fatal(c"heaptoll: a defect in the recording layer; please report it\n")
}
