//! A limit of the heap's size, which neither version had: `BW_HEAP`, in bytes. So the least heap that a program can do
//! with can be found.

use core::ffi::CStr;

use heaptoll_runtime::Message;

use crate::header::CHUNK;

/// The variable.
const VARIABLE: &CStr = c"BW_HEAP";

/// The value of `BW_HEAP`, as whole chunks; `usize::MAX` without it. Ends the process where it is no size. Called at
/// start, when no thread changes the environment.
pub fn from_environment() -> usize {
    // SAFETY: a valid C string; this runs at process start, when no thread changes the environment.
    let variable = unsafe { libc::getenv(VARIABLE.as_ptr()) };
    if variable.is_null() {
        return usize::MAX;
    }
    // SAFETY: `getenv` returned a C string, as null was excluded above.
    if let Some(bytes) = unsafe { CStr::from_ptr(variable) }.to_str().ok().and_then(read) {
        return bytes;
    }
    Message::new().text("BW_HEAP is no size of a heap: give bytes, 65536 or more, as a plain number").write();
    // SAFETY: `_exit` takes no pointers and does not return.
    unsafe { libc::_exit(2) }
}

/// Bytes as whole chunks.
fn read(text: &str) -> Option<usize> {
    let bytes: usize = text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())??;
    (bytes >= 16 * CHUNK).then_some(bytes / CHUNK * CHUNK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_plain_number_of_bytes() {
        assert_eq!(read("65536"), Some(65536));
        assert_eq!(read("70000"), Some(69632));
        for wrong in ["", "65535", "1M", "+65536", "-1", "1e6", "99999999999999999999999"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
