//! The sweep layer: a conservative mark-sweep collector over the next malloc, whatever that is.
//!
//! The program's calls for new blocks are answered by the next family, and each block is kept in a table by address
//! ([`heaptoll_tables`]). Every so many bytes the other threads are stopped, everything that is reachable from
//! registers, stacks, static data and mappings is marked (the roots are those of our own collector, by the same code),
//! and the manager's `free` is called on what is not. What the program frees is ignored, or honoured if asked for. This is
//! the mark-sweep that Sareen and Blackburn build over off-the-shelf mallocs (2022, §4).
//!
//! - [`gate`]: nobody is inside the manager when the collector calls it;
//! - [`calls`]: the family and C++'s operators;
//! - [`mappings`] and [`managed`]: which memory is the manager's and is not read for roots;
//! - [`collection`]: stopping, marking, sweeping;
//! - [`start`]: settings, threads' ends, fork.
#![no_std]

mod births;
mod calls;
mod collection;
mod control;
mod ends;
mod forks;
mod gate;
mod held;
mod managed;
mod mappings;
mod pinned;
mod quiet;
mod start;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    heaptoll_next::family::fatal(c"heaptoll: a defect in the sweep layer; please report it\n")
}
