//! The start-up layer: runs all of a program's start-up, but not its `main`.
//!
//! Short runs compare dynamic loaders as much as they compare managers. With this object preloaded, `main` is replaced
//! by `_exit(113)`: the loader maps and relocates the same objects in the same order, every constructor runs, the
//! manager initialises itself, and that is all. The time it takes is the start-up of *this* program under *this* stack,
//! to be subtracted from its rows.
//!
//! - Exit status [`STARTED`] means that `main` was reached, and only that is a start-up. Any other status comes from
//!   the loader, from a constructor, or from a program whose entry code does not call `__libc_start_main`
//!   (`-nostartfiles`, Go linked by its own linker, static): it runs in full and ends with its own status, mostly 0.
//! - No destructor and no `atexit` handler runs, nothing buffered is written.
//! - It acts once: it removes its own name from `LD_PRELOAD` before it calls the next function, so that a process
//!   started by the program's own constructors runs in full. (One started by a *library's* constructor, which runs
//!   before, does not.)
//! - A script's interpreter is a program like any other: its start-up is measured, not the script's.
#![no_std]

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr;

// `dlsym` is in a library of its own before glibc 2.34, and a program need not load it.
#[link(name = "dl")]
unsafe extern "C" {}

/// File name by which the layer finds itself in `LD_PRELOAD`.
const OWN_NAME: &[u8] = b"libheaptoll_start.so";

/// Exit status that means "`main` was reached". Programs do not use it: 0 and 1 are common, 2 is a usage error, those
/// from 126 on are the shell's and the signals'. heaptoll's `runner` has the same number.
const STARTED: c_int = 113;

type Main = unsafe extern "C" fn(c_int, *mut *mut c_char, *mut *mut c_char) -> c_int;
type Hook = Option<unsafe extern "C" fn()>;
type Start = unsafe extern "C" fn(Main, c_int, *mut *mut c_char, Hook, Hook, Hook, *mut c_void) -> c_int;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    // SAFETY: abort takes no pointers and does not return.
    unsafe { libc::abort() }
}

unsafe extern "C" fn leave(_: c_int, _: *mut *mut c_char, _: *mut *mut c_char) -> c_int {
    // SAFETY: _exit takes no pointers and does not return.
    unsafe { libc::_exit(STARTED) }
}

/// Called by the program's entry code: calls glibc's function of the name with another `main`.
///
/// # Safety
/// Only the C start-up code calls it, with the arguments for glibc's `__libc_start_main`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __libc_start_main(
    _main: Main,
    argc: c_int,
    argv: *mut *mut c_char,
    init: Hook,
    fini: Hook,
    rtld_fini: Hook,
    stack_end: *mut c_void,
) -> c_int {
    // SAFETY: the kernel puts the environment after the arguments and their null; the address that dlsym finds by
    // glibc's name is null, which is checked, or a function of glibc's type, whose arguments are passed on.
    unsafe {
        remove_from_preload(argv.add(usize::try_from(argc).unwrap_or(0) + 1));
        let start = libc::dlsym(libc::RTLD_NEXT, c"__libc_start_main".as_ptr());
        if start.is_null() {
            let message = b"heaptoll: the start-up layer found no glibc after it\n";
            libc::write(2, message.as_ptr().cast(), message.len());
            libc::_exit(127);
        }
        let start = core::mem::transmute::<*mut c_void, Start>(start);
        start(leave, argc, argv, init, fini, rtld_fini, stack_end)
    }
}

/// Removes this layer from `LD_PRELOAD`, in place.
unsafe fn remove_from_preload(mut environment: *mut *mut c_char) {
    // SAFETY: the caller passes the process's environment, a null-terminated array of writable C strings, before
    // another thread exists; the new value is no longer than the old one.
    unsafe {
        while !(*environment).is_null() {
            let entry = CStr::from_ptr(*environment).to_bytes();
            if let Some(value) = entry.strip_prefix(b"LD_PRELOAD=") {
                let text = (*environment).add(entry.len() - value.len()).cast::<u8>();
                let (mut read, mut write) = (0, 0);
                while read < value.len() {
                    let rest = core::slice::from_raw_parts(text.add(read), value.len() - read);
                    let length = rest.iter().position(|&b| b == b':' || b == b' ').unwrap_or(rest.len());
                    let own = rest[..length].ends_with(OWN_NAME);
                    let taken = (length + 1).min(rest.len());
                    if !own {
                        ptr::copy(text.add(read), text.add(write), taken);
                        write += taken;
                    }
                    read += taken;
                }
                text.add(write).write(0);
            }
            environment = environment.add(1);
        }
    }
}
