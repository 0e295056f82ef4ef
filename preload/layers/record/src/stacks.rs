//! The program's `dlclose`: what call stacks know of unloaded code must be forgotten, since other code may come to lie
//! at the same addresses.
//!
//! What the C library unloads of its own accord (modules of `iconv` and of the name service) does not pass here. A stack
//! through code that was loaded over theirs can end early.

use core::ffi::{c_int, c_void};
use core::mem::transmute;
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::STACKS;

/// The dynamic linker's head of an object, which a handle points to: `struct link_map` of <link.h>.
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
        // SAFETY: the name is a string.
        next = unsafe { libc::dlsym(libc::RTLD_NEXT, c"dlclose".as_ptr()) };
        NEXT.store(next, Ordering::Release);
    }
    // SAFETY: null, or a function of this name, which has this type.
    unsafe { transmute::<*mut c_void, Option<Close>>(next) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlclose(handle: *mut c_void) -> c_int {
    let Some(next) = next() else { return -1 };
    // Not null, nor one of the small numbers that stand for no object.
    let object = (handle as usize > 4096 && (handle as isize) > 0)
        // SAFETY: a handle that the program got from dlopen, as the C library takes it to be without a test.
        .then(|| STACKS.closing(unsafe { (*handle.cast::<LinkMap>()).dynamic }))
        .flatten();
    // SAFETY: the caller's promise is the same.
    let answer = unsafe { next(handle) };
    if let Some(object) = object {
        STACKS.closed(object);
    }
    answer
}
