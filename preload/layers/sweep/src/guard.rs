//! The guard layer: a freed block that a word still leads to is never anybody else's, whatever the next malloc is.
//!
//! It is the sweep layer's code ([`lib.rs`](../lib.rs)) with another rule for when a block is given to the manager. What
//! the program frees is cleared and stays in a table of its own. When enough waits, the world is stopped, and the roots
//! and every block that is not freed are read, in the order of addresses. A freed block that no word leads to goes to
//! the manager's `free`. What is unreachable and was not freed is a leak, and stays. MineSweeper (Erdos, Ainsworth and
//! Jones 2022) reads memory so.
#![no_std]

mod calls;
mod collection;
mod control;
mod forks;
mod freed;
mod gate;
mod innermost;
mod managed;
mod mappings;
mod pinned;
mod resizing;
mod shared;
mod start;
mod thread_creation;
mod thread_exit;

use heaptoll_layer_core::sweep::settings::{GUARD, Layer};

/// Which of the two layers this object is.
const LAYER: Layer = GUARD;

heaptoll_roots::interpose_kernel_calls!();

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    heaptoll_next::family::fatal(c"heaptoll: a defect in the guard layer; please report it\n")
}
