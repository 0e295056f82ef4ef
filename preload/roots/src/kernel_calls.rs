//! The calls that hand addresses of a program to the kernel, as a preloaded object stands in for them: each is noted
//! and passed on to the next definition of its name. And the exec family, which stops wait for ([`crate::execs`]).

use core::ffi::{c_int, c_void};
use core::mem::transmute;

use heaptoll_runtime::{Next, execs, missing};

use crate::{kernel, kernel_held, queued_values};

/// Exports the calls, and the exec family. An object does so once; its collector then looks for sets of epoll and for timers only after one was
/// made.
#[macro_export]
macro_rules! interpose_kernel_calls {
    () => {
        $crate::interpose_execs!($crate::execs::WithoutStops);
        const _: () = {
            use ::core::ffi::{c_int, c_void};
            use $crate::kernel_calls;

            #[used]
            #[unsafe(link_section = ".init_array")]
            static AT_LOAD: extern "C" fn() = kernel_calls::begin;

            #[unsafe(no_mangle)]
            extern "C" fn epoll_create(size: c_int) -> c_int {
                kernel_calls::epoll_create(size)
            }

            #[unsafe(no_mangle)]
            extern "C" fn epoll_create1(flags: c_int) -> c_int {
                kernel_calls::epoll_create1(flags)
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn timer_create(clock: c_int, event: *mut c_void, timer: *mut c_void) -> c_int {
                // SAFETY: the arguments are those of the caller of `timer_create`.
                unsafe { kernel_calls::timer_create(clock, event, timer) }
            }

            #[unsafe(no_mangle)]
            extern "C" fn sigqueue(process: c_int, signal: c_int, value: usize) -> c_int {
                kernel_calls::sigqueue(process, signal, value)
            }

            #[unsafe(no_mangle)]
            extern "C" fn pthread_sigqueue(thread: usize, signal: c_int, value: usize) -> c_int {
                kernel_calls::pthread_sigqueue(thread, signal, value)
            }
        };
    };
}

static EPOLL_CREATE: Next = Next::new(c"epoll_create");
static EPOLL_CREATE1: Next = Next::new(c"epoll_create1");
static TIMER_CREATE: Next = Next::new(c"timer_create");
static SIGQUEUE: Next = Next::new(c"sigqueue");
static PTHREAD_SIGQUEUE: Next = Next::new(c"pthread_sigqueue");

/// The object is loaded. Handlers may call `sigqueue` and exec, and dlsym is not for them.
pub extern "C" fn begin() {
    let _ = SIGQUEUE.get();
    execs::prepare();
    kernel_held::are_interposed();
}

/// `epoll_create`.
pub fn epoll_create(size: c_int) -> c_int {
    make_set(&EPOLL_CREATE, size)
}

/// `epoll_create1`.
pub fn epoll_create1(flags: c_int) -> c_int {
    make_set(&EPOLL_CREATE1, flags)
}

fn make_set(next: &Next, argument: c_int) -> c_int {
    let Some(next) = next.get() else { return missing() };
    // SAFETY: both functions have this type.
    let next = unsafe { transmute::<*mut c_void, extern "C" fn(c_int) -> c_int>(next) };
    kernel_held::makes_set(|| next(argument))
}

/// `timer_create`.
///
/// # Safety
/// As the C library's.
pub unsafe fn timer_create(clock: c_int, event: *mut c_void, timer: *mut c_void) -> c_int {
    type Function = unsafe extern "C" fn(c_int, *mut c_void, *mut c_void) -> c_int;
    let Some(next) = TIMER_CREATE.get() else { return missing() };
    // SAFETY: the function has this type.
    let next = unsafe { transmute::<*mut c_void, Function>(next) };
    // SAFETY: the arguments are those of the caller.
    kernel_held::makes_timer(|| unsafe { next(clock, event, timer) })
}

/// `sigqueue`.
pub fn sigqueue(process: c_int, signal: c_int, value: usize) -> c_int {
    let Some(next) = SIGQUEUE.get() else { return missing() };
    // SAFETY: the function has this type: a union of a pointer and a number is passed as a word.
    let next = unsafe { transmute::<*mut c_void, extern "C" fn(c_int, c_int, usize) -> c_int>(next) };
    let call = || next(process, signal, value);
    if process == kernel::process() { queued_values::record(signal, value, call) } else { call() }
}

/// `pthread_sigqueue`.
pub fn pthread_sigqueue(thread: usize, signal: c_int, value: usize) -> c_int {
    let Some(next) = PTHREAD_SIGQUEUE.get() else { return libc::ENOSYS };
    // SAFETY: the function has this type: a union of a pointer and a number is passed as a word.
    let next = unsafe { transmute::<*mut c_void, extern "C" fn(usize, c_int, usize) -> c_int>(next) };
    queued_values::record(signal, value, || next(thread, signal, value))
}
