//! The program's entry: the layer starts after all libraries, and the sequence begins with `main`.

use core::cell::UnsafeCell;
use core::ffi::{c_char, c_int, c_void};

use crate::state::State;
use crate::stop::stop_because;
use crate::{environment, start};

type Main = unsafe extern "C" fn(c_int, *mut *mut c_char, *mut *mut c_char) -> c_int;
type Hook = Option<unsafe extern "C" fn()>;
type StartMain = unsafe extern "C" fn(Main, c_int, *mut *mut c_char, Hook, Hook, Hook, *mut c_void) -> c_int;

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
    let started = start::start();
    // SAFETY: the kernel puts the environment after the arguments and their null; dlsym finds glibc's function of this
    // name, or null, which is tested.
    unsafe {
        if let Some(started) = &started {
            environment::remove(argv.add(usize::try_from(argc).unwrap_or(0) + 1), started.hidden);
        }
        let next = libc::dlsym(libc::RTLD_NEXT, c"__libc_start_main".as_ptr());
        if next.is_null() {
            stop_because("no glibc comes after the layer");
        }
        let next = core::mem::transmute::<*mut c_void, StartMain>(next);
        let at_main = started.map_or(State::Forward, |started| started.at_main);
        if at_main == State::Forward {
            start::nothing_to_follow();
            return next(main, argc, argv, init, fini, rtld_fini, stack_end);
        }
        *MAIN.0.get() = Some((main, at_main));
        next(main_of_program, argc, argv, init, fini, rtld_fini, stack_end)
    }
}

/// The program's `main`, and what calls do from then on.
struct ProgramMain(UnsafeCell<Option<(Main, State)>>);

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
        Some((main, state)) => {
            start::main_begins(state);
            // SAFETY: it is the program's, called as the start-up code would.
            unsafe { main(argc, argv, environment) }
        }
        None => stop_because("the C start-up code calls another main"),
    }
}
