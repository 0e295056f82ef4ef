//! Says, when heaptoll's preflight asks, which object a layer forwards to.
//!
//! What a lookup from outside finds behind a layer is what the layer would be bound to; what it is bound to it knows
//! alone. With `HEAPTOLL_PREFLIGHT_REPORT` in the environment each layer appends one line to that file when it has
//! found its next family, tab-separated:
//!
//! ```text
//! behind  1  PID  MONOTONIC_NS  LAYER  OBJECT
//! ```

use core::ffi::{CStr, c_void};

use heaptoll_statspage::shared;

/// Longest line; paths that do not fit are left out whole, and the preflight misses them.
const MOST: usize = 2 * 4096 + 64;

struct Line {
    bytes: [u8; MOST],
    length: usize,
    whole: bool,
}

impl Line {
    fn put(&mut self, bytes: &[u8]) {
        let Some(place) = self.bytes.get_mut(self.length..self.length + bytes.len()) else {
            self.whole = false;
            return;
        };
        place.copy_from_slice(bytes);
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

/// Tells of this layer that its `malloc` goes on to the function at `next`; nothing when nobody asked.
pub fn tell(next: *const c_void) {
    // SAFETY: getenv takes a C string and gives one or null, which is used before anybody else runs on this thread; an
    // all-zero Dl_info and timespec are valid places; the names in a Dl_info are the loader's, which stay as long as
    // their objects, and neither this one nor the next is ever unloaded.
    unsafe {
        let file = libc::getenv(c"HEAPTOLL_PREFLIGHT_REPORT".as_ptr());
        if file.is_null() {
            return;
        }
        let mut own: libc::Dl_info = core::mem::zeroed();
        let mut behind: libc::Dl_info = core::mem::zeroed();
        let mut time: libc::timespec = core::mem::zeroed();
        let here: fn(*const c_void) = tell;
        let found =
            libc::dladdr(here as *const c_void, &mut own) != 0 && libc::dladdr(next, &mut behind) != 0;
        if !found || own.dli_fname.is_null() || behind.dli_fname.is_null() {
            return;
        }
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time);
        let mut line = Line { bytes: [0; MOST], length: 0, whole: true };
        line.put(b"behind\t1");
        line.number(libc::getpid() as u64);
        line.number(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64);
        line.path(CStr::from_ptr(own.dli_fname));
        line.path(CStr::from_ptr(behind.dli_fname));
        line.put(b"\n");
        if line.whole {
            append(CStr::from_ptr(file), &line.bytes[..line.length]);
        }
    }
}

fn append(path: &CStr, bytes: &[u8]) {
    // SAFETY: errno's address is valid for the calling thread; the bytes are readable; one write on O_APPEND is not torn
    // apart by other processes' writes; the descriptor is closed once.
    unsafe {
        let errno = *libc::__errno_location();
        if let Some(file) = shared::open(path, libc::O_WRONLY | libc::O_APPEND) {
            libc::write(file, bytes.as_ptr().cast(), bytes.len());
            libc::close(file);
        }
        *libc::__errno_location() = errno;
    }
}
