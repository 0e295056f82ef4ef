//! Text without an allocator: into a buffer of limited size, counting what does not fit.

use heaptoll_assertions::assert_internal;
use heaptoll_runtime::system_call;

use crate::log::{Sink, digits};

/// A text under construction.
pub struct Text<'a> {
    place: &'a mut [u8],
    length: usize,
}

impl<'a> Text<'a> {
    pub fn new(place: &'a mut [u8]) -> Text<'a> {
        Text { place, length: 0 }
    }

    /// Its length, including bytes that did not fit.
    pub fn length(&self) -> usize {
        self.length
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        // The last byte is for the zero.
        let space = self.place.len().saturating_sub(1).saturating_sub(self.length);
        let fits = bytes.len().min(space);
        if fits > 0 {
            self.place[self.length..self.length + fits].copy_from_slice(&bytes[..fits]);
        }
        self.length += bytes.len();
    }

    pub fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    pub fn number(&mut self, number: usize) {
        self.text(digits(number as u64, &mut [0; 20]));
    }

    /// In hexadecimal.
    pub fn address(&mut self, address: usize) {
        self.text("0x");
        let nibbles = (usize::BITS - address.leading_zeros()).div_ceil(4).max(1);
        for nibble in (0..nibbles).rev() {
            let digit = (address >> (4 * nibble) & 15) as u8;
            self.bytes(&[if digit < 10 { b'0' + digit } else { b'a' + digit - 10 }]);
        }
    }

    /// Terminates it by a zero byte, which is not counted; returns the part that fitted.
    pub fn finish(&mut self) -> &[u8] {
        if self.place.is_empty() {
            return &[];
        }
        let end = self.length.min(self.place.len() - 1);
        assert_internal!(end < self.place.len(), "a text leaves a byte for its zero");
        self.place[end] = 0;
        &self.place[..end]
    }
}

/// Writes a line about an address to the log or to standard error, in one write.
pub fn write_line(sink: Option<Sink>, address: usize, line: &[u8]) {
    let mut place = [0; 1024];
    let mut text = Text::new(&mut place);
    text.text("pid=");
    // SAFETY: getpid takes no pointers and cannot fail.
    text.number(unsafe { libc::getpid() } as usize);
    text.text(" why=");
    text.address(address);
    text.text(" ");
    let space = 1024 - 2 - text.length();
    text.bytes(&line[..line.len().min(space)]);
    text.text("\n");
    let line = text.finish();
    match sink {
        Some(sink) => {
            sink.write(line);
        }
        // Not the C library's function: that is a cancellation point, and locks are held.
        // SAFETY: the kernel reads `line.len()` bytes of `line`. A failed write cannot be reported.
        None => unsafe {
            system_call(libc::SYS_write, [2, line.as_ptr() as usize, line.len(), 0, 0, 0]);
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_counted() {
        let mut place = [b'x'; 12];
        let mut text = Text::new(&mut place);
        text.text("at ");
        text.address(0x10f0);
        assert_eq!(text.length(), 9);
        text.text(", ");
        text.number(1234);
        assert_eq!(text.length(), 15);
        assert_eq!(text.finish(), b"at 0x10f0, ");
        assert_eq!(place[11], 0);
        let mut nowhere = Text::new(&mut []);
        nowhere.address(0);
        assert_eq!((nowhere.length(), nowhere.finish()), (3, &b""[..]));
    }
}
