//! What blocks are filled with while they are held, and which bytes of it have changed.

use core::fmt::Write;

use heaptoll_next::stderr_line::StderrLine;

/// Every byte of a held block. Eight of them are no address that x86-64 can have, so that a program that follows a
/// pointer which it reads there is stopped.
pub const FILL: u8 = 0xf5;

/// Of larger blocks only so many bytes are filled, and the last page: a large block's pages may never have been
/// touched.
pub const MOST: usize = 1 << 20;
const LAST: usize = 4096;

/// The first run of changed bytes in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// From the block's beginning, bytes.
    pub offset: usize,
    /// To the next unchanged one.
    pub bytes: usize,
    /// The first of them.
    pub found: [u8; 16],
}

impl Change {
    /// The line that reports it: `written after free: 2 bytes at offset 24 of the 56-byte block at 0x5581: 2a 00`.
    pub fn line(&self, block: usize, bytes: usize) -> StderrLine {
        let mut line = StderrLine::new();
        let s = if self.bytes == 1 { "" } else { "s" };
        // A line that is full is cut off, so the results are ignored.
        let _ = write!(
            line,
            "written after free: {} byte{s} at offset {} of the {bytes}-byte block at {block:#x}:",
            self.bytes, self.offset
        );
        for byte in &self.found[..self.found.len().min(self.bytes)] {
            let _ = write!(line, " {byte:02x}");
        }
        if self.bytes > self.found.len() {
            line.put(b" ...");
        }
        line
    }
}

/// Ranges of a block that are filled; the second may be empty.
fn ranges(bytes: usize) -> [(usize, usize); 2] {
    if bytes <= MOST { [(0, bytes), (bytes, bytes)] } else { [(0, MOST), (MOST.max(bytes - LAST), bytes)] }
}

/// Fills a block.
///
/// # Safety
/// It has so many bytes, and no other thread may access them.
pub unsafe fn fill(block: *mut u8, bytes: usize) {
    for (start, end) in ranges(bytes) {
        // SAFETY: `ranges` returns ranges within `bytes`, which the block has, as this function requires.
        unsafe { block.add(start).write_bytes(FILL, end - start) };
    }
}

/// What has changed since.
///
/// # Safety
/// It can be read for so many bytes. (A write to it meanwhile is the defect to be found.)
pub unsafe fn changed(block: *const u8, bytes: usize) -> Option<Change> {
    for (start, end) in ranges(bytes) {
        // SAFETY: within the block, which is all initialised since it was filled.
        let filled = unsafe { core::slice::from_raw_parts(block.add(start), end - start) };
        if let Some(change) = first_change(filled, FILL) {
            return Some(Change { offset: start + change.offset, ..change });
        }
    }
    None
}

/// The first run of bytes that are others than `fill`.
pub(crate) fn first_change(filled: &[u8], fill: u8) -> Option<Change> {
    let offset = first_other(filled, fill)?;
    let rest = &filled[offset..];
    let bytes = rest.iter().position(|&byte| byte == fill).unwrap_or(rest.len());
    let mut found = [0; 16];
    let kept = bytes.min(found.len());
    found[..kept].copy_from_slice(&rest[..kept]);
    Some(Change { offset, bytes, found })
}

/// The first byte that is another one.
fn first_other(bytes: &[u8], fill: u8) -> Option<usize> {
    let mut at = 0;
    // The compiler compares whole chunks at once.
    while let Some(chunk) = bytes.get(at..at + 64) {
        if chunk.iter().fold(0, |sum, &byte| sum | (byte ^ fill)) != 0 {
            break;
        }
        at += 64;
    }
    bytes[at..].iter().position(|&byte| byte != fill).map(|rest| at + rest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_changed_byte_is_found_and_nothing_else(bytes in 1usize..5000, at in 0usize..5000, to: u8) {
            let mut block = std::vec![0u8; bytes];
            // SAFETY: the vector's own bytes.
            let before = unsafe { fill(block.as_mut_ptr(), bytes); changed(block.as_ptr(), bytes) };
            prop_assert_eq!(before, None);
            let at = at % bytes;
            block[at] = to;
            // SAFETY: the vector's own bytes.
            let change = unsafe { changed(block.as_ptr(), bytes) };
            if to == FILL {
                prop_assert_eq!(change, None);
            } else {
                let mut found = [0; 16];
                found[0] = to;
                prop_assert_eq!(change, Some(Change { offset: at, bytes: 1, found }));
            }
        }
    }

    #[test]
    fn of_large_blocks_the_beginning_and_the_last_page_are_checked() {
        let bytes = MOST + 100_000;
        let mut block = std::vec![0u8; bytes];
        // SAFETY: the vector's own bytes.
        unsafe { fill(block.as_mut_ptr(), bytes) };
        assert_eq!(block[MOST], 0);
        for (at, seen) in [
            (0, true),
            (MOST - 1, true),
            (MOST, false),
            (bytes - LAST - 1, false),
            (bytes - LAST, true),
            (bytes - 1, true),
        ] {
            let before = block[at];
            block[at] = 1;
            // SAFETY: the vector's own bytes.
            let change = unsafe { changed(block.as_ptr(), bytes) };
            assert_eq!(change.map(|change| change.offset), seen.then_some(at));
            block[at] = before;
        }
        block[10..40].fill(3);
        // SAFETY: the vector's own bytes.
        let change = unsafe { changed(block.as_ptr(), bytes) };
        assert_eq!(change, Some(Change { offset: 10, bytes: 30, found: [3; 16] }));
    }
}
