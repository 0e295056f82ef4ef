//! The ends without handlers of `exit`.

use core::ffi::{c_int, c_void};
use core::mem::transmute;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use super::hook::{Ending, begins};
use crate::family;

type Exit = unsafe extern "C" fn(c_int) -> !;

static QUICK_EXIT: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
static EXIT_NOW: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// Looks up the next functions, since a lookup may allocate, and a child of vfork calls `_exit`.
pub fn find() {
    QUICK_EXIT.store(family::symbol(c"quick_exit").unwrap_or(ptr::null_mut()), Ordering::Release);
    EXIT_NOW.store(family::symbol(c"_exit").unwrap_or(ptr::null_mut()), Ordering::Release);
}

/// `quick_exit`: only handlers of `at_quick_exit` run.
pub fn quick_exit(status: c_int) -> ! {
    begins(Ending::Handlers);
    leave(&QUICK_EXIT, status)
}

/// `_exit` and `_Exit`.
pub fn _exit(status: c_int) -> ! {
    begins(Ending::Immediate);
    leave(&EXIT_NOW, status)
}

fn leave(next: &AtomicPtr<c_void>, status: c_int) -> ! {
    if next.load(Ordering::Acquire).is_null() {
        // The layer's constructor has not run.
        find();
    }
    // SAFETY: null, or the function that was looked up by the name of the caller, of this type.
    if let Some(next) = unsafe { transmute::<*mut c_void, Option<Exit>>(next.load(Ordering::Acquire)) } {
        // SAFETY: it takes any status.
        unsafe { next(status) }
    }
    loop {
        // SAFETY: exit_group takes no pointers and does not return.
        unsafe { libc::syscall(libc::SYS_exit_group, status) };
    }
}
