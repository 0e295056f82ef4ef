//! A text that the kernel writes, taken a line at a time: the list of mappings, and what it has of descriptors and timers.

use heaptoll_assertions::assert_internal;

use crate::buffer::{Buffer, NoMemory};
use crate::kernel::Error;

/// Initial capacity for the text, bytes; a longer line makes it grow.
pub const INITIAL_CAPACITY: usize = 32 << 10;

/// Takes text from a source, in pieces of any size, until it gives nothing, and shows the lines. Returns whether the text
/// ended with one. `text` is scratch memory.
///
/// # Errors
/// Those of the source and of `each`, or no memory for a line.
pub fn each<E: From<Error> + From<NoMemory>>(
    text: &mut Buffer<u8>,
    mut source: impl FnMut(&mut [u8]) -> Result<usize, Error>,
    each: &mut dyn FnMut(&[u8]) -> Result<(), E>,
) -> Result<bool, E> {
    text.reserve(INITIAL_CAPACITY)?;
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
        let bytes = text.capacity_mut().get(..filled).unwrap_or_default();
        let mut done = 0;
        while let Some(length) = bytes[done..].iter().position(|&byte| byte == b'\n') {
            each(&bytes[done..done + length])?;
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
            return Ok(kept == 0);
        }
    }
}
