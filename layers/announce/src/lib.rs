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

mod object;

use core::cell::UnsafeCell;
use core::ffi::{c_char, c_int, c_void};
use core::mem::transmute;
use core::ptr;

/// The symbol that managers export, see `include/heaptoll.h`.
const CONTROL: &[u8] = b"heaptoll_control_v1";

/// Objects of one process that are asked: a manager, and layers of it.
const MOST: usize = 16;

type Listener = unsafe extern "C" fn(*const c_void, *mut c_void);

/// The beginning of `struct heaptoll_control`.
#[repr(C)]
struct Control {
    version: u32,
    size: u32,
    name: *const c_char,
    manager_version: *const c_char,
    census: *const c_void,
    collect: *const c_void,
    listen: Option<unsafe extern "C" fn(Listener, *mut c_void) -> c_int>,
}

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
pub unsafe extern "C" fn heaptoll_tracer_event(event: *const c_void, context: *mut c_void) {
    // The arguments are used, for all the compiler knows, so the call and the function stay as they are.
    core::hint::black_box((event, context));
}

/// Addresses of control functions.
struct Found {
    addresses: UnsafeCell<[usize; MOST]>,
    count: UnsafeCell<usize>,
}

#[used]
#[unsafe(link_section = ".init_array")]
static START: unsafe extern "C" fn() = start;

/// Listens to every manager there is. Runs once, before `main` and after the constructors of the objects behind.
unsafe extern "C" fn start() {
    let found = Found { addresses: UnsafeCell::new([0; MOST]), count: UnsafeCell::new(0) };
    // SAFETY: the callback has the type that is asked for; `found` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(look), ptr::from_ref(&found).cast_mut().cast()) };
    let (addresses, count) = (found.addresses.into_inner(), found.count.into_inner());
    // The loader's lock is free again: a manager may do in `listen` what it likes.
    for &address in &addresses[..count.min(MOST)] {
        // SAFETY: the address was found under the name whose type it is given; the struct it returns lives as long as the
        // object and has the members that its size covers.
        unsafe {
            let control = transmute::<usize, unsafe extern "C" fn() -> *const Control>(address)();
            let Some(control) = control.as_ref() else { continue };
            if control.version >= 1
                && control.size as usize >= size_of::<Control>()
                && let Some(listen) = control.listen
            {
                listen(heaptoll_tracer_event, ptr::null_mut());
            }
        }
    }
}

/// Looks at one loaded object.
unsafe extern "C" fn look(info: *mut libc::dl_phdr_info, _size: usize, found: *mut c_void) -> c_int {
    // SAFETY: the loader gives a valid description of an object that stays mapped while this runs; `found` is that of
    // `start`, of which there is no other reference.
    unsafe {
        let found = &*found.cast::<Found>();
        if let Some(address) = object::function(&*info, CONTROL) {
            let count = found.count.get();
            if *count < MOST {
                (*found.addresses.get())[*count] = address;
                *count += 1;
            }
        }
    }
    0
}
