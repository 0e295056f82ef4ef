//! What `/proc` says about one thread: its name, its state, whether a signal waits for it.

use core::ffi::CStr;

use crate::kernel::{Error, File};

/// Bytes of a name, the zero byte at its end included.
pub const NAME: usize = 16;

/// The kernel's letters for threads that have ended.
const ENDED: &[u8] = b"ZXx";

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

/// Reads a file of a thread, as much as there is room for.
fn read<'a>(tid: i32, file: &[u8], to: &'a mut [u8]) -> Result<&'a [u8], Error> {
    let file = File::open(Path::new(tid, file).as_c_str())?;
    let mut length = 0;
    while let Some(room) = to.get_mut(length..).filter(|room| !room.is_empty()) {
        let got = file.read(room)?;
        if got == 0 {
            break;
        }
        length += got;
    }
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

/// The letter of a thread's state (`proc(5)`), `?` if it cannot be read; `None`: there is no such thread.
pub fn state(tid: i32) -> Option<u8> {
    let mut room = [0; 256];
    match read(tid, b"stat", &mut room) {
        Ok(text) => Some(state_in(text).unwrap_or(b'?')),
        Err(Error(libc::ENOENT | libc::ESRCH)) => None,
        Err(_) => Some(b'?'),
    }
}

/// The state follows the name, which may itself hold anything, parentheses and spaces too.
fn state_in(text: &[u8]) -> Option<u8> {
    let end = text.iter().rposition(|&byte| byte == b')')?;
    text.get(end + 2).copied()
}

/// Whether a thread has ended: it is not there, or is a zombie.
pub fn has_ended(tid: i32) -> bool {
    state(tid).is_none_or(|state| ENDED.contains(&state))
}

/// Whether a signal waits for a thread to unblock it; `None`: unknown.
pub fn is_pending(tid: i32, signal: i32) -> Option<bool> {
    let mut room = [0; 4096];
    let text = read(tid, b"status", &mut room).ok()?;
    let mask = field(text, b"SigPnd:")?;
    let mask = u64::from_str_radix(core::str::from_utf8(mask).ok()?, 16).ok()?;
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
    fn a_thread_is_named_and_its_state_told() {
        let thread = std::thread::Builder::new().name("a name of length > 15".into());
        let (tid, name, state, pending) = thread
            .spawn(|| {
                let tid = crate::kernel::thread();
                (tid, name(tid), state(tid), is_pending(tid, 63))
            })
            .expect("a thread")
            .join()
            .expect("its answer");
        assert_eq!((&name, state, pending), (b"a name of lengt\0", Some(b'R'), Some(false)));
        // Its end is not waited for by join in every case: the kernel lets go of it a little later.
        while !has_ended(tid) {
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_name_with_parentheses_does_not_hide_the_state() {
        assert_eq!(state_in(b"12 (a) S (b)) D 1 2 3"), Some(b'D'));
        assert_eq!(state_in(b"12 (a)"), None);
        assert_eq!(state_in(b""), None);
    }

    #[test]
    fn fields_are_found_by_name() {
        assert_eq!(field(b"A:\t1\nSigPnd:\t00ff \nB: 2", b"SigPnd:"), Some(&b"00ff"[..]));
        assert_eq!(field(b"A: 1", b"B:"), None);
    }
}
