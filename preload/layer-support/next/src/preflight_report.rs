//! Reports, if heaptoll's preflight requests it, to which object a layer forwards.
//!
//! A lookup from outside shows to which object a layer would be bound; only the layer itself knows to which one it is
//! bound. With `HEAPTOLL_PREFLIGHT_REPORT` in the environment each layer appends one line to that file when it has
//! found its next family, tab-separated:
//!
//! ```text
//! behind  1  PID  MONOTONIC_NS  LAYER  OBJECT
//! ```

use core::ffi::{CStr, c_void};

use heaptoll_stats_page::shared;

/// Maximum length of a line; one with longer paths is not written, and the preflight finds it missing.
const MOST: usize = 2 * 4096 + 64;

struct ReportLine {
    bytes: [u8; MOST],
    length: usize,
    complete: bool,
}

impl ReportLine {
    fn put(&mut self, bytes: &[u8]) {
        let Some(free) = self.bytes.get_mut(self.length..self.length + bytes.len()) else {
            self.complete = false;
            return;
        };
        free.copy_from_slice(bytes);
        self.length += bytes.len();
    }

    fn number(&mut self, mut value: u64) {
        let mut digits = [0; 20];
        let mut at = digits.len();
        loop {
            at -= 1;
            digits[at] = b'0' + (value % 10) as u8;
            value /= 10;
            if value == 0 {
                break;
            }
        }
        self.put(b"\t");
        self.put(&digits[at..]);
    }

    fn path(&mut self, name: &CStr) {
        self.put(b"\t");
        for &byte in name.to_bytes() {
            self.put(&[if byte < 0x20 { b'?' } else { byte }]);
        }
    }
}

/// Reports that this layer's `malloc` forwards to the function at `next`, if a report is requested.
pub fn report(next: *const c_void) {
    let Some(file) = heaptoll_process::environment::variable(c"HEAPTOLL_PREFLIGHT_REPORT") else { return };
    // SAFETY: dladdr and clock_gettime write to local variables, for which all zeroes are valid; the
    // names in a Dl_info are the loader's, which live as long as their objects, and neither this one nor the next is
    // ever unloaded.
    unsafe {
        let mut own: libc::Dl_info = core::mem::zeroed();
        let mut next_object: libc::Dl_info = core::mem::zeroed();
        let mut time: libc::timespec = core::mem::zeroed();
        let here: fn(*const c_void) = report;
        let found =
            libc::dladdr(here as *const c_void, &mut own) != 0 && libc::dladdr(next, &mut next_object) != 0;
        if !found || own.dli_fname.is_null() || next_object.dli_fname.is_null() {
            return;
        }
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time);
        let mut line = ReportLine { bytes: [0; MOST], length: 0, complete: true };
        line.put(b"behind\t1");
        line.number(libc::getpid() as u64);
        line.number(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64);
        line.path(CStr::from_ptr(own.dli_fname));
        line.path(CStr::from_ptr(next_object.dli_fname));
        line.put(b"\n");
        if line.complete {
            shared::append(file, &line.bytes[..line.length]);
        }
    }
}
