//! The start-up layer: runs everything of a program but the program.
//!
//! Short runs compare dynamic loaders as much as they compare managers. With this object preloaded, `main` is
//! replaced by `_exit(113)`: the loader maps and relocates the same objects in the same order, every constructor runs,
//! the manager initialises itself, and that is all. The time it takes is the start-up of *this* program under *this*
//! stack, to be taken off its rows.
//!
//! - Exit status [`STARTED`] means that `main` was reached, and only that is a start-up. Anything else is the loader's
//!   or a constructor's doing, or that of a program whose first instruction does not call `__libc_start_main`
//!   (`-nostartfiles`, Go linked by its own linker, static): it runs in full and ends with its own status, mostly 0.
//! - No destructor and no `atexit` handler runs, nothing buffered is written.
//! - It acts once: it takes its own name out of `LD_PRELOAD` before it hands on, so that a process started by the
//!   program's own constructors runs in full. (One started by a *library's* constructor, which runs before, does not.)
//! - A script's interpreter is a program like any other: its start-up is measured, not the script's.
#![no_std]

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr;

/// File name by which the layer knows itself in `LD_PRELOAD`.
const OWN_NAME: &[u8] = b"libheaptoll_start.so";

/// Exit status that says "`main` was reached". No program's habit: 0 and 1 are everybody's, 2 is usage, from 126 on
/// the shell's and the signals'. heaptoll's `runner` knows the same number.
const STARTED: c_int = 113;

type Main = unsafe extern "C" fn(c_int, *mut *mut c_char, *mut *mut c_char) -> c_int;
type Hook = Option<unsafe extern "C" fn()>;
type Start = unsafe extern "C" fn(Main, c_int, *mut *mut c_char, Hook, Hook, Hook, *mut c_void) -> c_int;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    // SAFETY: abort has no conditions.
    unsafe { libc::abort() }
}

unsafe extern "C" fn leave(_: c_int, _: *mut *mut c_char, _: *mut *mut c_char) -> c_int {
    // SAFETY: _exit has no conditions.
    unsafe { libc::_exit(STARTED) }
}

/// What the program's first instruction calls: glibc's start with another `main`.
///
/// # Safety
/// Called by the C start-up code with its own arguments.
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
    // SAFETY: the kernel lays the environment behind the arguments and their null; the address found under glibc's
    // name has glibc's type.
    unsafe {
        forget_self(argv.add(usize::try_from(argc).unwrap_or(0) + 1));
        let start = libc::dlsym(libc::RTLD_NEXT, c"__libc_start_main".as_ptr());
        if start.is_null() {
            let message = b"heaptoll: the start-up layer found no glibc behind it\n";
            libc::write(2, message.as_ptr().cast(), message.len());
            libc::_exit(127);
        }
        let start = core::mem::transmute::<*mut c_void, Start>(start);
        start(leave, argc, argv, init, fini, rtld_fini, stack_end)
    }
}

/// Takes this layer out of `LD_PRELOAD`, in place.
unsafe fn forget_self(mut environment: *mut *mut c_char) {
    // SAFETY: the environment is a null-terminated array of C strings, which the process may write to; the new value is
    // a part of the old one.
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
