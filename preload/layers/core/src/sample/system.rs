//! System calls, made directly: `errno` is the program's, and the C library's wrappers are cancellation points.

use core::ffi::{CStr, c_char};
use core::ptr::NonNull;

use heaptoll_runtime::system_call;

/// Closes a descriptor when it goes.
pub struct Descriptor(usize);

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: `open` returned the descriptor, and nothing else owns it.
        unsafe { system_call(libc::SYS_close, [self.0, 0, 0, 0, 0, 0]) };
    }
}

/// Opens a file for reading and writing; the error is a negated `errno`.
pub fn open(path: &CStr, flags: i32) -> Result<Descriptor, isize> {
    let flags = flags | libc::O_RDWR | libc::O_CLOEXEC | libc::O_NOFOLLOW | libc::O_NONBLOCK;
    // SAFETY: the kernel reads `path`, a C string.
    let opened =
        unsafe { system_call(libc::SYS_open, [path.as_ptr() as usize, flags as usize, 0o600, 0, 0, 0]) };
    usize::try_from(opened).map(Descriptor).map_err(|_| opened)
}

/// Makes a file this long; false: the system refuses. A longer one than the process may write would end it by a signal.
pub fn set_length(file: &Descriptor, bytes: usize) -> bool {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    let place = &raw mut limit as usize;
    // SAFETY: the kernel writes to `limit`, a live local.
    let known =
        unsafe { system_call(libc::SYS_prlimit64, [0, libc::RLIMIT_FSIZE as usize, 0, place, 0, 0]) == 0 };
    // SAFETY: ftruncate takes no pointers.
    known
        && limit.rlim_cur >= bytes as u64
        && unsafe { system_call(libc::SYS_ftruncate, [file.0, bytes, 0, 0, 0, 0]) } == 0
}

/// Maps the beginning of a file, shared with all that map it.
pub fn map(file: &Descriptor, bytes: usize) -> Option<NonNull<u8>> {
    let access = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    let arguments = [0, bytes, access, libc::MAP_SHARED as usize, file.0, 0];
    // SAFETY: mmap without MAP_FIXED makes a new mapping and replaces none; its failure is checked below.
    let made = unsafe { system_call(libc::SYS_mmap, arguments) };
    NonNull::new(made as *mut u8).filter(|_| made > 0)
}

/// This process's number.
pub fn process() -> u32 {
    // SAFETY: getpid takes no pointers.
    (unsafe { system_call(libc::SYS_getpid, [0; 6]) }) as u32
}

/// The time, Unix ns.
pub fn unix_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // The C library's, which reads a page of the kernel's: a sandbox may forbid the system call.
    // SAFETY: `now` is a live local. With this clock the call does not fail, so `errno` stays.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// A random number of the kernel's; where it has none yet, one that differs between threads and times.
pub fn random() -> u64 {
    let mut number = 0_u64;
    let place = &raw mut number as usize;
    // SAFETY: the kernel writes eight bytes to `number`, a live local.
    let bytes =
        unsafe { system_call(libc::SYS_getrandom, [place, 8, libc::GRND_NONBLOCK as usize, 0, 0, 0]) };
    if bytes == 8 { number } else { unix_ns() ^ heaptoll_runtime::thread_pointer() as u64 }
}

/// Reads where a symbolic link leads to; returns how many bytes there are.
pub fn read_link(path: &CStr, into: &mut [u8]) -> usize {
    let arguments = [path.as_ptr() as usize, into.as_mut_ptr() as usize, into.len(), 0, 0, 0];
    // SAFETY: the kernel reads `path`, a C string, and writes to `into` within its length.
    usize::try_from(unsafe { system_call(libc::SYS_readlink, arguments) }).unwrap_or(0)
}

/// The path of this process's executable; returns its length. Of a file that has several names it is the one that was
/// run, where that still leads there.
pub fn executable(into: &mut [u8]) -> usize {
    let link = c"/proc/self/exe";
    let length = read_link(link, into);
    // SAFETY: getauxval takes no pointers.
    let run = unsafe { libc::getauxval(libc::AT_EXECFN) } as *const c_char;
    if run.is_null() {
        return length;
    }
    // SAFETY: the kernel put a C string there, on the stack of the first thread, which stays mapped. A program that
    // writes there writes within the stack, at whose end a zero word follows.
    let run = unsafe { CStr::from_ptr(run) };
    let own = into.get(..length).map_or(&[][..], last_part);
    let bytes = run.to_bytes();
    if last_part(bytes) != own
        && bytes.len() <= into.len()
        && file(run).is_some_and(|run| file(link) == Some(run))
    {
        into[..bytes.len()].copy_from_slice(bytes);
        return bytes.len();
    }
    length
}

fn last_part(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or_default()
}

/// Which file a path leads to: its device and number.
fn file(path: &CStr) -> Option<(u64, u64)> {
    // SAFETY: zeroes are a valid `stat`; the kernel reads `path`, a C string, and writes to `status`, a live local.
    unsafe {
        let mut status: libc::stat = core::mem::zeroed();
        let arguments = [path.as_ptr() as usize, &raw mut status as usize, 0, 0, 0, 0];
        (system_call(libc::SYS_stat, arguments) == 0).then_some((status.st_dev, status.st_ino))
    }
}
