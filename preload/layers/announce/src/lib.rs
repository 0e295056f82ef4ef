//! The announcing layer: makes the events of a manager visible to the tracer.
//!
//! A manager with a control symbol (`include/heaptoll.h`) passes its events, mainly collections, to a registered
//! listener. The tracer runs the process but is no part of it, so this object, preloaded in front of the manager,
//! registers [`heaptoll_tracer_event`] for it: a function that does nothing, whose entry the tracer finds by its name,
//! and whose arguments it reads there.
//!
//! It exports nothing else and never allocates: the manager serves the program alone, block for block as without it. It
//! does not listen to objects that the program loads later.
#![no_std]

use core::ffi::c_void;
use core::ptr;

use heaptoll_next::controls::Event;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    // SAFETY: abort takes no pointers and does not return.
    unsafe { libc::abort() }
}

/// The function that the tracer recognises: entered with an event of the manager.
///
/// # Safety
/// The arguments may have any values: they are not dereferenced.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn heaptoll_tracer_event(event: *const Event, context: *mut c_void) {
    // To the compiler the arguments are used, so it keeps the call and the function.
    core::hint::black_box((event, context));
}

#[used]
#[unsafe(link_section = ".init_array")]
static START: unsafe extern "C" fn() = start;

/// Registers the listener with every manager. Runs once, before `main` and after the constructors of the objects that
/// follow in the preload order.
unsafe extern "C" fn start() {
    heaptoll_next::controls::each(|control| {
        // If another listener is registered, or the manager has no events, the tracer does without.
        // SAFETY: `heaptoll_tracer_event` dereferences nothing and neither allocates nor waits, as the control contract
        // requires.
        let _ = unsafe { control.listen(heaptoll_tracer_event, ptr::null_mut()) };
    });
}
