//! The C library's functions that copy into a new block, where a manager may export its own: mimalloc does, and allocates
//! within them, so that no layer finds the call.

/// Exports `strdup` and `strndup` as the C library has them: those call `malloc` by its name, which is the layer's.
#[macro_export]
macro_rules! export_copies {
    () => {
        unsafe extern "C" {
            fn __strdup(text: *const core::ffi::c_char) -> *mut core::ffi::c_char;
            fn __strndup(text: *const core::ffi::c_char, most: usize) -> *mut core::ffi::c_char;
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn strdup(text: *const core::ffi::c_char) -> *mut core::ffi::c_char {
            // SAFETY: POSIX requires of the program's call what the C library's function requires.
            unsafe { __strdup(text) }
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn strndup(
            text: *const core::ffi::c_char,
            most: usize,
        ) -> *mut core::ffi::c_char {
            // SAFETY: POSIX requires of the program's call what the C library's function requires.
            unsafe { __strndup(text, most) }
        }
    };
}
