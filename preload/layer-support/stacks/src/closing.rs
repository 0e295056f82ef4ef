//! The program's `dlclose`, as a layer with call stacks exports it: cached unwind data of unloaded code must be discarded, since other code may be loaded at
//! the same addresses.
//!
//! Objects that the C library unloads itself (modules of `iconv` and of the name service) do not pass here. A stack
//! through code that was loaded over theirs can end early.

use core::ffi::{c_int, c_void};
use core::mem::transmute;
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::CallStacks;

/// The beginning of the dynamic linker's `struct link_map` of <link.h>, to which a handle points.
#[repr(C)]
struct LinkMap {
    difference: usize,
    name: *const core::ffi::c_char,
    dynamic: usize,
}

type Close = unsafe extern "C" fn(*mut c_void) -> c_int;

static NEXT: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

fn next() -> Option<Close> {
    let mut next = NEXT.load(Ordering::Acquire);
    if next.is_null() {
        // SAFETY: dlsym reads a C literal.
        next = unsafe { libc::dlsym(libc::RTLD_NEXT, c"dlclose".as_ptr()) };
        NEXT.store(next, Ordering::Release);
    }
    // SAFETY: null, or the function that dlsym found by the name of `dlclose`, which has this type.
    unsafe { transmute::<*mut c_void, Option<Close>>(next) }
}

/// Unloads an object by the C library's `dlclose`, and has the call stacks forget its code.
///
/// # Safety
/// As for `dlclose`: `handle` was returned by `dlopen`.
pub unsafe fn dlclose(stacks: &CallStacks, handle: *mut c_void) -> c_int {
    let Some(next) = next() else { return -1 };
    // Neither null nor one of the small numbers that stand for no object.
    let object = (handle as usize > 4096 && (handle as isize) > 0)
        // SAFETY: dlclose requires a handle from dlopen, which points to a link_map; the C library does not check it
        // either.
        .then(|| stacks.closing(unsafe { (*handle.cast::<LinkMap>()).dynamic }))
        .flatten();
    // SAFETY: the program's handle is valid for the C library's `dlclose`, whose contract is that of this function.
    let answer = unsafe { next(handle) };
    if let Some(object) = object {
        stacks.closed(object);
    }
    answer
}

/// Exports `dlclose`, for the call stacks in this static.
#[macro_export]
macro_rules! export_dlclose {
    ($stacks:ident) => {
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn dlclose(handle: *mut core::ffi::c_void) -> core::ffi::c_int {
            // SAFETY: POSIX requires of the program's call what `closing::dlclose` requires.
            unsafe { $crate::closing::dlclose(&$stacks, handle) }
        }
    };
}
