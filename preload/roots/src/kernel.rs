//! System calls, made directly: the C library's wrappers would change `errno`, and a thread that was stopped may have
//! none.

use core::ffi::{CStr, c_int};
use core::mem::{ManuallyDrop, MaybeUninit};

use heaptoll_runtime::system_call;

use heaptoll_assertions::assert_internal;

/// The page size, bytes.
pub const PAGE: usize = 4096;

/// An `errno` value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Error(pub c_int);

impl Error {
    /// No descriptor is free, in the process or in the system: there may be one at the next collection.
    pub fn is_out_of_descriptors(self) -> bool {
        matches!(self.0, libc::EMFILE | libc::ENFILE)
    }
}

/// Any system call.
///
/// # Safety
/// The preconditions of the system call itself.
#[inline(always)]
pub unsafe fn call(number: i64, arguments: [usize; 6]) -> Result<usize, Error> {
    // SAFETY: the caller establishes the preconditions of the system call, as `system_call` requires.
    let result = unsafe { system_call(number, arguments) };
    if (-4095..0).contains(&result) { Err(Error(-result as c_int)) } else { Ok(result as usize) }
}

/// The process, in its own namespace.
pub fn process() -> i32 {
    // SAFETY: `getpid` takes no pointers and cannot fail.
    unsafe { call(libc::SYS_getpid, [0; 6]) }.unwrap_or(0) as i32
}

/// The calling thread.
pub fn thread() -> i32 {
    // SAFETY: `gettid` takes no pointers and cannot fail.
    unsafe { call(libc::SYS_gettid, [0; 6]) }.unwrap_or(0) as i32
}

/// Microseconds of the monotonic clock.
pub fn now_us() -> u64 {
    now_ns() / 1000
}

/// Nanoseconds of the monotonic clock.
pub fn now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel overwrites `time`, which outlives the call.
    let _ = unsafe { write_time(libc::CLOCK_MONOTONIC, &raw mut time as usize) };
    assert_internal!((0..1_000_000_000).contains(&time.tv_nsec), "parts of a second are less than one");
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Whole seconds of a clock.
pub fn seconds(clock: c_int) -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel overwrites `time`, which outlives the call.
    let _ = unsafe { write_time(clock, &raw mut time as usize) };
    time.tv_sec
}

/// Whether a time, two words, can be written to an address: the kernel writes one there to find out.
///
/// # Safety
/// What is at `address` is not needed: it may be overwritten.
pub unsafe fn is_time_writable(address: usize) -> bool {
    // SAFETY: what is at `address` may be overwritten, which this function requires.
    unsafe { write_time(libc::CLOCK_MONOTONIC, address) }.is_ok()
}

/// Makes the kernel write the time of a clock.
///
/// # Safety
/// What is at `address` is not needed: it may be overwritten.
unsafe fn write_time(clock: c_int, address: usize) -> Result<usize, Error> {
    // SAFETY: what is at `address` may be overwritten, as this function requires; the kernel checks that it can be.
    unsafe { call(libc::SYS_clock_gettime, [clock as usize, address, 0, 0, 0, 0]) }
}

/// The signals that wait to be unblocked by the calling thread, or by any of the process.
pub fn pending() -> u64 {
    let mut pending = 0_u64;
    // SAFETY: the kernel writes to `pending` alone, eight bytes.
    let _ =
        unsafe { call(libc::SYS_rt_sigpending, [&raw mut pending as usize, size_of::<u64>(), 0, 0, 0, 0]) };
    pending
}

/// Those of these signals that do something when they are unblocked: no others end a call that waits. The kernel keeps
/// an ignored signal too while it is blocked.
pub fn effective(signals: u64) -> u64 {
    let by_default = [libc::SIGCHLD, libc::SIGCONT, libc::SIGURG, libc::SIGWINCH];
    let mut left = 0;
    let mut rest = signals;
    while rest != 0 {
        let signal = rest.trailing_zeros() as c_int + 1;
        assert_internal!((1..=64).contains(&signal), "a signal is in the set of signals");
        let is_ignored = match handler(signal) {
            Some(libc::SIG_IGN) => true,
            Some(libc::SIG_DFL) => by_default.contains(&signal),
            _ => false,
        };
        left |= u64::from(!is_ignored) << (signal - 1);
        rest &= rest - 1;
    }
    left
}

/// The process's action for a signal, if the kernel returns it.
fn handler(signal: c_int) -> Option<libc::sighandler_t> {
    // The kernel's own form: handler, flags, restorer, mask.
    let mut action = [0_usize; 4];
    let place = &raw mut action as usize;
    // SAFETY: the action is writable, and of the kernel's size; none is set.
    let status = unsafe { call(libc::SYS_rt_sigaction, [signal as usize, 0, place, size_of::<u64>(), 0, 0]) };
    status.ok().map(|_| action[0])
}

/// Whether the word at an address can be read: the kernel copies a set of signals from there before it refuses an
/// unknown command.
pub fn is_readable(word: usize) -> bool {
    const NOTHING_KNOWN: usize = usize::MAX;
    if !word.is_multiple_of(8) || word < 8 {
        return false;
    }
    // SAFETY: the kernel only reads the word, if it can, and changes nothing for a command that it does not know.
    let status = unsafe { call(libc::SYS_rt_sigprocmask, [NOTHING_KNOWN, word, 0, size_of::<u64>(), 0, 0]) };
    status != Err(Error(libc::EFAULT))
}

/// Whether a byte can be read without touching a device: the kernel copies it, and copies none from a device's registers.
pub fn is_copyable(byte: usize) -> bool {
    let mut copy = 0_u8;
    let to = libc::iovec { iov_base: (&raw mut copy).cast(), iov_len: 1 };
    let from = libc::iovec { iov_base: byte as *mut _, iov_len: 1 };
    let (to, from) = (&raw const to as usize, &raw const from as usize);
    // SAFETY: the kernel writes to `copy` alone, and checks that `byte` can be read.
    let copied = unsafe { call(libc::SYS_process_vm_readv, [process() as usize, to, 1, from, 1, 0]) };
    copied == Ok(1)
}

/// A number in decimal, with the zero byte after it.
fn decimal(mut number: u32, digits: &mut [u8; 12]) -> &[u8] {
    let mut at = digits.len() - 1;
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &digits[at..];
        }
    }
}

/// The kind of what a descriptor of the calling thread refers to; `None`: it is not open.
pub fn file_mode(descriptor: i32) -> Option<u32> {
    let file = ManuallyDrop::new(File::of(descriptor as usize));
    Some(file.status().ok()?.st_mode)
}

/// The calling thread's alternate signal stack.
pub fn alternate_stack() -> libc::stack_t {
    let mut stack = libc::stack_t { ss_sp: core::ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
    // SAFETY: the kernel writes to `stack` alone; the new stack is null, so that nothing is changed.
    let _ = unsafe { call(libc::SYS_sigaltstack, [0, &raw mut stack as usize, 0, 0, 0, 0]) };
    stack
}

/// What the kernel may write any bytes to.
pub trait Bytes {}

impl Bytes for u8 {}
impl Bytes for u64 {}

/// A file, closed when dropped.
#[derive(Debug)]
pub struct File(usize);

impl File {
    /// The file under this number, which is the caller's to close.
    pub fn of(descriptor: usize) -> File {
        File(descriptor)
    }

    /// Its number, which is the caller's to close from now on.
    pub fn into_descriptor(self) -> usize {
        ManuallyDrop::new(self).0
    }

    /// The same file under another number, not below this one.
    pub fn duplicate(&self, least: c_int) -> Result<File, Error> {
        let command = libc::F_DUPFD_CLOEXEC as usize;
        // SAFETY: `fcntl` with this command takes no pointers.
        unsafe { call(libc::SYS_fcntl, [self.0, command, least as usize, 0, 0, 0]) }.map(File)
    }

    /// Its status.
    pub fn status(&self) -> Result<libc::stat, Error> {
        let mut status = MaybeUninit::<libc::stat>::zeroed();
        // SAFETY: the kernel writes to `status` alone, and fills it if the call succeeds.
        unsafe {
            call(libc::SYS_fstat, [self.0, status.as_mut_ptr() as usize, 0, 0, 0, 0])?;
            Ok(status.assume_init())
        }
    }

    /// Opens a file or directory for reading.
    pub fn open(path: &CStr) -> Result<File, Error> {
        // SAFETY: a zero byte ends the path.
        unsafe { File::open_at(libc::AT_FDCWD as usize, path.as_ptr() as usize) }
    }

    /// Opens an entry of this directory, whose name is a number.
    pub fn entry(&self, name: i32) -> Result<File, Error> {
        let mut digits = [0; 12];
        // SAFETY: a zero byte ends the digits.
        unsafe { File::open_at(self.0, decimal(name.unsigned_abs(), &mut digits).as_ptr() as usize) }
    }

    /// # Safety
    /// The path is a string that a zero byte ends.
    unsafe fn open_at(directory: usize, path: usize) -> Result<File, Error> {
        let flags = (libc::O_RDONLY | libc::O_CLOEXEC) as usize;
        // SAFETY: the kernel reads the path, which a zero byte ends, as this function requires.
        unsafe { call(libc::SYS_openat, [directory, path, flags, 0, 0, 0]) }.map(File)
    }

    /// Reads on from where the last reading ended; 0 bytes: the end.
    pub fn read(&self, to: &mut [u8]) -> Result<usize, Error> {
        loop {
            // SAFETY: the kernel writes at most `to.len()` bytes to `to`.
            let got = unsafe { call(libc::SYS_read, [self.0, to.as_mut_ptr() as usize, to.len(), 0, 0, 0]) };
            if got != Err(Error(libc::EINTR)) {
                return got;
            }
        }
    }

    /// Reads from a position, bytes; 0 bytes: the end.
    pub fn read_at<T: Bytes>(&self, to: &mut [T], position: usize) -> Result<usize, Error> {
        let bytes = size_of_val(to);
        // SAFETY: the kernel writes at most `bytes` bytes, the size of `to`, to it.
        unsafe { call(libc::SYS_pread64, [self.0, to.as_mut_ptr() as usize, bytes, position, 0, 0]) }
    }

    /// Reads directory entries.
    pub fn entries(&self, to: &mut [u8]) -> Result<usize, Error> {
        // SAFETY: the kernel writes at most `to.len()` bytes to `to`.
        unsafe { call(libc::SYS_getdents64, [self.0, to.as_mut_ptr() as usize, to.len(), 0, 0, 0]) }
    }

    /// Reads the link of an entry of this directory, whose name is a number; returns its length, at most that of `to`.
    pub fn link(&self, name: i32, to: &mut [u8]) -> Result<usize, Error> {
        let mut digits = [0; 12];
        let name = decimal(name.unsigned_abs(), &mut digits);
        let (path, length) = (name.as_ptr() as usize, to.len());
        // SAFETY: the kernel reads the name, which a zero byte ends, and writes at most `length` bytes to `to`.
        unsafe { call(libc::SYS_readlinkat, [self.0, path, to.as_mut_ptr() as usize, length, 0, 0]) }
    }

    /// Back to the beginning.
    pub fn rewind(&self) -> Result<(), Error> {
        // SAFETY: `lseek` takes no pointers.
        unsafe { call(libc::SYS_lseek, [self.0, 0, libc::SEEK_SET as usize, 0, 0, 0]) }.map(drop)
    }

    /// A control call with one structure.
    ///
    /// # Safety
    /// `request` takes a pointer to a structure of type `T`.
    pub unsafe fn control<T>(&self, request: u64, argument: &mut T) -> Result<usize, Error> {
        // SAFETY: `argument` is a valid structure of the type that `request` takes, which this function requires.
        unsafe {
            call(libc::SYS_ioctl, [self.0, request as usize, core::ptr::from_mut(argument) as usize, 0, 0, 0])
        }
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // SAFETY: `open` returned the descriptor for this file alone, which is not used after this.
        let _ = unsafe { call(libc::SYS_close, [self.0, 0, 0, 0, 0, 0]) };
    }
}
