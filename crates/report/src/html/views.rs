//! Cells, chips and other small values that the template shows; all text in them is already printable.

use heaptoll_statistics::Interval;

use super::palette::Palette;
use crate::document::{Link, Tone};
use crate::format::{self, printable};

/// A stack's name with its mark.
#[derive(Clone)]
pub(super) struct Chip {
    /// Name.
    pub name: String,
    /// CSS colour.
    pub color: String,
    /// SVG path.
    pub path: &'static str,
}

impl Chip {
    /// The chip of a stack.
    pub fn of(stack: &str, palette: &Palette) -> Self {
        let mark = palette.mark(stack);
        Chip { name: format::printable(stack), color: mark.color, path: mark.path }
    }
}

/// A ratio in a table.
pub(super) struct Ratio {
    /// `0.91`, or words.
    pub text: String,
    /// `(0.88–0.94)`, or nothing.
    pub range: String,
    /// `less`, `more`, `same` or `none`: a class of the style sheet.
    pub class: &'static str,
}

impl Ratio {
    /// A ratio with its interval; `words` stands in where there is none.
    pub fn of(interval: Option<&Interval>, words: &str) -> Self {
        let Some(interval) = interval else {
            return Ratio { text: words.to_owned(), range: String::new(), class: "none" };
        };
        let text = format::interval(interval);
        let (text, range) = text.split_once(' ').unwrap_or((&text, ""));
        let class = match interval.differs {
            false => "same",
            true if interval.ratio < 1.0 => "less",
            true => "more",
        };
        Ratio { text: text.to_owned(), range: range.to_owned(), class }
    }
}

/// A name and what it is.
pub(super) struct Fact {
    /// Name.
    pub name: String,
    /// Text.
    pub text: String,
}

impl Fact {
    /// A fact with printable text.
    pub fn new(name: &str, text: impl AsRef<str>) -> Self {
        Fact { name: format::printable(name), text: format::printable(text.as_ref()) }
    }
}

/// Longer tables scroll in their box.
pub(super) const LONG: usize = 40;

/// Texts that show every character.
pub(super) fn texts(all: &[String]) -> Vec<String> {
    all.iter().map(|text| printable(text)).collect()
}

/// Where each link leads, and its text.
pub(super) fn links(all: &[Link]) -> Vec<(String, String)> {
    all.iter().map(|link| (link.id.clone(), printable(&link.text))).collect()
}

/// The class of the style sheet.
pub(super) fn class(tone: Tone) -> &'static str {
    match tone {
        Tone::Less => "less",
        Tone::More => "more",
        Tone::Same => "same",
    }
}

/// Rows may be put in another order where each has a name: one without belongs to the row above it.
pub(super) fn is_sortable<'a>(mut names: impl ExactSizeIterator<Item = Option<&'a str>>) -> bool {
    names.len() > 1 && names.all(|name| name.is_some_and(|name| !name.trim().is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_belong_to_the_row_above_keep_their_place() {
        assert!(is_sortable([Some("a"), Some("b")].into_iter()));
        assert!(!is_sortable([Some("a"), Some("")].into_iter()));
        assert!(!is_sortable([Some("a")].into_iter()));
    }
}
