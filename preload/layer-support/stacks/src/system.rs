//! System calls: memory, and whether an address can be read. Made directly and not through the C library: these calls
//! are made within a program's call of `malloc`, where `errno` is the program's, and some programs define `mmap`
//! themselves.

use core::ffi::CStr;
use core::ptr::NonNull;

use heaptoll_runtime::system_call;

/// Name of the memory in `/proc/PID/maps`.
const NAME: &CStr = c"heaptoll sites";

/// Bytes in a page.
pub const PAGE: usize = 4096;

/// Maps zeroed memory, backed page by page as it is touched; `None` when the system provides none. `wiped_in_child`: a
/// child of fork finds it zeroed again.
pub fn map(bytes: usize, wiped_in_child: bool) -> Option<NonNull<u8>> {
    let protection = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE) as usize;
    // SAFETY: mmap without MAP_FIXED makes a new mapping and replaces none; its failure is checked below.
    let made = unsafe { system_call(libc::SYS_mmap, [0, bytes, protection, flags, usize::MAX, 0]) };
    let place = NonNull::new(made as *mut u8).filter(|_| made > 0)?;
    let start = place.as_ptr() as usize;
    if wiped_in_child {
        // SAFETY: the advice covers exactly the mapping just made, which nothing else uses yet.
        let advised = unsafe {
            system_call(libc::SYS_madvise, [start, bytes, libc::MADV_WIPEONFORK as usize, 0, 0, 0])
        };
        if advised < 0 {
            // SAFETY: the mapping was just made, and nothing refers to it.
            unsafe { unmap(place, bytes) };
            return None;
        }
    }
    let name = NAME.as_ptr() as usize;
    // SAFETY: names the mapping just made; `NAME` is a C string. A kernel without such names refuses, and nothing
    // depends on it.
    unsafe {
        let option = libc::PR_SET_VMA as usize;
        system_call(libc::SYS_prctl, [option, libc::PR_SET_VMA_ANON_NAME as usize, start, bytes, name, 0])
    };
    Some(place)
}

/// Unmaps memory of [`map`].
///
/// # Safety
/// `map` returned these bytes, and nothing refers to them any more.
pub unsafe fn unmap(place: NonNull<u8>, bytes: usize) {
    // SAFETY: by this function's contract the range is one that `map` returned and is no longer used.
    unsafe { system_call(libc::SYS_munmap, [place.as_ptr() as usize, bytes, 0, 0, 0, 0]) };
}

/// Whether the word at an address, a multiple of 8, can be read. It requests a change of the signal mask that does not
/// exist, with the new mask at that address: the kernel reads the mask first. A sandbox in which a process can run
/// allows this call.
pub fn readable(address: usize) -> bool {
    const INVALID_HOW: usize = !0;
    // SAFETY: the call fails before it changes anything, since the operation is invalid.
    let answer = unsafe { system_call(libc::SYS_rt_sigprocmask, [INVALID_HOW, address, 0, 8, 0, 0]) };
    answer == -(libc::EINVAL as isize)
}

/// Reads a symbolic link, as far as `into` holds it; returns its length, 0 when there is none.
pub fn read_link(path: &CStr, into: &mut [u8]) -> usize {
    let (path, place, bytes) = (path.as_ptr() as usize, into.as_mut_ptr() as usize, into.len());
    // SAFETY: `path` is a C string and `into` a buffer of `bytes` bytes, both borrowed during the call.
    let answer = unsafe { system_call(libc::SYS_readlink, [path, place, bytes, 0, 0, 0]) };
    usize::try_from(answer).unwrap_or(0)
}

/// A file open for reading, closed when it is dropped.
pub struct File(usize);

impl File {
    /// `None` when it cannot be opened.
    pub fn open(path: &CStr) -> Option<File> {
        let flags = (libc::O_RDONLY | libc::O_CLOEXEC) as usize;
        let (folder, path) = (libc::AT_FDCWD as usize, path.as_ptr() as usize);
        // SAFETY: `path` is a C string, borrowed during the call.
        let descriptor = unsafe { system_call(libc::SYS_openat, [folder, path, flags, 0, 0, 0]) };
        usize::try_from(descriptor).ok().map(File)
    }

    /// Reads from a position of the file; returns how many bytes, 0 at the end and when it cannot be read.
    pub fn read_at(&self, into: &mut [u8], position: usize) -> usize {
        let (place, bytes) = (into.as_mut_ptr() as usize, into.len());
        // SAFETY: `into` is a buffer of `bytes` bytes, borrowed during the call.
        let answer = unsafe { system_call(libc::SYS_pread64, [self.0, place, bytes, position, 0, 0]) };
        usize::try_from(answer).unwrap_or(0)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // SAFETY: the descriptor was opened by this value, which is used no more.
        unsafe { system_call(libc::SYS_close, [self.0, 0, 0, 0, 0, 0]) };
    }
}

/// The kernel's number of the calling thread.
pub fn thread() -> u32 {
    // SAFETY: gettid takes no arguments and cannot fail.
    unsafe { system_call(libc::SYS_gettid, [0; 6]) as u32 }
}

/// Whether the process has such a thread.
pub fn lives(thread: u32) -> bool {
    // SAFETY: getpid takes no arguments; signal 0 sends nothing, and only the result is used.
    unsafe {
        let process = system_call(libc::SYS_getpid, [0; 6]) as usize;
        system_call(libc::SYS_tgkill, [process, thread as usize, 0, 0, 0, 0]) != -(libc::ESRCH as isize)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;

    #[test]
    fn memory_is_zeroed_and_writable() {
        let place = map(3 * PAGE, true).unwrap();
        for at in (0..3 * PAGE).step_by(1000) {
            // SAFETY: `at` is within the mapping just made.
            unsafe {
                assert_eq!(place.add(at).read(), 0);
                place.add(at).write(7);
            }
        }
        // SAFETY: this test mapped it and uses it no more.
        unsafe { unmap(place, 3 * PAGE) };
        assert!(map(1 << 50, false).is_none());
    }

    #[test]
    fn readable_distinguishes_memory_from_none() {
        let word = 5u64;
        assert!(readable(&raw const word as usize));
        assert!(readable(readable as *const () as usize & !7));
        assert!(!readable(0));
        assert!(!readable(1 << 46));
        let place = map(PAGE, false).unwrap();
        // SAFETY: the page was mapped by this test and is used by nothing else.
        unsafe { libc::mprotect(place.as_ptr().cast(), PAGE, libc::PROT_NONE) };
        assert!(!readable(place.as_ptr() as usize));
        // SAFETY: this test mapped it and uses it no more.
        unsafe { unmap(place, PAGE) };
    }

    #[test]
    fn a_thread_lives_until_it_is_joined() {
        assert!(lives(thread()));
        let other = std::thread::spawn(thread).join().unwrap();
        assert_ne!(other, thread());
        // The kernel may release the number a little later.
        for _ in 0..1000 {
            if !lives(other) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        panic!("thread {other} lives on");
    }
}
