//! The forwarding layer: does nothing but forward, so that what any layer costs is known beside what it does.
#![no_std]

use core::ffi::c_void;

use heaptoll_next::watched::{Call, Watch};

struct Forward;

impl Watch for Forward {
    type Before = ();

    #[inline(always)]
    fn asked(block: *mut c_void, _size: usize, _call: Call) -> *mut c_void {
        block
    }

    #[inline(always)]
    fn gives_back(_block: *mut c_void, _operator: bool) -> bool {
        true
    }

    #[inline(always)]
    fn resizes(_block: *mut c_void) {}

    #[inline(always)]
    fn resized(_block: *mut c_void, _before: (), _size: usize, _new: *mut c_void) {}
}

heaptoll_next::export_family!(Forward);
heaptoll_next::export_operators!(Forward);

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    heaptoll_next::family::fatal(c"heaptoll: a defect in the forwarding layer; please report it\n")
}
