//! Removes from the environment what was put there to measure, before the program's `main`: programs copy their
//! environment, and what they allocate for it would differ from run to run.

use core::ffi::{CStr, c_char};

/// What shells keep for themselves, and set differently for each command.
const OF_SHELLS: [&[u8]; 3] = [b"_", b"OLDPWD", b"SHLVL"];

fn is_hidden(entry: &[u8], hidden: &[u8]) -> bool {
    let name = entry.split(|&byte| byte == b'=').next().unwrap_or(entry);
    name.starts_with(b"HEAPTOLL_")
        || name.starts_with(b"VALGRIND_")
        || name == b"LD_PRELOAD"
        || OF_SHELLS.contains(&name)
        || hidden.split(|&byte| byte == b'+').any(|other| !other.is_empty() && other == name)
}

/// Removes heaptoll's own entries, Valgrind's, shells', and those of `hidden`, names separated by `+`, from the array, in place.
///
/// # Safety
/// `from` is the process's environment, a null-terminated array of C strings, and there is one thread.
pub unsafe fn remove(from: *mut *mut c_char, hidden: &[u8]) {
    // SAFETY: by this function's contract; `to` never passes `from`.
    unsafe {
        let (mut from, mut to) = (from, from);
        while !(*from).is_null() {
            if !is_hidden(CStr::from_ptr(*from).to_bytes(), hidden) {
                *to = *from;
                to = to.add(1);
            }
            from = from.add(1);
        }
        *to = core::ptr::null_mut();
    }
}
