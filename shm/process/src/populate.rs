//! Memory for pages of a shared mapping, reserved before they are touched.
//!
//! A store to a page for which its file has no memory, because the file system is full or the file was truncated,
//! raises SIGBUS, which would end the program under measurement. A system call by which the kernel touches the page
//! returns an error instead. Async-signal-safe; preserves `errno`.

use core::ffi::c_int;

use crate::system_call;

/// Bytes of a page.
const PAGE: usize = 4096;
/// Interruptions in a row after which a call is refused.
const TRIES: usize = 1000;
/// Operation of `FUTEX_WAKE_OP`: adds 0 to the word and wakes no thread.
const ADD_NOTHING: usize = 1 << 28;

/// Reserves memory for whole pages of a mapping and leaves their contents unchanged.
///
/// # Errors
/// The number of the system's error: EFAULT if the file has no memory for them, or ends earlier.
///
/// # Safety
/// `at` is aligned to a page, and `bytes` bytes from it are mapped for writing.
pub unsafe fn populate(at: *mut u8, bytes: usize) -> Result<(), c_int> {
    // SAFETY: by this function's contract the range is mapped, and the advice does not change its contents.
    match unsafe {
        call(libc::SYS_madvise, [at as usize, bytes, libc::MADV_POPULATE_WRITE as usize, 0, 0, 0])
    } {
        done @ (Ok(()) | Err(libc::EFAULT | libc::ENOMEM)) => done,
        // A kernel before 5.14, or a filter of the program's that refuses the call: no sign that memory is missing.
        // SAFETY: the contract of `touch` is that of this function.
        Err(_) => unsafe { touch(at, bytes) },
    }
}

/// Makes the kernel write to each page, by a futex operation that changes nothing.
///
/// # Safety
/// `at` is aligned to a page, and `bytes` bytes from it are mapped for writing.
unsafe fn touch(at: *mut u8, bytes: usize) -> Result<(), c_int> {
    let operation = (libc::FUTEX_WAKE_OP | libc::FUTEX_PRIVATE_FLAG) as usize;
    for page in (0..bytes).step_by(PAGE) {
        let word = at as usize + page;
        // SAFETY: by this function's contract the page's first word is mapped; adding 0 keeps it, and no thread waits
        // on it by a private futex.
        unsafe { call(libc::SYS_futex, [word, operation, 0, 0, word, ADD_NOTHING]) }?;
    }
    Ok(())
}

/// Makes a system call, again if it was interrupted: a filter of the program's that answers so each time refuses it.
///
/// # Safety
/// The arguments meet the requirements of the system call `number`.
unsafe fn call(number: i64, arguments: [usize; 6]) -> Result<(), c_int> {
    const EINTR: c_int = -libc::EINTR;
    const EAGAIN: c_int = -libc::EAGAIN;
    for _ in 0..TRIES {
        // SAFETY: by this function's contract the arguments are valid.
        match unsafe { system_call(number, arguments) } as c_int {
            EINTR | EAGAIN => {}
            error if error < 0 => return Err(-error),
            _ => return Ok(()),
        }
    }
    Err(libc::EAGAIN)
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
        // SAFETY: with a null address mmap maps memory that nothing uses.
        let map = unsafe {
            libc::mmap(core::ptr::null_mut(), 4 * PAGE, access, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        assert_ne!(map, libc::MAP_FAILED);
        (file, map.cast())
    }

    /// Before, threads of a sandbox were not recorded, "because memory was missing"; with EAGAIN they hung.
    #[test]
    fn pages_are_reserved_where_a_filter_refuses_the_advice() {
        [libc::EPERM, libc::EAGAIN].into_iter().for_each(pages_are_reserved_by_another_call);
    }

    fn pages_are_reserved_by_another_call(refusal: c_int) {
        // A filter is the thread's own.
        std::thread::spawn(move || {
            let (_file, map) = mapped();
            let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
            // Load the call's number; if it is madvise: refuse; else: allow.
            let mut steps = [
                step(0x20, 0, 0, 0),
                step(0x15, 0, 1, libc::SYS_madvise as u32),
                step(0x06, 0, 0, libc::SECCOMP_RET_ERRNO | refusal as u32),
                step(0x06, 0, 0, libc::SECCOMP_RET_ALLOW),
            ];
            let filter = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
            // SAFETY: prctl reads the filter, a local variable; the range is the whole mapping.
            unsafe {
                assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
                assert_eq!(
                    libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter),
                    0
                );
                assert_eq!(populate(map, 4 * PAGE), Ok(()));
            }
        })
        .join()
        .expect("no assertion fails");
    }

    #[test]
    fn pages_without_memory_are_refused_by_old_kernels_too() {
        for reserve in [populate, touch] {
            let (file, map) = mapped();
            // SAFETY: the first page is mapped, and the file system has memory for it.
            unsafe { map.add(8).write(7) };
            // SAFETY: the range is the whole mapping.
            assert_eq!(unsafe { reserve(map, 4 * PAGE) }, Ok(()));
            // SAFETY: the three words lie in the mapping, whose pages have memory now.
            unsafe { assert_eq!((map.add(8).read(), map.read(), map.add(3 * PAGE).read()), (7, 0, 0)) };
            file.set_len(2 * PAGE as u64).expect("truncated");
            // SAFETY: `__errno_location` returns the address of this thread's errno; the four pages are mapped, though
            // the file ends earlier, and are not accessed after munmap.
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
