//! The C library's functions that copy into a new block, where a manager may export its own: mimalloc does, and allocates
//! within them, so that no layer finds the call.

use core::ffi::{CStr, c_char};
use core::mem::transmute;
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::family::{next, object_of, symbol};

unsafe extern "C" {
    fn __strdup(text: *const c_char) -> *mut c_char;
    fn __strndup(text: *const c_char, most: usize) -> *mut c_char;
}

type Copy = unsafe extern "C" fn(*const c_char) -> *mut c_char;
type CopyWithin = unsafe extern "C" fn(*const c_char, usize) -> *mut c_char;

/// The program's `strdup`: a library's that wraps it, else the C library's.
pub fn strdup() -> Copy {
    static FOUND: AtomicUsize = AtomicUsize::new(0);
    // SAFETY: C defines the type of what has this name.
    unsafe { transmute::<usize, Copy>(of_no_manager(&FOUND, c"strdup", __strdup as *const () as usize)) }
}

/// The same for `strndup`.
pub fn strndup() -> CopyWithin {
    static FOUND: AtomicUsize = AtomicUsize::new(0);
    // SAFETY: C defines the type of what has this name.
    unsafe {
        transmute::<usize, CopyWithin>(of_no_manager(&FOUND, c"strndup", __strndup as *const () as usize))
    }
}

/// The next function of a name, unless it is of the object that `malloc` is of; then, and until that is known, the C
/// library's.
fn of_no_manager(found: &AtomicUsize, name: &CStr, of_libc: usize) -> usize {
    match found.load(Ordering::Relaxed) {
        0 => {
            let Some(family) = next() else { return of_libc };
            let manager = object_of(family.malloc as usize);
            let other = symbol(name).map(|at| at as usize).filter(|&at| object_of(at) != manager);
            let address = other.unwrap_or(of_libc);
            found.store(address, Ordering::Relaxed);
            address
        }
        address => address,
    }
}

/// Exports `strdup` and `strndup` as the program has them: they call `malloc` by its name, which is the layer's.
#[macro_export]
macro_rules! export_copies {
    () => {
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn strdup(text: *const core::ffi::c_char) -> *mut core::ffi::c_char {
            // SAFETY: POSIX requires of the program's call what the function requires.
            unsafe { $crate::copies::strdup()(text) }
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn strndup(
            text: *const core::ffi::c_char,
            most: usize,
        ) -> *mut core::ffi::c_char {
            // SAFETY: POSIX requires of the program's call what the function requires.
            unsafe { $crate::copies::strndup()(text, most) }
        }
    };
}
