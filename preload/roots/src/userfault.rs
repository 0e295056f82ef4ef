//! The descriptor by which the kernel records writes: userfaultfd(2) with asynchronous write protection (Linux 6.7 and
//! later). The first write to a protected page lifts its protection, in the kernel and without a handler.
//!
//! The descriptor lies high, where programs that close what they do not know rarely reach it, and is verified before each
//! use: a program may have closed it and have a file of its own under the number.

use core::ffi::c_int;
use core::ops::Range;

use crate::kernel::{self, Error};

/// Only faults of user code, which needs no rights; writes by the kernel are recorded all the same, since recording is no
/// fault that waits.
const USER_MODE_ONLY: usize = 1;
const API: u64 = 0xAA;
/// Asynchronous protection, of pages that hold nothing yet too.
const FEATURES: u64 = 1 << 13 | 1 << 15;
const MODE_PROTECT: u64 = 1 << 1;
/// `_IOWR(0xAA, 0x3F, struct uffdio_api)`, `_IOWR(0xAA, 0x00, struct uffdio_register)`,
/// `_IOWR(0xAA, 0x06, struct uffdio_writeprotect)`.
const UFFDIO_API: usize = 0xC018_AA3F;
const UFFDIO_REGISTER: usize = 0xC020_AA00;
const UFFDIO_WRITEPROTECT: usize = 0xC018_AA06;

/// Where the descriptor is put, if the limit on open files allows.
const HIGH: [c_int; 3] = [100, 50, 10];

/// The kernel's `struct uffdio_api`.
#[repr(C)]
struct Agreement {
    api: u64,
    features: u64,
    ioctls: u64,
}

/// The kernel's `struct uffdio_register`.
#[repr(C)]
struct Registration {
    start: u64,
    length: u64,
    mode: u64,
    ioctls: u64,
}

/// The kernel's `struct uffdio_writeprotect`.
#[repr(C)]
struct Protection {
    start: u64,
    length: u64,
    mode: u64,
}

// The sizes are part of the requests' numbers.
const _: () = {
    assert!(UFFDIO_API >> 16 & 0x3fff == size_of::<Agreement>());
    assert!(UFFDIO_REGISTER >> 16 & 0x3fff == size_of::<Registration>());
    assert!(UFFDIO_WRITEPROTECT >> 16 & 0x3fff == size_of::<Protection>());
};

/// A descriptor that is verified before each use. Never closed by a drop: the number may be the program's by then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Userfault {
    descriptor: usize,
    device: u64,
    inode: u64,
}

/// Device and inode of an open file.
fn identity(descriptor: usize) -> Result<(u64, u64), Error> {
    let mut status = core::mem::MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: the kernel writes to `status` alone, and fills it if the call succeeds.
    unsafe {
        kernel::call(libc::SYS_fstat, [descriptor, status.as_mut_ptr() as usize, 0, 0, 0, 0])?;
        let status = status.assume_init();
        Ok((status.st_dev, status.st_ino))
    }
}

fn close(descriptor: usize) {
    // SAFETY: the callers have opened or verified the descriptor, and use it no more.
    let _ = unsafe { kernel::call(libc::SYS_close, [descriptor, 0, 0, 0, 0, 0]) };
}

impl Userfault {
    /// Opens a descriptor.
    ///
    /// # Errors
    /// The kernel has none (before 6.7), or does not allow it.
    pub fn open() -> Result<Userfault, Error> {
        let flags = USER_MODE_ONLY | libc::O_CLOEXEC as usize | libc::O_NONBLOCK as usize;
        // SAFETY: `userfaultfd` takes no pointers.
        let low = unsafe { kernel::call(libc::SYS_userfaultfd, [flags, 0, 0, 0, 0, 0]) }?;
        let mut agreement = Agreement { api: API, features: FEATURES, ioctls: 0 };
        // SAFETY: the request takes this structure.
        let agreed =
            unsafe { kernel::call(libc::SYS_ioctl, [low, UFFDIO_API, &raw mut agreement as usize, 0, 0, 0]) };
        if let Err(error) = agreed {
            close(low);
            return Err(error);
        }
        let copy = HIGH.into_iter().find_map(|least| {
            let command = libc::F_DUPFD_CLOEXEC as usize;
            // SAFETY: `fcntl` with this command takes no pointers.
            unsafe { kernel::call(libc::SYS_fcntl, [low, command, least as usize, 0, 0, 0]) }.ok()
        });
        let descriptor = copy.unwrap_or(low);
        if descriptor != low {
            close(low);
        }
        let (device, inode) = identity(descriptor).inspect_err(|_| close(descriptor))?;
        Ok(Userfault { descriptor, device, inode })
    }

    /// Whether the number is still this descriptor's.
    pub fn is_ours(&self) -> bool {
        identity(self.descriptor) == Ok((self.device, self.inode))
    }

    /// Closes it, if the number is still its own.
    pub fn close(self) {
        if self.is_ours() {
            close(self.descriptor);
        }
    }

    /// Makes the kernel record writes to a range of whole pages, all of which count as written now. What was registered
    /// before stays so; a page that was moved there with its protection loses it.
    ///
    /// # Errors
    /// The range is not all mapped, another descriptor records its faults, or the kernel has no memory.
    pub fn register(&self, range: &Range<usize>) -> Result<(), Error> {
        let (start, length) = (range.start as u64, range.len() as u64);
        let mut registration = Registration { start, length, mode: MODE_PROTECT, ioctls: 0 };
        let mut protection = Protection { start, length, mode: 0 };
        // SAFETY: the requests take these structures; they change how writes are recorded, and no contents.
        unsafe {
            let place = &raw mut registration as usize;
            kernel::call(libc::SYS_ioctl, [self.descriptor, UFFDIO_REGISTER, place, 0, 0, 0])?;
            let place = &raw mut protection as usize;
            kernel::call(libc::SYS_ioctl, [self.descriptor, UFFDIO_WRITEPROTECT, place, 0, 0, 0])?;
        }
        Ok(())
    }
}
