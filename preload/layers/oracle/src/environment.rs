//! Removes from the environment what was put there to measure, before the program's `main`: programs copy their
//! environment, and what they allocate for it would differ from run to run.

use core::cell::UnsafeCell;
use core::ffi::{CStr, c_char, c_int, c_void};

type Main = unsafe extern "C" fn(c_int, *mut *mut c_char, *mut *mut c_char) -> c_int;
type Hook = Option<unsafe extern "C" fn()>;
type Start = unsafe extern "C" fn(Main, c_int, *mut *mut c_char, Hook, Hook, Hook, *mut c_void) -> c_int;

/// Names that the settings add: a text of the environment's, which stays.
struct Hidden(UnsafeCell<&'static [u8]>);

// SAFETY: written by `hide` and read by `__libc_start_main`, on the process's first thread, before there is another.
unsafe impl Sync for Hidden {}

static HIDDEN: Hidden = Hidden(UnsafeCell::new(b""));

/// Adds names, separated by `+`, to those that are removed.
pub fn hide(names: &[u8]) {
    // SAFETY: a variable's value lies in the environment's memory, which stays.
    unsafe { *HIDDEN.0.get() = core::slice::from_raw_parts(names.as_ptr(), names.len()) };
}

fn is_hidden(entry: &[u8]) -> bool {
    let name = entry.split(|&byte| byte == b'=').next().unwrap_or(entry);
    // SAFETY: see `Hidden`.
    let hidden = unsafe { *HIDDEN.0.get() };
    name.starts_with(b"HEAPTOLL_")
        || name.starts_with(b"VALGRIND_")
        || name == b"LD_PRELOAD"
        || hidden.split(|&byte| byte == b'+').any(|other| !other.is_empty() && other == name)
}

/// Called by the program's entry code, when all libraries have been initialised.
///
/// # Safety
/// Only the C start-up code calls it, with the arguments for glibc's `__libc_start_main`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __libc_start_main(
    main: Main,
    argc: c_int,
    argv: *mut *mut c_char,
    init: Hook,
    fini: Hook,
    rtld_fini: Hook,
    stack_end: *mut c_void,
) -> c_int {
    // Before the environment is changed: the settings are in it.
    let follows = crate::start::start();
    // SAFETY: the kernel puts the environment after the arguments and their null; dlsym finds glibc's function of this
    // name, or null, which is tested.
    unsafe {
        if !libc::getenv(c"HEAPTOLL_ORACLE".as_ptr()).is_null() {
            remove(argv.add(usize::try_from(argc).unwrap_or(0) + 1));
        }
        let start = libc::dlsym(libc::RTLD_NEXT, c"__libc_start_main".as_ptr());
        if start.is_null() {
            crate::stop::stop_because("no glibc comes after the layer");
        }
        let start = core::mem::transmute::<*mut c_void, Start>(start);
        if !follows {
            return start(main, argc, argv, init, fini, rtld_fini, stack_end);
        }
        *MAIN.0.get() = Some(main);
        start(main_of_program, argc, argv, init, fini, rtld_fini, stack_end)
    }
}

/// The program's `main`, while the sequence is followed.
struct ProgramMain(UnsafeCell<Option<Main>>);

// SAFETY: written by `__libc_start_main` and read by `main_of_program`, on the process's first thread.
unsafe impl Sync for ProgramMain {}

static MAIN: ProgramMain = ProgramMain(UnsafeCell::new(None));

unsafe extern "C" fn main_of_program(
    argc: c_int,
    argv: *mut *mut c_char,
    environment: *mut *mut c_char,
) -> c_int {
    // SAFETY: see `ProgramMain`; the arguments are those of the C start-up code.
    match unsafe { *MAIN.0.get() } {
        Some(main) => {
            crate::start::main_begins();
            // SAFETY: it is the program's, called as the start-up code would.
            unsafe { main(argc, argv, environment) }
        }
        None => crate::stop::stop_because("the C start-up code calls another main"),
    }
}

/// Removes entries from the array, in place.
///
/// # Safety
/// `from` is the process's environment, a null-terminated array of C strings, and there is one thread.
unsafe fn remove(from: *mut *mut c_char) {
    // SAFETY: by this function's contract; `to` never passes `from`.
    unsafe {
        let (mut from, mut to) = (from, from);
        while !(*from).is_null() {
            if !is_hidden(CStr::from_ptr(*from).to_bytes()) {
                *to = *from;
                to = to.add(1);
            }
            from = from.add(1);
        }
        *to = core::ptr::null_mut();
    }
}
