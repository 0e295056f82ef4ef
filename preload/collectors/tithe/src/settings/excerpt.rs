//! The beginning of a variable's name or value, for the message that refuses it.

use heaptoll_runtime::Message;

/// The beginning of a text from the environment, which the program may change later. It is short because an error is
/// returned by value, without an allocator to box it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Excerpt<const CAPACITY: usize> {
    bytes: [u8; CAPACITY],
    length: u8,
    cut: bool,
}

impl<const CAPACITY: usize> Excerpt<CAPACITY> {
    pub fn of(text: &[u8]) -> Excerpt<CAPACITY> {
        const { assert!(CAPACITY <= u8::MAX as usize) };
        let length = text.len().min(CAPACITY);
        let mut bytes = [0; CAPACITY];
        bytes[..length].copy_from_slice(&text[..length]);
        Excerpt { bytes, length: length as u8, cut: length < text.len() }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length as usize]
    }

    /// Appends it; bytes that are not UTF-8, and control characters, become question marks.
    pub fn show(&self, mut line: Message) -> Message {
        for chunk in self.bytes().utf8_chunks() {
            for character in chunk.valid().chars() {
                let mut place = [0; 4];
                let shown = if character.is_control() { '?' } else { character };
                line = line.text(shown.encode_utf8(&mut place));
            }
            if !chunk.invalid().is_empty() {
                line = line.text("?");
            }
        }
        if self.cut { line.text("...") } else { line }
    }
}
