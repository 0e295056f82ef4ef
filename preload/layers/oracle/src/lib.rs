//! The oracle layer: frees the objects of an unmodified program at a point that was recorded before.
//!
//! Preloaded in front of a manager it compares every allocation with the recorded sequence (`HEAPTOLL_ORACLE`, see
//! [`heaptoll_layer_core::oracle::settings`]), and gives objects back to the manager at their last use, when the program frees
//! them, some bytes later, or not at all. So the manager stays the same, and only the point of reclamation varies. At the
//! first allocation that differs from the recorded one the process ends: which object is which is not known any more.
#![no_std]

mod early;
mod entry;
mod environment;
mod exports;
mod file;
mod follow;
mod loaded;
mod oracle;
mod start;
mod state;
mod stop;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    heaptoll_next::family::fatal(c"heaptoll: a defect in the oracle layer; please report it\n")
}
