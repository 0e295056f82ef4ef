//! A word that is stored in parts, as by copies byte for byte: a pointer once all of its bytes were stored.

/// The word to which a thread stored in part last.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Copying {
    /// Its address; 0 for none.
    pub word: u64,
    /// Which of its bytes were stored.
    bytes: u8,
    /// What it holds, if that may be a pointer.
    pub value: Option<u64>,
}

impl Copying {
    /// Adds a store to the same word.
    pub fn add(&mut self, bytes: u8, value: Option<u64>) {
        self.bytes |= bytes;
        self.value = value;
    }

    pub fn begin(word: u64, bytes: u8, value: Option<u64>) -> Copying {
        Copying { word, bytes, value }
    }

    /// Whether each of its bytes was stored.
    pub fn is_whole(&self) -> bool {
        self.bytes == 0xff
    }
}

/// Bytes of the aligned word at `word` that lie in a range.
pub(crate) fn bytes_within(word: u64, start: u64, end: u64) -> u8 {
    let from = start.max(word) - word;
    let to = end.min(word + 8) - word;
    (((1_u16 << to) - 1) & !((1_u16 << from) - 1)) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_a_range_are_those_of_the_word() {
        assert_eq!(bytes_within(16, 16, 24), 0xff);
        assert_eq!(bytes_within(16, 0, 100), 0xff);
        assert_eq!(bytes_within(16, 16, 17), 1);
        assert_eq!(bytes_within(16, 20, 24), 0xf0);
        assert_eq!(bytes_within(16, 12, 18), 3);
    }
}
