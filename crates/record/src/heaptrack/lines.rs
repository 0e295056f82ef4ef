//! The lines of a recording, one at a time: a line without an end costs no more than the longest that heaptrack writes.

use std::io::{self, BufRead, BufReader, Read};

/// The longest line, bytes: names of functions have some thousands at most.
const LINE_MAX: u64 = 1 << 20;

/// The next line.
#[derive(Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// Without its end.
    Whole(&'a [u8]),
    /// The file ends within it.
    Cut,
    /// It is longer than any that is written.
    TooLong,
    /// There are no more.
    End,
}

/// A stream cut into lines.
pub struct Lines<R> {
    read: BufReader<R>,
    line: Vec<u8>,
    number: u64,
}

impl<R: Read> Lines<R> {
    pub fn new(read: R) -> Lines<R> {
        Lines { read: BufReader::with_capacity(256 << 10, read), line: Vec::new(), number: 0 }
    }

    /// The number of the line that was read last, from 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The next line.
    ///
    /// # Errors
    /// The stream's.
    pub fn next(&mut self) -> io::Result<Line<'_>> {
        self.line.clear();
        self.number += 1;
        (&mut self.read).take(LINE_MAX).read_until(b'\n', &mut self.line)?;
        Ok(match self.line.strip_suffix(b"\n") {
            Some(line) => Line::Whole(line),
            None if self.line.is_empty() => Line::End,
            None if self.line.len() as u64 == LINE_MAX => Line::TooLong,
            None => Line::Cut,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_an_end_and_a_length() {
        let mut lines = Lines::new(&b"v 1\n\n+ 5"[..]);
        assert_eq!(lines.next().expect("reads"), Line::Whole(b"v 1"));
        assert_eq!(lines.next().expect("reads"), Line::Whole(b""));
        assert_eq!(lines.next().expect("reads"), Line::Cut);
        assert_eq!(lines.number(), 3);
        assert_eq!(lines.next().expect("reads"), Line::End);
        let long = vec![b'a'; LINE_MAX as usize + 7];
        assert_eq!(Lines::new(&long[..]).next().expect("reads"), Line::TooLong);
    }
}
