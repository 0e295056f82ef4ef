//! The descriptor by which the kernel records writes: userfaultfd(2) with asynchronous write protection (Linux 6.7 and
//! later). The first write to a protected page lifts its protection, in the kernel and without a handler.

use core::ops::Range;

use crate::held::Held;
use crate::kernel::{self, Error, File};

/// Only faults of user code, which needs no rights; writes by the kernel are recorded all the same, since recording is no
/// fault that waits.
const USER_MODE_ONLY: usize = 1;
const API: u64 = 0xAA;
/// Asynchronous protection, of pages that hold nothing yet too.
const FEATURES: u64 = 1 << 13 | 1 << 15;
const MODE_PROTECT: u64 = 1 << 1;
/// `_IOWR(0xAA, 0x3F, struct uffdio_api)`, `_IOWR(0xAA, 0x00, struct uffdio_register)`,
/// `_IOR(0xAA, 0x01, struct uffdio_range)`, `_IOWR(0xAA, 0x06, struct uffdio_writeprotect)`.
const UFFDIO_API: u64 = 0xC018_AA3F;
const UFFDIO_REGISTER: u64 = 0xC020_AA00;
const UFFDIO_UNREGISTER: u64 = 0x8010_AA01;
const UFFDIO_WRITEPROTECT: u64 = 0xC018_AA06;

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
    assert!(UFFDIO_API >> 16 & 0x3fff == size_of::<Agreement>() as u64);
    assert!(UFFDIO_REGISTER >> 16 & 0x3fff == size_of::<Registration>() as u64);
    assert!(UFFDIO_UNREGISTER >> 16 & 0x3fff == size_of::<[u64; 2]>() as u64);
    assert!(UFFDIO_WRITEPROTECT >> 16 & 0x3fff == size_of::<Protection>() as u64);
};

/// The descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Userfault(pub Held);

impl Userfault {
    /// Opens a descriptor.
    ///
    /// # Errors
    /// The kernel has none (before 6.7), or does not allow it.
    pub fn open() -> Result<Userfault, Error> {
        let flags = USER_MODE_ONLY | libc::O_CLOEXEC as usize | libc::O_NONBLOCK as usize;
        // SAFETY: `userfaultfd` takes no pointers.
        let file = File::of(unsafe { kernel::call(libc::SYS_userfaultfd, [flags, 0, 0, 0, 0, 0]) }?);
        let mut agreement = Agreement { api: API, features: FEATURES, ioctls: 0 };
        // SAFETY: the request takes this structure.
        unsafe { file.control(UFFDIO_API, &mut agreement) }?;
        Held::new(file).map(Userfault)
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
        let file = self.0.file();
        // SAFETY: the requests take these structures; they change how writes are recorded, and no contents.
        unsafe {
            file.control(UFFDIO_REGISTER, &mut registration)?;
            file.control(UFFDIO_WRITEPROTECT, &mut protection)?;
        }
        Ok(())
    }

    /// Ends the records of writes to a range.
    ///
    /// # Errors
    /// The range is not all mapped.
    pub fn unregister(&self, range: &Range<usize>) -> Result<(), Error> {
        let mut memory = [range.start as u64, range.len() as u64];
        // SAFETY: the request takes start and length; it changes how writes are recorded, and no contents.
        unsafe { self.0.file().control(UFFDIO_UNREGISTER, &mut memory) }.map(drop)
    }
}
