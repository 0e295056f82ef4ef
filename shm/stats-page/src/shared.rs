//! Opens a file that the tool shares with the processes of a run.
//!
//! Such a file belongs to the user that runs heaptoll, mode 0600. A process of root may change to another user, and the
//! programs that it then executes can no longer open the file: for them the tool puts a file of the same sort next to
//! it, named `PATH.UID`, which belongs to that user. So no user can write to a file that another's processes map, or
//! forge their figures.

use core::ffi::{CStr, c_int};

/// Maximum length of the path of a file for another user, with its NUL. Stacks may be small.
pub const MOST: usize = 1024;

/// Opens the file at `path` for this process, `access` being an access mode and O_APPEND or not; `None` when this user
/// may open neither that nor one of its own.
///
/// Never waits: a FIFO is no such file. Changes `errno`.
pub fn open(path: &CStr, access: c_int) -> Option<c_int> {
    let how = access | libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOCTTY;
    // SAFETY: open reads `path` and `own`, C strings; `__errno_location` returns the address of the calling thread's
    // errno; geteuid takes no pointers and cannot fail.
    let file = unsafe {
        let file = libc::open(path.as_ptr(), how);
        if file < 0 && *libc::__errno_location() == libc::EACCES {
            let mut bytes = [0u8; MOST];
            let own = of_user(path, libc::geteuid(), &mut bytes)?;
            libc::open(own.as_ptr(), how)
        } else {
            file
        }
    };
    (file >= 0).then_some(file)
}

/// Appends to the file at `path` for this process, if it may. `errno` stays.
pub fn append(path: &CStr, bytes: &[u8]) {
    // SAFETY: `__errno_location` returns the address of the calling thread's errno; write reads `bytes` within its
    // length; the descriptor is closed once. (One write on O_APPEND is not interleaved with other processes' writes.)
    unsafe {
        let errno = *libc::__errno_location();
        if let Some(file) = open(path, libc::O_WRONLY | libc::O_APPEND) {
            libc::write(file, bytes.as_ptr().cast(), bytes.len());
            libc::close(file);
        }
        *libc::__errno_location() = errno;
    }
}

/// `PATH.UID`, in `bytes`; `None` when it does not fit.
pub fn of_user<'a>(path: &CStr, user: u32, bytes: &'a mut [u8]) -> Option<&'a CStr> {
    let path = path.to_bytes();
    let mut digits = [0u8; 10];
    let (mut at, mut rest) = (digits.len(), user);
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    let mut end = 0;
    for part in [path, b".", &digits[at..], b"\0"] {
        bytes.get_mut(end..end + part.len())?.copy_from_slice(part);
        end += part.len();
    }
    CStr::from_bytes_with_nul(bytes.get(..end)?).ok()
}
