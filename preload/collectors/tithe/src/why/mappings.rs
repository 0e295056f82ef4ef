//! The mapping that contains an address, and its object: the names in a chain.

use core::ffi::CStr;
use core::ops::Range;

use heaptoll_runtime::system_call;

/// The list, as the calling thread sees it: under /proc/self it is empty once the main thread has ended.
const LIST: &CStr = c"/proc/thread-self/maps";

/// Memory for the text, bytes: the longest possible line, and a name.
pub const SCRATCH_BYTES: usize = 12 << 10;
/// The part of it for the name.
const NAME: usize = 4 << 10;

/// A mapping.
#[derive(Debug, PartialEq, Eq)]
pub struct Mapping<'a> {
    pub range: Range<usize>,
    /// The path of the object that it is data of, or the name in brackets; may be empty.
    pub name: &'a [u8],
    /// Where the object's first mapping begins; where this one does, if it has no object.
    pub base: usize,
}

/// Finds the mapping that an address lies in. `scratch` has [`SCRATCH_BYTES`] bytes.
pub fn find(address: usize, scratch: &mut [u8]) -> Option<Mapping<'_>> {
    // The C library's functions are cancellation points, and locks are held.
    // SAFETY: the kernel reads a path that ends with a zero.
    let opened = unsafe {
        let (path, flags) = (LIST.as_ptr() as usize, libc::O_CLOEXEC as usize);
        system_call(libc::SYS_openat, [libc::AT_FDCWD as usize, path, flags, 0, 0, 0])
    };
    let file = usize::try_from(opened).ok()?;
    let found = search(address, scratch, |to| {
        // SAFETY: the kernel writes at most `to.len()` bytes to `to`.
        let got = unsafe { system_call(libc::SYS_read, [file, to.as_mut_ptr() as usize, to.len(), 0, 0, 0]) };
        usize::try_from(got).unwrap_or(0)
    });
    // SAFETY: `file` was opened above, and no other code has it.
    unsafe { system_call(libc::SYS_close, [file, 0, 0, 0, 0, 0]) };
    found
}

/// As [`find`], in a text that `read` returns in pieces.
fn search(
    address: usize,
    scratch: &mut [u8],
    mut read: impl FnMut(&mut [u8]) -> usize,
) -> Option<Mapping<'_>> {
    let (name, text) = scratch.split_at_mut(NAME);
    let (mut length, mut base, mut end) = (0, 0, 0);
    let mut kept = 0;
    loop {
        let got = read(&mut text[kept..]);
        if got == 0 {
            return None;
        }
        let filled = kept + got;
        let mut done = 0;
        while let Some(line) = text[done..filled].iter().position(|&byte| byte == b'\n') {
            let (range, path) = parse(&text[done..done + line])?;
            done += line + 1;
            let is_object = path.first() == Some(&b'/');
            // An unnamed mapping directly after an object's data is its zeroed data.
            let goes_on =
                length > 0 && (is_object && path == &name[..length] || path.is_empty() && range.start == end);
            if !goes_on {
                length = path.len().min(NAME);
                name[..length].copy_from_slice(&path[..length]);
                base = range.start;
            }
            end = range.end;
            if range.contains(&address) {
                return Some(Mapping { range, name: &name[..length], base });
            }
        }
        text.copy_within(done..filled, 0);
        kept = filled - done;
    }
}

/// The addresses and the name of a line.
fn parse(line: &[u8]) -> Option<(Range<usize>, &[u8])> {
    let mut words = line.splitn(6, |&byte| byte == b' ');
    let (start, end) = core::str::from_utf8(words.next()?).ok()?.split_once('-')?;
    let range = usize::from_str_radix(start, 16).ok()?..usize::from_str_radix(end, 16).ok()?;
    let name = words.nth(4).unwrap_or(b"");
    Some((range, name.trim_ascii_start()))
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;

    const TEXT: &[u8] = b"\
1000-2000 r-xp 00000000 fe:01 77                         /usr/bin/a program\n\
2000-3000 rw-p 00001000 fe:01 77                         /usr/bin/a program\n\
3000-4000 rw-p 00000000 00:00 0 \n\
5000-6000 rw-p 00000000 00:00 0                          [heap]\n\
6000-7000 rw-p 00000000 00:00 0 \n\
8000-9000 rw-p 00000000 00:00 0 \n";

    fn named(address: usize, piece: usize) -> Option<(usize, std::string::String)> {
        let mut scratch = std::vec![0; SCRATCH_BYTES];
        let mut at = 0;
        let found = search(address, &mut scratch, |to| {
            let got = piece.min(to.len()).min(TEXT.len() - at);
            to[..got].copy_from_slice(&TEXT[at..at + got]);
            at += got;
            got
        })?;
        assert!(found.range.contains(&address));
        Some((found.base, std::string::String::from_utf8_lossy(found.name).into_owned()))
    }

    #[test]
    fn data_without_a_name_belongs_to_the_object_before_it() {
        for piece in [1, 7, 100, 10_000] {
            let program = Some((0x1000, "/usr/bin/a program".into()));
            for address in [0x1000, 0x2fff, 0x3008] {
                assert_eq!(named(address, piece), program);
            }
            assert_eq!(named(0x5010, piece), Some((0x5000, "[heap]".into())));
            assert_eq!(named(0x8010, piece), Some((0x8000, "".into())));
            assert_eq!((named(0, piece), named(0x4000, piece), named(0x9000, piece)), (None, None, None));
        }
    }

    #[test]
    fn a_function_lies_in_this_program() {
        let mut scratch = std::vec![0; SCRATCH_BYTES];
        let here = a_function_lies_in_this_program as *const () as usize;
        let found = find(here, &mut scratch).expect("the list");
        assert!(found.name.starts_with(b"/") && found.base < here && found.range.contains(&here));
    }
}
