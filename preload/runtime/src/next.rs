//! The next definition of a function that a preloaded object defines in front of the C library.

use core::ffi::{CStr, c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

// `dlsym`, and for layers `dladdr` and `dlerror`, are in a library of their own before glibc 2.34, and a program need
// not load it.
#[link(name = "dl")]
unsafe extern "C" {}

/// The next definition of a name, looked up once.
pub struct Next {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

impl Next {
    /// Not looked up yet.
    pub const fn new(name: &'static CStr) -> Next {
        Next { name, address: AtomicPtr::new(ptr::null_mut()) }
    }

    /// `None`: there is none, so that the program could not call it without this object either. The first call may
    /// allocate, and is not for handlers and children of vfork.
    pub fn get(&self) -> Option<*mut c_void> {
        let known = self.address.load(Ordering::Relaxed);
        if !known.is_null() {
            return Some(known);
        }
        // SAFETY: the name is a C string. (dlsym finds the calling object by its return address, which lies in it.)
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        self.address.store(found, Ordering::Relaxed);
        (!found.is_null()).then_some(found)
    }
}

/// What a call returns that the C library does not have: -1, and `ENOSYS`.
pub fn missing() -> c_int {
    // SAFETY: errno's address is valid for the calling thread.
    unsafe { *libc::__errno_location() = libc::ENOSYS };
    -1
}
