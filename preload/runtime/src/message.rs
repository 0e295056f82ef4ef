//! A last message: put together on the stack and written to standard error at once, where nothing may be allocated.

use core::fmt;

use heaptoll_assertions::assert_internal;

/// A line of limited length; what does not fit is cut.
#[derive(Debug)]
pub struct Message {
    bytes: [u8; Self::CAPACITY],
    length: usize,
}

impl Message {
    const CAPACITY: usize = 512;

    /// Begins a line with the project's name.
    pub const fn new() -> Message {
        Message { bytes: [0; Self::CAPACITY], length: 0 }.put(b"heaptoll: ")
    }

    const fn put(mut self, text: &[u8]) -> Message {
        let mut at = 0;
        while at < text.len() && self.length < Self::CAPACITY - 1 {
            self.bytes[self.length] = text[at];
            self.length += 1;
            at += 1;
        }
        self
    }

    /// Appends a text.
    pub const fn text(self, text: &str) -> Message {
        self.put(text.as_bytes())
    }

    /// Appends an address in hexadecimal.
    pub const fn address(self, address: usize) -> Message {
        let mut digits = [0; 18];
        digits[0] = b'0';
        digits[1] = b'x';
        let mut length = 2;
        let mut shift = 64;
        while shift > 0 {
            shift -= 4;
            let digit = (address >> shift & 15) as u8;
            if digit != 0 || length > 2 || shift == 0 {
                digits[length] = if digit < 10 { b'0' + digit } else { b'a' + digit - 10 };
                length += 1;
            }
        }
        assert_internal!(length <= digits.len(), "an address has no more digits than a word");
        self.put(digits.split_at(length).0)
    }

    /// Appends a number in decimal: core's formatting would bring several KiB of code into every program.
    pub const fn number(self, number: u64) -> Message {
        let mut digits = [0; 20];
        let mut first = digits.len();
        let mut rest = number;
        loop {
            first -= 1;
            digits[first] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.put(digits.split_at(first).1)
    }

    /// The line, as far as it has come.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// Writes the line to standard error.
    pub fn write(mut self) {
        assert_internal!(self.length < Self::CAPACITY, "a message leaves a byte for the end of its line");
        self.bytes[self.length] = b'\n';
        // SAFETY: the buffer is valid for that many bytes. A failed write cannot be reported.
        unsafe { libc::write(2, self.bytes.as_ptr().cast(), self.length + 1) };
    }

    /// Writes the line and ends the process by SIGABRT.
    pub fn abort(self) -> ! {
        self.write();
        // SAFETY: `abort` takes no pointers and does not return.
        unsafe { libc::abort() }
    }
}

/// For the names of assertions in what is preloaded.
impl fmt::Write for Message {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let taken = Message { bytes: self.bytes, length: self.length };
        *self = taken.put(text.as_bytes());
        Ok(())
    }
}

impl Default for Message {
    fn default() -> Message {
        Message::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_without_leading_zeros() {
        let line = |address| Message::new().address(address);
        assert_eq!(line(0).as_bytes(), b"heaptoll: 0x0");
        assert_eq!(line(0x10f0).as_bytes(), b"heaptoll: 0x10f0");
        assert_eq!(line(usize::MAX).as_bytes(), b"heaptoll: 0xffffffffffffffff");
    }

    #[test]
    fn numbers_are_written_in_decimal() {
        let line = |number| Message::new().number(number);
        assert_eq!(line(0).as_bytes(), b"heaptoll: 0");
        assert_eq!(line(1080).as_bytes(), b"heaptoll: 1080");
        assert_eq!(line(u64::MAX).as_bytes(), b"heaptoll: 18446744073709551615");
    }

    #[test]
    fn what_does_not_fit_is_cut() {
        let mut line = Message::new();
        for _ in 0..100 {
            line = line.text("0123456789");
        }
        assert_eq!(line.as_bytes().len(), Message::CAPACITY - 1);
    }
}
