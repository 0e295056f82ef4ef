//! The forwarding layer: does nothing but forward, so that the cost of forwarding can be measured separately.
#![no_std]

use core::ffi::c_void;

use heaptoll_next::watched::Watch;

struct Forward;

impl Watch for Forward {
    type Before = ();

    #[inline(always)]
    fn before_resize(_block: *mut c_void) {}
}

heaptoll_next::export_family!(Forward);
heaptoll_next::export_operators!(Forward);

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    heaptoll_next::family::fatal(c"heaptoll: a defect in the forwarding layer; please report it\n")
}
