//! The sweep layer: a conservative mark-sweep collector over the next malloc, whatever that is.
//!
//! The next family serves the program's calls for new blocks, and each block is kept in a table by address
//! ([`heaptoll_layer_core::sweep::side_tables`]). Every so many bytes the other threads are stopped, everything that is reachable from
//! registers, stacks, static data and mappings is marked (the roots are those of heaptoll's own collector, by the same
//! code), and the manager's `free` is called on what is not. What the program frees is ignored, or honoured if the
//! setting requires it. This is the mark-sweep that Sareen and Blackburn build over existing mallocs (2022, §4).
//!
//! - [`gate`]: no thread is inside the manager when the collector calls it;
//! - [`calls`] and [`resizing`]: the family and C++'s operators; [`freed`]: what the guard layer does with frees;
//! - [`mappings`] and [`managed`]: which memory is the manager's and is not read for roots;
//! - [`collection`]: stopping, marking, sweeping;
//! - [`shared`]: what these share; [`start`]: settings, threads' ends, fork.
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

use heaptoll_layer_core::sweep::settings::{Layer, SWEEP};

/// Which of the two layers this object is: the guard layer has the same modules ([`guard.rs`](../guard.rs)).
const LAYER: Layer = SWEEP;

heaptoll_roots::interpose_kernel_calls!();

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    heaptoll_next::family::fatal(c"heaptoll: a defect in the sweep layer; please report it\n")
}
