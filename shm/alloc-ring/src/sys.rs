//! System calls as the producer makes them: by number, so that no interposed function, cancellation point or lock of
//! the C library comes in between. They change `errno`, which [`Errno`] keeps.

use core::ffi::{CStr, c_char, c_int, c_long, c_void};
use core::ops::Range;
use core::ptr;
use core::sync::atomic::AtomicU32;

use crate::layout::PAGE;

/// Keeps `errno` as it was when this was made, until it is dropped.
pub struct Errno(c_int);

impl Errno {
    /// Remembers it.
    pub fn keep() -> Errno {
        // SAFETY: errno's address is valid for the calling thread.
        Errno(unsafe { *libc::__errno_location() })
    }
}

impl Drop for Errno {
    fn drop(&mut self) {
        // SAFETY: as in `keep`.
        unsafe { *libc::__errno_location() = self.0 };
    }
}

/// The error of the system call before.
pub fn errno() -> c_int {
    // SAFETY: errno's address is valid for the calling thread.
    unsafe { *libc::__errno_location() }
}

/// `CLOCK_MONOTONIC`, ns.
pub fn now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for the result; this clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

/// Sleeps while `word` holds `seen`, at most `ns`. The word is shared between processes.
pub fn futex_wait(word: &AtomicU32, seen: u32, ns: u64) {
    let time =
        libc::timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as c_long };
    // SAFETY: a valid word and a valid time; the kernel only reads the word.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, seen, &time, ptr::null::<u32>(), 0)
    };
}

/// Wakes all who sleep on `word`.
pub fn futex_wake(word: &AtomicU32) {
    // SAFETY: a valid address, which the kernel only compares.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX, 0, 0, 0) };
}

/// Lets others run.
pub fn yield_now() {
    // SAFETY: no conditions.
    unsafe { libc::syscall(libc::SYS_sched_yield) };
}

/// The calling process's number. By the kernel: in a child of vfork, too.
pub fn getpid() -> i32 {
    // SAFETY: no conditions.
    unsafe { libc::syscall(libc::SYS_getpid) as i32 }
}

/// Its parent's.
pub fn getppid() -> i32 {
    // SAFETY: no conditions.
    unsafe { libc::syscall(libc::SYS_getppid) as i32 }
}

/// The calling thread's number.
pub fn gettid() -> i32 {
    // SAFETY: no conditions.
    unsafe { libc::syscall(libc::SYS_gettid) as i32 }
}

/// Whether there is a process of this number, as far as the caller may know.
pub fn exists(pid: i32) -> bool {
    // SAFETY: signal 0 is only a question.
    (unsafe { libc::syscall(libc::SYS_kill, pid, 0) }) == 0 || errno() != libc::ESRCH
}

/// The inode of the caller's namespace of process numbers; 0 when it cannot be known.
pub fn namespace() -> u64 {
    // SAFETY: zero is a valid `stat`, which the kernel fills in; the path is a C string.
    unsafe {
        let mut status: libc::stat = core::mem::zeroed();
        let path = c"/proc/self/ns/pid";
        let done = libc::syscall(libc::SYS_newfstatat, libc::AT_FDCWD, path.as_ptr(), &mut status, 0);
        if done == 0 { status.st_ino } else { 0 }
    }
}

/// Reads `/proc/self/exe`; gives its length, 0 when it cannot be read.
pub fn exe(into: &mut [u8]) -> usize {
    // SAFETY: a C string, and a place of the length told.
    let read = unsafe {
        libc::syscall(
            libc::SYS_readlinkat,
            libc::AT_FDCWD,
            c"/proc/self/exe".as_ptr(),
            into.as_mut_ptr(),
            into.len(),
        )
    };
    usize::try_from(read).unwrap_or(0)
}

/// Removes a file, if it is there.
pub fn unlink(path: &CStr) {
    // SAFETY: a C string.
    unsafe { libc::syscall(libc::SYS_unlinkat, libc::AT_FDCWD, path.as_ptr(), 0) };
}

/// Whether a process has a thread of this number, as far as the caller may know.
pub fn thread_exists(pid: i32, tid: i32) -> bool {
    // SAFETY: signal 0 is only a question.
    (unsafe { libc::syscall(libc::SYS_tgkill, pid, tid, 0) }) == 0 || errno() != libc::ESRCH
}

/// An open file of our own, closed when dropped.
pub struct Descriptor(c_int);

impl Descriptor {
    /// Opens a file for reading and writing.
    ///
    /// # Errors
    /// The error's number.
    pub fn open(path: &CStr) -> Result<Descriptor, c_int> {
        // Whatever another user puts in its place: no link is followed, no FIFO waited for.
        let flags = libc::O_RDWR | libc::O_CLOEXEC | libc::O_NOCTTY | libc::O_NOFOLLOW | libc::O_NONBLOCK;
        // SAFETY: a C string.
        let file =
            unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr().cast::<c_char>(), flags) };
        if file < 0 { Err(errno()) } else { Ok(Descriptor(file as c_int)) }
    }

    /// Its length, bytes.
    pub fn length(&self) -> usize {
        // SAFETY: zero is a valid `stat`, which the kernel fills in.
        unsafe {
            let mut status: libc::stat = core::mem::zeroed();
            if libc::syscall(libc::SYS_fstat, self.0, &mut status) == 0 { status.st_size as usize } else { 0 }
        }
    }

    /// Maps its first bytes, shared. Null when the kernel will not.
    pub fn map(&self, bytes: usize) -> *mut u8 {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a fresh mapping wherever the kernel likes.
        let map = unsafe {
            libc::mmap(ptr::null_mut(), bytes, protection, libc::MAP_SHARED | libc::MAP_NORESERVE, self.0, 0)
        };
        if map == libc::MAP_FAILED { ptr::null_mut() } else { map.cast() }
    }

    /// Whether somebody else holds a write lock on the first byte. `None` when the kernel will not say.
    pub fn locked(&self) -> Option<bool> {
        // SAFETY: zero is a valid `flock`, which the kernel fills in.
        unsafe {
            let mut lock: libc::flock = core::mem::zeroed();
            lock.l_type = libc::F_WRLCK as i16;
            lock.l_whence = libc::SEEK_SET as i16;
            lock.l_len = 1;
            let done = libc::syscall(libc::SYS_fcntl, self.0, libc::F_OFD_GETLK, &mut lock);
            if done == 0 { Some(lock.l_type != libc::F_UNLCK as i16) } else { None }
        }
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: our own descriptor.
        unsafe { libc::syscall(libc::SYS_close, self.0) };
    }
}

/// The pages that a range of bytes touches, as bytes.
pub fn whole_pages(bytes: Range<usize>) -> Range<usize> {
    bytes.start / PAGE * PAGE..bytes.end.next_multiple_of(PAGE)
}

/// Gives a mapping back.
///
/// # Safety
/// It is the caller's, and nothing points into it any more.
pub unsafe fn unmap(map: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { libc::munmap(map.cast::<c_void>(), bytes) };
}

/// Private memory that a child of fork finds zeroed. Null when the kernel has none.
pub fn wiped_on_fork(bytes: usize) -> *mut u8 {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a fresh mapping, and advice on it.
    unsafe {
        let map = libc::mmap(ptr::null_mut(), bytes, protection, flags, -1, 0);
        if map == libc::MAP_FAILED {
            return ptr::null_mut();
        }
        if libc::madvise(map, bytes, libc::MADV_WIPEONFORK) != 0 {
            libc::munmap(map, bytes);
            return ptr::null_mut();
        }
        map.cast()
    }
}

/// The limit of the address space, bytes; `None`: no limit.
pub fn address_space_limit() -> Option<usize> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a valid place for the result.
    let done = unsafe { libc::getrlimit(libc::RLIMIT_AS, &mut limit) };
    (done == 0 && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur as usize)
}
