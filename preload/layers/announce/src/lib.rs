//! The announcing layer: makes what a manager announces visible to the tracer.
//!
//! A manager with a control symbol (`include/heaptoll.h`) tells its events, collections above all, to a function that
//! listens. The tracer runs the process but is no part of it, so this object, preloaded in front of the manager,
//! listens in its stead with [`heaptoll_tracer_event`]: a function that does nothing, whose entry the tracer knows by
//! its name, and whose arguments it reads there.
//!
//! It exports nothing else and never allocates: the manager serves the program alone, block for block as without it.
//! Objects that the program loads later are not asked.
#![no_std]

use core::ffi::c_void;
use core::ptr;

use heaptoll_controls::Event;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    // SAFETY: abort has no conditions.
    unsafe { libc::abort() }
}

/// What the tracer recognises: entered with an event of the manager.
///
/// # Safety
/// It has no conditions: it looks at nothing.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn heaptoll_tracer_event(event: *const Event, context: *mut c_void) {
    // The arguments are used, for all the compiler knows, so the call and the function stay as they are.
    core::hint::black_box((event, context));
}

#[used]
#[unsafe(link_section = ".init_array")]
static START: unsafe extern "C" fn() = start;

/// Listens to every manager there is. Runs once, before `main` and after the constructors of the objects behind.
unsafe extern "C" fn start() {
    heaptoll_controls::each(|control| {
        // Where somebody else listens, or there is nothing to hear, the tracer does without.
        // SAFETY: the function looks at nothing.
        let _ = unsafe { control.listen(heaptoll_tracer_event, ptr::null_mut()) };
    });
}
