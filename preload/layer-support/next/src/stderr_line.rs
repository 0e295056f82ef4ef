//! Lines on standard error, made without a heap.

use core::ffi::{CStr, c_void};
use core::fmt::{self, Write};

/// A line; what does not fit is cut off.
pub struct StderrLine {
    bytes: [u8; 2048],
    used: usize,
}

impl Default for StderrLine {
    fn default() -> StderrLine {
        StderrLine::new()
    }
}

impl StderrLine {
    /// Begins a line with heaptoll's name.
    pub fn new() -> StderrLine {
        let mut line = StderrLine { bytes: [0; 2048], used: 0 };
        line.put(b"heaptoll: ");
        line
    }

    /// Appends bytes.
    pub fn put(&mut self, bytes: &[u8]) {
        // One byte is left for the end.
        let kept = bytes.len().min(self.bytes.len() - 1 - self.used);
        self.bytes[self.used..self.used + kept].copy_from_slice(&bytes[..kept]);
        self.used += kept;
    }

    /// The line so far.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.used]
    }

    /// Writes it, in one piece. Keeps `errno`.
    pub fn write_out(mut self) {
        self.bytes[self.used] = b'\n';
        // SAFETY: errno's address is valid for the calling thread; the line is readable for its length.
        unsafe {
            let errno = *libc::__errno_location();
            libc::write(2, self.bytes.as_ptr().cast(), self.used + 1);
            *libc::__errno_location() = errno;
        }
    }

    /// Appends the code address that a call returns to: `object+0x12ab (function)`, the offset being that of the
    /// address in the file's own numbering, as `addr2line -e object` expects it.
    pub fn code_address(&mut self, address: usize) {
        // SAFETY: an all-zero Dl_info is valid for dladdr to write to, whose names are C strings of loaded objects.
        let (object, base, function) = unsafe {
            let mut info: libc::Dl_info = core::mem::zeroed();
            // The call itself, rather than what follows it, which may be another function.
            if libc::dladdr(address.wrapping_sub(1) as *const c_void, &mut info) == 0
                || info.dli_fname.is_null()
            {
                // A line that is full is cut off, so the result is ignored.
                let _ = write!(self, "{address:#x}");
                return;
            }
            let function = (!info.dli_sname.is_null()).then(|| CStr::from_ptr(info.dli_sname).to_bytes());
            (CStr::from_ptr(info.dli_fname).to_bytes(), info.dli_fbase as usize, function)
        };
        let name = object.rsplit(|&byte| byte == b'/').next().unwrap_or(object);
        self.put(name);
        // Objects that are not moved, non-PIE programs, are numbered by their addresses themselves.
        let offset = if base == NOT_MOVED { address } else { address.wrapping_sub(base) };
        let _ = write!(self, "+{:#x}", offset.wrapping_sub(1));
        if let Some(function) = function {
            self.put(b" (");
            self.put(function);
            self.put(b")");
        }
    }
}

/// Where x86-64 programs lie that are not moved.
const NOT_MOVED: usize = 0x40_0000;

impl Write for StderrLine {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.put(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_is_cut_off() {
        let mut line = StderrLine::new();
        for _ in 0..1000 {
            line.put(b"0123456789");
        }
        assert_eq!(line.as_bytes().len(), 2047);
        assert!(line.as_bytes().starts_with(b"heaptoll: 0123"));
    }

    #[test]
    fn a_place_is_an_object_and_an_offset_and_a_name_where_there_is_one() {
        let mut line = StderrLine::new();
        line.code_address(libc::getpid as *const () as usize + 5);
        let text = std::string::String::from_utf8(line.as_bytes().to_vec()).unwrap_or_default();
        assert!(text.starts_with("heaptoll: libc.so.6+0x") && text.contains("getpid)"), "{text}");
        let mut line = StderrLine::new();
        line.code_address(0x10);
        assert_eq!(line.as_bytes(), b"heaptoll: 0x10");
    }
}
