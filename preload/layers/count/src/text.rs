//! A text of limited length in static memory: the report is written where nothing may be allocated.

/// A byte buffer. A part that does not fit is dropped, which is recorded.
pub struct Text {
    bytes: [u8; Self::CAPACITY],
    length: usize,
    /// Whether something did not fit.
    pub cut: bool,
}

impl Text {
    const CAPACITY: usize = 1 << 20;

    pub const fn new() -> Text {
        Text { bytes: [0; Self::CAPACITY], length: 0, cut: false }
    }

    pub fn clear(&mut self) {
        self.length = 0;
        self.cut = false;
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length.min(Self::CAPACITY)]
    }

    /// Appends bytes unchanged.
    pub fn put(&mut self, bytes: &[u8]) -> &mut Text {
        // The last bytes are reserved for the line that states that the text was cut.
        if self.length + bytes.len() > Self::CAPACITY - 64 {
            self.cut = true;
        } else {
            self.bytes[self.length..self.length + bytes.len()].copy_from_slice(bytes);
            self.length += bytes.len();
        }
        self
    }

    /// Appends a tab and a name, with control characters (a path may hold a newline) replaced.
    pub fn field(&mut self, name: &[u8]) -> &mut Text {
        self.put(b"\t");
        for &byte in name {
            self.put(&[if byte < 0x20 { b'?' } else { byte }]);
        }
        self
    }

    /// Appends a tab and a number.
    pub fn number(&mut self, mut value: u64) -> &mut Text {
        let mut digits = [0u8; 20];
        let mut at = digits.len();
        loop {
            at -= 1;
            digits[at] = b'0' + (value % 10) as u8;
            value /= 10;
            if value == 0 {
                break;
            }
        }
        self.put(b"\t").put(&digits[at..])
    }

    /// Ends the text, in the bytes reserved for that.
    pub fn finish(&mut self) {
        let last: &[u8] = if self.cut { b"\ncut\nend\n" } else { b"end\n" };
        self.bytes[self.length..self.length + last.len()].copy_from_slice(last);
        self.length += last.len();
    }
}
