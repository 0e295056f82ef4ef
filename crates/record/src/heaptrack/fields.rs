//! The fields of a line: a letter, then numbers in hexadecimal and texts, separated by spaces.

/// What is left of a line.
#[derive(Debug, Clone, Copy)]
pub struct Fields<'a> {
    rest: &'a [u8],
    /// Since version 3 of the format a text follows its length.
    sized: bool,
}

impl<'a> Fields<'a> {
    /// The letter of a line and its fields; none where it is no such line.
    pub fn of(line: &'a [u8], sized: bool) -> Option<(u8, Fields<'a>)> {
        match line {
            [letter] => Some((*letter, Fields { rest: b"", sized })),
            [letter, b' ', rest @ ..] => Some((*letter, Fields { rest, sized })),
            _ => None,
        }
    }

    /// The next number; none where there is none, or none that 64 bits hold.
    pub fn hex(&mut self) -> Option<u64> {
        let end = self.rest.iter().position(|&byte| byte == b' ').unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(end);
        if digits.is_empty() || digits.len() > 16 {
            return None;
        }
        let number = digits.iter().try_fold(0, |sum: u64, &digit| {
            let value = char::from(digit).to_digit(16)?;
            Some(sum << 4 | u64::from(value))
        })?;
        self.rest = rest.strip_prefix(b" ").unwrap_or(rest);
        Some(number)
    }

    /// The next number as one of 32 bits.
    pub fn hex32(&mut self) -> Option<u32> {
        self.hex().and_then(|number| u32::try_from(number).ok())
    }

    /// The next text: of its length, or up to a space.
    pub fn text(&mut self) -> Option<&'a [u8]> {
        let end = match self.sized {
            true => usize::try_from(self.hex()?).ok()?,
            false => self.rest.iter().position(|&byte| byte == b' ').unwrap_or(self.rest.len()),
        };
        let (text, rest) = self.rest.split_at_checked(end)?;
        self.rest = rest.strip_prefix(b" ").unwrap_or(rest);
        Some(text)
    }

    /// A text that is the last field, and may have spaces.
    pub fn last_text(&mut self) -> Option<&'a [u8]> {
        if self.sized {
            return self.text();
        }
        Some(std::mem::take(&mut self.rest))
    }

    /// All that is left, as it is.
    pub fn rest(self) -> &'a [u8] {
        self.rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &[u8], sized: bool) -> Fields<'_> {
        Fields::of(line, sized).expect("a line").1
    }

    #[test]
    fn numbers_are_hexadecimal_and_texts_may_have_lengths() {
        let mut fields = of(b"m 4 a/ b ffff 1g", true);
        assert_eq!((fields.text(), fields.hex(), fields.hex()), (Some(&b"a/ b"[..]), Some(0xffff), None));
        let mut fields = of(b"m /lib/x.so 7f00", false);
        assert_eq!(
            (fields.text(), fields.hex(), fields.hex()),
            (Some(&b"/lib/x.so"[..]), Some(0x7f00), None)
        );
        assert_eq!(of(b"s a b c", false).last_text(), Some(&b"a b c"[..]));
        assert_eq!(of(b"s 3 a b", true).last_text(), Some(&b"a b"[..]));
        assert_eq!(of(b"s ff a b", true).last_text(), None, "a length that lies");
        assert_eq!(of(b"+ 10000000000000000", false).hex(), None, "more than 64 bits");
        assert_eq!(of(b"+ 100000000", false).hex32(), None);
        assert!(Fields::of(b"", false).is_none() && Fields::of(b"ab", false).is_none());
        assert_eq!(of(b"A", false).hex(), None);
    }
}
