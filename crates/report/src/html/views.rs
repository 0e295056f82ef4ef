//! Cells, chips and other small values that the template shows; all text in them is already printable.

use heaptoll_statistics::Interval;

use super::palette::Palette;
use crate::format;

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
