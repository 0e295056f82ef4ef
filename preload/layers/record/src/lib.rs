//! The recording layer: tells heaptoll every allocation call, through the rings of a shared file.
//!
//! Preloaded in front of a manager it exports the whole malloc family and every `operator new` and `operator delete`,
//! forwards each call to the next object's malloc family, and writes what happened into its thread's ring
//! ([`heaptoll_ring`]), in the file that `HEAPTOLL_RECORD` names. Without that file it only forwards.
//!
//! - A call that gives a block is told after the manager has answered, a call that takes one before the manager is
//!   asked: so an address is given back before it is given out again, whoever gets it.
//! - Not recorded are blocks of the bootstrap arena (see [`heaptoll_next::arena`]) and what the layer itself causes while
//!   it starts.
//! - Execs and started processes are noted, so that heaptoll knows of images that it does not reach.
//! - The short way, a plain call when neither latencies nor sites are wanted, is inlined into `malloc` and `free`;
//!   everything else is in functions marked cold. `errno` is the manager's.
#![no_std]

mod calls;
mod execs;
mod facts;
mod stacks;
mod start;
mod thread;
mod usable;

use heaptoll_ring::Rings;
use heaptoll_stacks::Stacks;

use crate::calls::Record;
use crate::thread::Word;

/// The rings of this process.
static RINGS: Rings<Word> = Rings::new();
/// Where its calls come from.
static STACKS: Stacks = Stacks::new();

heaptoll_next::export_family!(Record);
heaptoll_next::export_operators!(Record);

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    heaptoll_next::family::fatal(c"heaptoll: a defect in the recording layer; please report it\n")
}
