//! The list of the process's mappings, read as text a piece at a time.
//!
//! It is read from the calling thread's entry, not from the process's: when the main thread has ended by
//! `pthread_exit`, the process's own list is empty.

use core::ffi::CStr;

use heaptoll_assertions::assert_internal;
use heaptoll_runtime::MapsEntry;

use crate::buffer::{Buffer, NoMemory};
use crate::kernel::{Error, File};

const LIST: &CStr = c"/proc/thread-self/maps";

/// Initial capacity for the text, bytes; a longer line makes it grow.
const INITIAL_CAPACITY: usize = 32 << 10;

/// Why there is no list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MapsError {
    NoMemory,
    Unreadable,
}

impl From<NoMemory> for MapsError {
    fn from(_: NoMemory) -> MapsError {
        MapsError::NoMemory
    }
}

impl From<Error> for MapsError {
    fn from(_: Error) -> MapsError {
        MapsError::Unreadable
    }
}

/// Reads the list and shows each mapping, in the order of addresses. `text` is scratch memory.
pub fn read(
    text: &mut Buffer<u8>,
    each: &mut dyn FnMut(MapsEntry<'_>) -> Result<(), NoMemory>,
) -> Result<(), MapsError> {
    let list = File::open(LIST)?;
    text.reserve(INITIAL_CAPACITY)?;
    split(text, |to| list.read(to), each)
}

/// Takes text from a source, in pieces of any size, until it gives nothing, and shows the lines.
fn split(
    text: &mut Buffer<u8>,
    mut source: impl FnMut(&mut [u8]) -> Result<usize, Error>,
    each: &mut dyn FnMut(MapsEntry<'_>) -> Result<(), NoMemory>,
) -> Result<(), MapsError> {
    // What has been read and not shown: the beginning of a line.
    let mut kept = 0;
    loop {
        if kept == text.capacity_mut().len() {
            text.reserve(kept + 1)?;
        }
        let got = source(text.capacity_mut().get_mut(kept..).unwrap_or_default())?;
        let filled = kept + got;
        assert_internal!(
            filled <= text.capacity_mut().len(),
            "a source gives no more text than there is space for"
        );
        let bytes = text.capacity_mut().get(..filled).ok_or(MapsError::Unreadable)?;
        let mut done = 0;
        while let Some(length) = bytes[done..].iter().position(|&byte| byte == b'\n') {
            each(MapsEntry::parse(&bytes[done..done + length]).ok_or(MapsError::Unreadable)?)?;
            done += length + 1;
            assert_internal!(bytes[done - 1] == b'\n', "a line begins where the one before has ended");
        }
        assert_internal!(done <= filled, "lines that are shown were read");
        text.capacity_mut().copy_within(done..filled, 0);
        kept = filled - done;
        assert_internal!(
            !text.capacity_mut()[..kept].contains(&b'\n'),
            "what is kept of a text is the beginning of one line"
        );
        if got == 0 {
            return if kept == 0 { Ok(()) } else { Err(MapsError::Unreadable) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::ops::Range;
    use proptest::prelude::*;
    use std::string::String;
    use std::vec::Vec;

    #[derive(Debug, Clone, PartialEq)]
    struct OwnedEntry {
        range: Range<usize>,
        access: [bool; 4],
        name: Vec<u8>,
    }

    impl From<MapsEntry<'_>> for OwnedEntry {
        fn from(line: MapsEntry<'_>) -> OwnedEntry {
            OwnedEntry {
                range: line.range,
                access: [line.readable, line.writable, line.executable, line.private],
                name: line.name.to_vec(),
            }
        }
    }

    impl OwnedEntry {
        /// As the kernel writes it: padded to a column before the name.
        fn text(&self, offset: u64, device: (u8, u8), inode: u32) -> Vec<u8> {
            let letter = |at: usize, letter: char| if self.access[at] { letter } else { '-' };
            let mut line = std::format!(
                "{:08x}-{:08x} {}{}{}{} {offset:08x} {:02x}:{:02x} {inode} ",
                self.range.start,
                self.range.end,
                letter(0, 'r'),
                letter(1, 'w'),
                letter(2, 'x'),
                if self.access[3] { 'p' } else { 's' },
                device.0,
                device.1,
            );
            if !self.name.is_empty() {
                while line.len() < 73 {
                    line.push(' ');
                }
            }
            let mut line = line.into_bytes();
            line.extend(&self.name);
            line.push(b'\n');
            line
        }
    }

    /// Splits a text given in pieces of these sizes, over and over.
    fn lines(text: &[u8], sizes: &[usize]) -> Result<Vec<OwnedEntry>, MapsError> {
        let mut buffer = Buffer::new();
        let (mut at, mut turn, mut found) = (0, 0, Vec::new());
        let source = |to: &mut [u8]| {
            let size = sizes[turn % sizes.len()].min(to.len()).min(text.len() - at);
            turn += 1;
            to[..size].copy_from_slice(&text[at..at + size]);
            at += size;
            Ok(size)
        };
        split(&mut buffer, source, &mut |line| {
            found.push(line.into());
            Ok(())
        })?;
        Ok(found)
    }

    prop_compose! {
        fn mapping()(
            start in 0..usize::MAX - 1,
            length in 1..usize::MAX,
            access in any::<[bool; 4]>(),
            name in prop_oneof![
                Just(String::new()),
                Just(String::from("[heap]")),
                "\\[anon:[a-z ]{0,70}\\]",
                "/[a-z /.:()\\\\0-9]{0,200}[a-z]",
            ],
        ) -> OwnedEntry {
            let range = start..start.saturating_add(length);
            OwnedEntry { range, access, name: name.into_bytes() }
        }
    }

    proptest! {
        #[test]
        fn what_was_written_is_read_in_pieces_of_any_size(
            mappings in prop::collection::vec((mapping(), any::<(u64, (u8, u8), u32)>()), 0..40),
            sizes in prop::collection::vec(1..300_usize, 1..10),
        ) {
            let mut text = Vec::new();
            for (mapping, (offset, device, inode)) in &mappings {
                text.extend(mapping.text(*offset, *device, *inode));
            }
            let expected: Vec<OwnedEntry> = mappings.into_iter().map(|(mapping, _)| mapping).collect();
            prop_assert_eq!(lines(&text, &sizes), Ok(expected));
        }

        #[test]
        fn any_bytes_are_read_or_refused(text in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = lines(&text, &[7]);
            let _ = MapsEntry::parse(&text);
        }

        #[test]
        fn a_text_that_ends_within_a_line_is_refused(mapping in mapping(), cut in 1..40_usize) {
            let text = mapping.text(0, (0, 0), 0);
            prop_assert_eq!(lines(&text[..text.len() - cut], &[100]), Err(MapsError::Unreadable));
        }
    }

    #[test]
    fn a_line_longer_than_the_buffer_is_read_whole() {
        let mapping = OwnedEntry {
            range: 4096..8192,
            access: [true; 4],
            name: [&b"/"[..], &[b'a'; 3 * INITIAL_CAPACITY]].concat(),
        };
        let text = mapping.text(0, (8, 1), 99);
        assert_eq!(lines(&text, &[4096]), Ok(std::vec![mapping]));
    }

    #[test]
    fn backward_ranges_and_numbers_too_large_are_refused() {
        for line in
            ["2000-1000 rw-p 0 0:0 0", "1000-1000 rw-p 0 0:0 0", "11111111111111111-2 rw-p 0 0:0 0", "-"]
        {
            assert_eq!(MapsEntry::parse(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn this_process_has_a_stack_and_code() {
        let mut text = Buffer::new();
        let here = this_process_has_a_stack_and_code as *const () as usize;
        let (mut code, mut last) = (false, 0);
        read(&mut text, &mut |line| {
            assert!(line.range.start >= last);
            last = line.range.end;
            code |= line.range.contains(&here) && line.executable && !line.writable && line.name[0] == b'/';
            Ok(())
        })
        .expect("the list");
        assert!(code);
    }
}
