//! The entries of a directory whose names are numbers: threads and descriptors, as `/proc` lists them.

use heaptoll_assertions::assert_internal;

use crate::buffer::Buffer;
use crate::kernel::{Error, File};

/// Bytes of directory entries read at once.
pub const CAPACITY: usize = 16 << 10;
/// Offsets in a directory entry: its length, and its name.
const LENGTH_AT: usize = 16;
const NAME_AT: usize = 19;

/// Visits the numbers among the names of a directory, from where the last reading ended. `entries` is scratch memory, at
/// least [`CAPACITY`] bytes of it reserved.
///
/// # Errors
/// The directory cannot be read, or what `visit` returns.
pub fn numbers<E: From<Error>>(
    directory: &File,
    entries: &mut Buffer<u8>,
    visit: &mut dyn FnMut(i32) -> Result<(), E>,
) -> Result<(), E> {
    loop {
        let got = directory.entries(entries.capacity_mut())?;
        assert_internal!(got <= entries.capacity_mut().len(), "entries that are read have space");
        if got == 0 {
            return Ok(());
        }
        for number in Names(entries.capacity_mut().get(..got).unwrap_or_default()) {
            visit(number)?;
        }
    }
}

/// The names in directory entries that are numbers.
struct Names<'a>(&'a [u8]);

impl Iterator for Names<'_> {
    type Item = i32;

    fn next(&mut self) -> Option<i32> {
        loop {
            let length = u16::from_ne_bytes(*self.0.get(LENGTH_AT..)?.first_chunk()?) as usize;
            let name = self.0.get(NAME_AT..length)?;
            self.0 = self.0.get(length..)?;
            assert_internal!(length > NAME_AT, "an entry of a directory has a name");
            if let Some(tid) = number(name) {
                return Some(tid);
            }
        }
    }
}

/// The number that a name begins with, up to its zero byte.
fn number(name: &[u8]) -> Option<i32> {
    let end = name.iter().position(|&byte| byte == 0)?;
    core::str::from_utf8(name.get(..end)?).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &[u8], out: &mut std::vec::Vec<u8>) {
        let length = (NAME_AT + name.len() + 1).next_multiple_of(8);
        let start = out.len();
        out.resize(start + length, 0);
        out[start + LENGTH_AT..start + LENGTH_AT + 2].copy_from_slice(&(length as u16).to_ne_bytes());
        out[start + NAME_AT..start + NAME_AT + name.len()].copy_from_slice(name);
    }

    #[test]
    fn numbers_are_taken_and_other_names_skipped() {
        let mut entries = std::vec::Vec::new();
        for name in [&b"."[..], b"..", b"1", b"4194304", b"x1", b"99999999999"] {
            entry(name, &mut entries);
        }
        assert!(Names(&entries).eq([1, 4_194_304]));
        assert!(Names(&entries[..entries.len() - 9]).eq([1, 4_194_304]));
        assert!(Names(&[]).next().is_none());
    }
}
