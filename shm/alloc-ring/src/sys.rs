//! System calls as the producer makes them: by number, so that no interposed function, cancellation point or lock of
//! the C library intervenes. They change `errno`, which [`Errno`] preserves.

use core::ffi::{CStr, c_char, c_int, c_long, c_void};
use core::ops::Range;
use core::ptr;
#[cfg(feature = "tool")]
pub use std::time::Instant;

pub use heaptoll_process::address_space::limit as address_space_limit;

use crate::atomic::AtomicU32;
use crate::layout::PAGE;

/// Restores `errno`, when it is dropped, to the value it had when this was made.
pub struct Errno(c_int);

impl Errno {
    /// Saves the current value.
    pub fn keep() -> Errno {
        // SAFETY: `__errno_location` returns the address of the calling thread's errno.
        Errno(unsafe { *libc::__errno_location() })
    }
}

impl Drop for Errno {
    fn drop(&mut self) {
        // SAFETY: `__errno_location` returns the address of the calling thread's errno.
        unsafe { *libc::__errno_location() = self.0 };
    }
}

/// The error of the preceding system call.
pub fn errno() -> c_int {
    // SAFETY: `__errno_location` returns the address of the calling thread's errno.
    unsafe { *libc::__errno_location() }
}

/// `CLOCK_MONOTONIC`, ns.
pub fn now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes to `time`, a local variable; this clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

/// Sleeps while `word` holds `expected`, at most `ns`. The word is shared between processes.
pub fn futex_wait(word: &AtomicU32, expected: u32, ns: u64) {
    let time =
        libc::timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as c_long };
    // SAFETY: the kernel reads the word, which is a reference, and `time`, a local variable.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT,
            expected,
            &time,
            ptr::null::<u32>(),
            0,
        )
    };
}

/// Wakes all threads that sleep on `word`.
pub fn futex_wake(word: &AtomicU32) {
    // SAFETY: the kernel compares the word's address with those of sleepers and does not access the word.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX, 0, 0, 0) };
}

/// A turn of a loop that waits for another thread.
pub fn spin() {
    core::hint::spin_loop();
}

/// The value of an environment variable whose name is shorter than 32 bytes.
pub fn variable(name: &str) -> Option<&'static CStr> {
    let mut terminated = [0u8; 32];
    terminated[..name.len()].copy_from_slice(name.as_bytes());
    heaptoll_process::environment::variable(CStr::from_bytes_until_nul(&terminated).ok()?)
}

/// Lets other threads run.
pub fn yield_now() {
    // SAFETY: sched_yield takes no pointers and touches no memory.
    unsafe { libc::syscall(libc::SYS_sched_yield) };
}

/// The calling process's number. By the kernel: in a child of vfork, too.
pub fn getpid() -> i32 {
    // SAFETY: getpid takes no pointers and cannot fail.
    unsafe { libc::syscall(libc::SYS_getpid) as i32 }
}

/// Its parent's.
pub fn getppid() -> i32 {
    // SAFETY: getppid takes no pointers and cannot fail.
    unsafe { libc::syscall(libc::SYS_getppid) as i32 }
}

/// The calling thread's number.
pub fn gettid() -> i32 {
    // SAFETY: gettid takes no pointers and cannot fail.
    unsafe { libc::syscall(libc::SYS_gettid) as i32 }
}

/// Whether there is a process of this number, as far as the caller has permission to know.
pub fn exists(pid: i32) -> bool {
    // SAFETY: kill takes no pointers, and signal 0 is not delivered.
    (unsafe { libc::syscall(libc::SYS_kill, pid, 0) }) == 0 || errno() != libc::ESRCH
}

/// The inode of the caller's namespace of process numbers; 0 when it cannot be read.
pub fn namespace() -> u64 {
    // SAFETY: zero is a valid `stat`; the kernel writes `status`, a local variable, and reads the path, a C literal.
    unsafe {
        let mut status: libc::stat = core::mem::zeroed();
        let path = c"/proc/self/ns/pid";
        let done = libc::syscall(libc::SYS_newfstatat, libc::AT_FDCWD, path.as_ptr(), &mut status, 0);
        if done == 0 { status.st_ino } else { 0 }
    }
}

/// Reads `/proc/self/exe`; returns its length, 0 when it cannot be read.
pub fn exe(into: &mut [u8]) -> usize {
    // SAFETY: the kernel reads the path, a C literal, and writes at most `into.len()` bytes to `into`.
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
    // SAFETY: the kernel only reads the path, a C string.
    unsafe { libc::syscall(libc::SYS_unlinkat, libc::AT_FDCWD, path.as_ptr(), 0) };
}

/// Whether a process has a thread of this number, as far as the caller has permission to know.
pub fn thread_exists(pid: i32, tid: i32) -> bool {
    // SAFETY: tgkill takes no pointers, and signal 0 is not delivered.
    (unsafe { libc::syscall(libc::SYS_tgkill, pid, tid, 0) }) == 0 || errno() != libc::ESRCH
}

/// An open file, closed when dropped.
pub struct Descriptor(c_int);

impl Descriptor {
    /// Opens a file for reading and writing.
    ///
    /// # Errors
    /// The number of the system's error.
    pub fn open(path: &CStr) -> Result<Descriptor, c_int> {
        // Another user may have replaced the file: no link is followed, no FIFO waited for.
        let flags = libc::O_RDWR | libc::O_CLOEXEC | libc::O_NOCTTY | libc::O_NOFOLLOW | libc::O_NONBLOCK;
        // SAFETY: the kernel only reads the path, a C string.
        let file =
            unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr().cast::<c_char>(), flags) };
        if file < 0 { Err(errno()) } else { Ok(Descriptor(file as c_int)) }
    }

    /// Its length, bytes.
    pub fn length(&self) -> usize {
        // SAFETY: zero is a valid `stat`; the kernel writes `status`, a local variable.
        unsafe {
            let mut status: libc::stat = core::mem::zeroed();
            if libc::syscall(libc::SYS_fstat, self.0, &mut status) == 0 { status.st_size as usize } else { 0 }
        }
    }

    /// Maps its first bytes, shared. Null when the kernel refuses.
    pub fn map(&self, bytes: usize) -> *mut u8 {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: without MAP_FIXED and with a null address, the kernel maps memory that nothing uses.
        let map = unsafe {
            libc::mmap(ptr::null_mut(), bytes, protection, libc::MAP_SHARED | libc::MAP_NORESERVE, self.0, 0)
        };
        if map == libc::MAP_FAILED { ptr::null_mut() } else { map.cast() }
    }

    /// Whether another open file holds a write lock on the first byte. `None` when the kernel refuses the request.
    pub fn locked(&self) -> Option<bool> {
        // SAFETY: zero is a valid `flock`; the kernel reads and writes `lock`, a local variable.
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
        // SAFETY: `open` opened the descriptor for this value alone, which ends here.
        unsafe { libc::syscall(libc::SYS_close, self.0) };
    }
}

/// Extends a range of bytes to whole pages.
pub fn whole_pages(bytes: Range<usize>) -> Range<usize> {
    bytes.start / PAGE * PAGE..bytes.end.next_multiple_of(PAGE)
}

/// Unmaps memory.
///
/// # Safety
/// `map` is a mapping of `bytes` bytes that the caller made, and no pointer into it is used afterwards.
pub unsafe fn unmap(map: *mut u8, bytes: usize) {
    // SAFETY: by this function's contract, nothing uses the mapping any more.
    unsafe { libc::munmap(map.cast::<c_void>(), bytes) };
}

/// Maps private memory that the kernel zeroes in a child of fork. Null when the kernel has none.
pub fn wiped_on_fork(bytes: usize) -> *mut u8 {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: with a null address the kernel maps memory that nothing uses; madvise and munmap take that mapping.
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
