//! Numbers and times in few bytes: seven bits of a number a byte, the least first, and times as differences.

use super::distance::Span;

/// What is written.
#[derive(Default)]
pub struct Packed(pub Vec<u8>);

impl Packed {
    /// A number.
    pub fn number(&mut self, mut value: u64) {
        while value > 0x7f {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// A text, or that there is none.
    pub fn text(&mut self, text: Option<&str>) {
        self.number(text.map_or(0, |text| text.len() as u64 + 1));
        self.0.extend(text.unwrap_or_default().bytes());
    }

    /// A time, after one that began at `before`; they are in the order of their beginnings, or take more bytes.
    pub fn span(&mut self, span: Span, before: &mut u64) {
        self.number(span.start_ns.wrapping_sub(*before));
        self.number(span.end_ns.wrapping_sub(span.start_ns));
        *before = span.start_ns;
    }
}

/// What is left to read.
pub struct Unpacked<'a>(pub &'a [u8]);

impl Unpacked<'_> {
    /// The next number.
    pub fn number(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// The next text; the outer `None` where there is something else.
    pub fn text(&mut self) -> Option<Option<String>> {
        let Some(length) = self.number()?.checked_sub(1) else { return Some(None) };
        let (text, rest) = self.0.split_at_checked(usize::try_from(length).ok()?)?;
        self.0 = rest;
        Some(Some(String::from_utf8(text.into()).ok()?))
    }

    /// The next time.
    pub fn span(&mut self, before: &mut u64) -> Option<Span> {
        let start_ns = before.wrapping_add(self.number()?);
        *before = start_ns;
        Some(Span { start_ns, end_ns: start_ns.wrapping_add(self.number()?) })
    }
}
