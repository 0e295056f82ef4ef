//! Lines that are broken between words.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The lines of a text, none wider than `width` where no character is. A word that is longer is broken where it is full.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    text.split('\n').flat_map(|line| one(line, width.max(1))).collect()
}

fn one(line: &str, width: usize) -> Vec<String> {
    if line.width() <= width {
        return vec![line.to_owned()];
    }
    let mut lines = Vec::new();
    let mut last: Option<String> = None;
    for word in line.split(' ') {
        let joined = last.as_ref().map_or(word.to_owned(), |last| format!("{last} {word}"));
        let mut rest = match last.take() {
            Some(full) if joined.width() > width => {
                lines.push(full.trim_end().to_owned());
                word.to_owned()
            }
            _ => joined,
        };
        while rest.width() > width {
            let after = rest.split_off(full_at(&rest, width));
            lines.push(std::mem::replace(&mut rest, after));
        }
        last = Some(rest);
    }
    lines.extend(last);
    lines
}

/// Bytes of the characters that fit, of one at least.
fn full_at(word: &str, width: usize) -> usize {
    let mut taken = 0;
    for (at, c) in word.char_indices() {
        taken += c.width().unwrap_or(0);
        if taken > width && at > 0 {
            return at;
        }
    }
    word.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words_and_long_words_where_they_are_full() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("a /very/long/path b", 8), ["a", "/very/lo", "ng/path", "b"]);
        assert_eq!(wrapped("first\nsecond line", 8), ["first", "second", "line"]);
        assert_eq!(wrapped("  indented text", 10), ["  indented", "text"]);
        assert_eq!(wrapped("", 3), [""]);
        assert_eq!(wrapped("日本語", 3), ["日", "本", "語"]);
        for width in 0..30 {
            let lines = wrapped("a sentence with averylongword in it", width);
            assert!(lines.iter().all(|line| line.width() <= width.max(1)), "{width}: {lines:?}");
            assert_eq!(lines.concat().replace(' ', ""), "asentencewithaverylongwordinit");
        }
    }
}
