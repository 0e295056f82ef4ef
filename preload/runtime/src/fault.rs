//! The tests' faults: memory that the system is made to refuse.

use core::ffi::CStr;

use crate::Message;

/// The N of "every Nth request for memory fails", as `HEAPTOLL_FAIL_EVERY` sets it; 0: none. Ends the process where the
/// variable is no number. Called at start, when no thread changes the environment.
pub fn fail_every() -> u64 {
    // SAFETY: a valid C string; the callers run at process start, when no thread changes the environment.
    let variable = unsafe { libc::getenv(c"HEAPTOLL_FAIL_EVERY".as_ptr()) };
    if variable.is_null() {
        return 0;
    }
    // SAFETY: `getenv` returned a C string, as null was excluded above.
    match unsafe { CStr::from_ptr(variable) }.to_str().ok().and_then(|text| text.parse().ok()) {
        Some(every) => every,
        None => Message::new()
            .text("HEAPTOLL_FAIL_EVERY is not a number: every Nth request for memory fails (0: none)")
            .abort(),
    }
}
