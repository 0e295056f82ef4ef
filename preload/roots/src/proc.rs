//! What `/proc` contains about one thread: its name, its state, whether a signal is pending.

use core::ffi::CStr;

use heaptoll_assertions::assert_internal;

use crate::kernel::{Error, File};

/// Bytes of a name, the zero byte at its end included.
pub const NAME: usize = 16;

/// The kernel's letters for threads that have ended.
const ENDED: &[u8] = b"ZXx";

/// Flags of threads that the kernel runs on the process's behalf: for io_uring, and for virtual devices. They are
/// listed like any other, take no signals, and never run the program.
const WORKER: u64 = 0x10 | 0x4000;
/// Where the flags are in `stat`: fields after the state.
const FLAGS_AT: usize = 6;

/// A path `/proc/self/task/TID/FILE`.
struct Path {
    bytes: [u8; 64],
    length: usize,
}

impl Path {
    fn new(tid: i32, file: &[u8]) -> Path {
        let mut path = Path { bytes: [0; 64], length: 0 };
        path.put(b"/proc/self/task/");
        let mut digits = [0; 10];
        let mut at = digits.len();
        let mut rest = tid.unsigned_abs();
        loop {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        path.put(&digits[at..]);
        path.put(b"/");
        path.put(file);
        assert_internal!(path.length < path.bytes.len() - 1, "the longest path fits");
        path
    }

    /// Appends, leaving a zero byte at the end.
    fn put(&mut self, text: &[u8]) {
        for &byte in text {
            if self.length < self.bytes.len() - 1 {
                self.bytes[self.length] = byte;
                self.length += 1;
            }
        }
    }

    fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }
}

/// Reads a file of a thread, as much as fits into the buffer.
fn read<'a>(tid: i32, file: &[u8], to: &'a mut [u8]) -> Result<&'a [u8], Error> {
    let file = File::open(Path::new(tid, file).as_c_str())?;
    let mut length = 0;
    while let Some(rest) = to.get_mut(length..).filter(|rest| !rest.is_empty()) {
        let got = file.read(rest)?;
        if got == 0 {
            break;
        }
        length += got;
    }
    assert_internal!(length <= to.len(), "no more is read than there is space for");
    Ok(&to[..length])
}

/// The name of a thread, padded with zero bytes.
pub fn name(tid: i32) -> [u8; NAME] {
    let mut name = [0; NAME];
    let length = read(tid, b"comm", &mut name).map_or(0, <[u8]>::len);
    for (at, byte) in name.iter_mut().enumerate() {
        if at >= length || at == NAME - 1 || *byte == b'\n' {
            *byte = 0;
        }
    }
    name
}

/// The state of a thread that does not respond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadState {
    /// It will run again. The letter of its state (`proc(5)`), `?` if it cannot be read.
    Alive(u8),
    /// It has ended, or is a zombie.
    Ended,
    /// A worker thread of the kernel.
    Worker,
}

/// The state of a thread.
pub fn thread_state(tid: i32) -> ThreadState {
    let mut buffer = [0; 512];
    match read(tid, b"stat", &mut buffer) {
        Ok(text) => parse_stat(text).unwrap_or(ThreadState::Alive(b'?')),
        Err(Error(libc::ENOENT | libc::ESRCH)) => ThreadState::Ended,
        Err(_) => ThreadState::Alive(b'?'),
    }
}

/// State and flags follow the name, which may itself hold anything, parentheses and spaces too.
fn parse_stat(text: &[u8]) -> Option<ThreadState> {
    let end = text.iter().rposition(|&byte| byte == b')')?;
    let mut fields = text.get(end + 2..)?.split(|&byte| byte == b' ');
    let &state = fields.next()?.first()?;
    let flags =
        fields.nth(FLAGS_AT - 1).and_then(|flags| core::str::from_utf8(flags).ok()?.parse::<u64>().ok());
    Some(if ENDED.contains(&state) {
        ThreadState::Ended
    } else if flags.is_some_and(|flags| flags & WORKER != 0) {
        ThreadState::Worker
    } else {
        ThreadState::Alive(state)
    })
}

/// Whether a thread waits until its child, which shares its memory, ends or has called exec.
pub fn is_in_vfork(tid: i32) -> bool {
    const VFORKS: [libc::c_long; 3] = [libc::SYS_vfork, libc::SYS_clone, libc::SYS_clone3];
    let mut buffer = [0; 256];
    // Of a thread that does not run, the file begins with the number of its system call.
    let call = |text: &[u8]| {
        let number = text.split(|&byte| byte == b' ').next()?;
        core::str::from_utf8(number).ok()?.parse::<libc::c_long>().ok()
    };
    thread_state(tid) == ThreadState::Alive(b'D')
        && read(tid, b"syscall", &mut buffer).ok().and_then(call).is_some_and(|call| VFORKS.contains(&call))
}

/// Whether a signal is pending because the thread blocks it; `None`: unknown.
pub fn is_pending(tid: i32, signal: i32) -> Option<bool> {
    let mut buffer = [0; 4096];
    let text = read(tid, b"status", &mut buffer).ok()?;
    let mask = field(text, b"SigPnd:")?;
    let mask = u64::from_str_radix(core::str::from_utf8(mask).ok()?, 16).ok()?;
    assert_internal!((1..=64).contains(&signal), "a signal is in the set of signals");
    Some(mask >> (signal - 1) & 1 == 1)
}

/// The value of a line `name value`, white space around it removed.
pub fn field<'a>(text: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    text.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(name)).map(<[u8]>::trim_ascii)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_the_thread() {
        assert_eq!(Path::new(0, b"stat").as_c_str(), c"/proc/self/task/0/stat");
        assert_eq!(Path::new(i32::MAX, b"comm").as_c_str(), c"/proc/self/task/2147483647/comm");
    }

    #[test]
    fn a_threads_name_and_state_are_read() {
        let thread = std::thread::Builder::new().name("a name of length > 15".into());
        let (tid, name, state, pending) = thread
            .spawn(|| {
                let tid = crate::kernel::thread();
                (tid, name(tid), thread_state(tid), is_pending(tid, 63))
            })
            .expect("a thread")
            .join()
            .expect("its answer");
        assert_eq!((&name, state, pending), (b"a name of lengt\0", ThreadState::Alive(b'R'), Some(false)));
        // `join` does not wait in every case until the kernel has removed the thread, which it does a little later.
        while thread_state(tid) != ThreadState::Ended {
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_name_with_parentheses_does_not_hide_the_state() {
        assert_eq!(parse_stat(b"12 (a) S (b)) D 1 2 3"), Some(ThreadState::Alive(b'D')));
        assert_eq!(parse_stat(b"12 (a) Z 1 2 3 4 5 16400 7"), Some(ThreadState::Ended));
        assert_eq!(parse_stat(b"12 (a"), None);
        assert_eq!(parse_stat(b"12 (a)"), None);
        assert_eq!(parse_stat(b""), None);
    }

    #[test]
    fn workers_of_the_kernel_are_known_by_their_flags() {
        assert_eq!(parse_stat(b"12 (iou-wrk-7) S 1 2 3 4 5 4194368 0 0"), Some(ThreadState::Alive(b'S')));
        assert_eq!(parse_stat(b"12 (iou-wrk-7) S 1 2 3 4 5 4194384 0 0"), Some(ThreadState::Worker));
        assert_eq!(parse_stat(b"12 (vhost-7) S 1 2 3 4 5 16384 0 0"), Some(ThreadState::Worker));
        assert_eq!(parse_stat(b"12 (a) R 16 16 16 16 16 1"), Some(ThreadState::Alive(b'R')));
    }

    #[test]
    fn fields_are_found_by_name() {
        assert_eq!(field(b"A:\t1\nSigPnd:\t00ff \nB: 2", b"SigPnd:"), Some(&b"00ff"[..]));
        assert_eq!(field(b"A: 1", b"B:"), None);
    }
}
