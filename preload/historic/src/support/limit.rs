//! A limit of the heap's size, an option that no collector of the papers had: so the least heap that a program can do
//! with can be found.

use core::ffi::CStr;

use heaptoll_runtime::{Message, PAGE};

/// Pages of the least heap.
const LEAST: usize = 16;

/// The value of a variable, bytes, as whole pages; `usize::MAX` without it. Ends the process where it is no size. Called
/// at start, when no thread changes the environment.
pub fn limit_from(variable: &CStr) -> usize {
    let Some(value) = heaptoll_process::environment::variable(variable) else { return usize::MAX };
    if let Some(bytes) = value.to_str().ok().and_then(read) {
        return bytes;
    }
    let name = variable.to_str().unwrap_or_default();
    let line = Message::new().text(name);
    line.text(" is not a heap size: give bytes, 65536 or more, as a plain number").write();
    // SAFETY: `_exit` takes no pointers and does not return.
    unsafe { libc::_exit(2) }
}

/// Bytes as whole pages.
fn read(text: &str) -> Option<usize> {
    let bytes: usize = text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())??;
    (bytes >= LEAST * PAGE).then_some(bytes / PAGE * PAGE)
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
