//! Descriptors that stay open from one collection to the next: that of the kernel's record of writes, and the log's.
//!
//! A program may close what it does not know, and have a file of its own under the number. So descriptors lie high, where
//! such programs rarely reach them, and each is verified before its use, by device and inode.
//!
//! Files of `/proc` are not held, although to open one costs several times what its use does: a directory is a way out of
//! `chroot`, an open file keeps `/proc` mounted, and a child by `clone` may have its parent's number in another namespace.

use core::ffi::c_int;
use core::mem::ManuallyDrop;

use crate::kernel::{Error, File};

/// Where a descriptor is put, if the limit on open files allows.
pub const HIGH: [c_int; 3] = [100, 50, 10];

/// A descriptor that is verified before each use. Never closed by a drop: the number may be the program's by then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    descriptor: usize,
    /// Device and inode.
    identity: (u64, u64),
}

impl Held {
    /// Holds a file that was just opened, under a high number.
    ///
    /// # Errors
    /// It has no status.
    pub fn new(file: File) -> Result<Held, Error> {
        let file = HIGH.into_iter().find_map(|least| file.duplicate(least).ok()).unwrap_or(file);
        let identity = file.status().map(|status| (status.st_dev, status.st_ino))?;
        Ok(Held { descriptor: file.into_descriptor(), identity })
    }

    /// The number.
    pub fn number(&self) -> c_int {
        self.descriptor as c_int
    }

    /// The file under the number, to be closed by nobody.
    pub fn file(&self) -> ManuallyDrop<File> {
        ManuallyDrop::new(File::of(self.descriptor))
    }

    /// The file's status, if the number is still its own.
    pub fn verified(&self) -> Option<libc::stat> {
        self.file().status().ok().filter(|status| (status.st_dev, status.st_ino) == self.identity)
    }

    /// Closes it, if the number is still its own.
    pub fn close(self) {
        if self.verified().is_some() {
            drop(File::of(self.descriptor));
        }
    }
}
