//! Memory for pages of a shared mapping, reserved before they are touched.
//!
//! A store to a page that its file has no memory for, because the file system is full or the file was cut off, is
//! answered by SIGBUS, which would end the program under measurement. A system call that has the kernel touch the page
//! answers with an error instead. Async-signal-safe; `errno` stays as it was.
#![no_std]

use core::ffi::c_int;

/// Bytes of a page.
const PAGE: usize = 4096;
/// Of `FUTEX_WAKE_OP`: add 0 to the word, and wake nobody.
const ADD_NOTHING: usize = 1 << 28;

/// Gives memory to whole pages of a mapping and leaves what they hold as it is.
///
/// # Errors
/// The error's number: EFAULT where the file has no memory for them, or ends earlier.
///
/// # Safety
/// They are mapped, for writing.
pub unsafe fn populate(at: *mut u8, bytes: usize) -> Result<(), c_int> {
    // SAFETY: the caller's promise.
    match unsafe {
        call(libc::SYS_madvise, [at as usize, bytes, libc::MADV_POPULATE_WRITE as usize, 0, 0, 0])
    } {
        // A kernel before 5.14.
        // SAFETY: the caller's promise.
        Err(libc::EINVAL) => unsafe { touch(at, bytes) },
        other => other,
    }
}

/// Has the kernel write to each page, by a futex's operation, which changes nothing.
///
/// # Safety
/// As of [`populate`].
unsafe fn touch(at: *mut u8, bytes: usize) -> Result<(), c_int> {
    let operation = (libc::FUTEX_WAKE_OP | libc::FUTEX_PRIVATE_FLAG) as usize;
    for page in (0..bytes).step_by(PAGE) {
        let word = at as usize + page;
        // SAFETY: the page's first word is mapped; nobody waits there by a private futex.
        unsafe { call(libc::SYS_futex, [word, operation, 0, 0, word, ADD_NOTHING]) }?;
    }
    Ok(())
}

/// A system call that is made again until it was not interrupted.
///
/// # Safety
/// As the call's own conditions.
unsafe fn call(number: i64, [a, b, c, d, e, f]: [usize; 6]) -> Result<(), c_int> {
    // SAFETY: errno's address is valid for the calling thread.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let kept = unsafe { *errno };
    loop {
        // SAFETY: the caller's promise; errno as above.
        let error = unsafe {
            let done = libc::syscall(number, a, b, c, d, e, f) >= 0;
            let error = if done { 0 } else { *errno };
            *errno = kept;
            error
        };
        match error {
            0 => return Ok(()),
            libc::EINTR | libc::EAGAIN => {}
            error => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::fs::File;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::MetadataExt;

    use super::*;

    /// A sparse file of four pages, and its mapping.
    fn mapped() -> (File, *mut u8) {
        let file = tempfile::tempfile().expect("a file");
        file.set_len(4 * PAGE as u64).expect("long");
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a fresh mapping of the whole file.
        let map = unsafe {
            libc::mmap(core::ptr::null_mut(), 4 * PAGE, access, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        assert_ne!(map, libc::MAP_FAILED);
        (file, map.cast())
    }

    #[test]
    fn pages_without_memory_are_refused_by_old_kernels_too() {
        for reserve in [populate, touch] {
            let (file, map) = mapped();
            // SAFETY: the first page is mapped, and the file has room for it.
            unsafe { map.add(8).write(7) };
            // SAFETY: the whole mapping.
            assert_eq!(unsafe { reserve(map, 4 * PAGE) }, Ok(()));
            // SAFETY: as above; the pages have memory now.
            unsafe { assert_eq!((map.add(8).read(), map.read(), map.add(3 * PAGE).read()), (7, 0, 0)) };
            file.set_len(2 * PAGE as u64).expect("cut");
            // SAFETY: errno's address is valid; the mapping is there, though the file ends earlier.
            unsafe {
                *libc::__errno_location() = 99;
                assert_eq!(reserve(map, 4 * PAGE), Err(libc::EFAULT));
                assert_eq!(*libc::__errno_location(), 99);
                assert_eq!(reserve(map, 2 * PAGE), Ok(()));
                libc::munmap(map.cast(), 4 * PAGE);
            }
            assert!(file.metadata().expect("known").blocks() <= 16);
        }
    }
}
