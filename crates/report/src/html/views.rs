//! Small values that templates show; all text in them is already printable.

use super::palette::{Mark, Palette};
use crate::ReportError;
use crate::document::{Link, Tone};
use crate::format::{self, printable};

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

/// A name, with the mark that it has in the palette.
pub(super) struct Chip {
    /// Name.
    pub name: String,
    /// Colour and symbol; none for names without.
    pub mark: Option<Mark>,
}

impl Chip {
    /// The chip of a name.
    pub fn of(name: &str, palette: &Palette) -> Self {
        Chip { name: printable(name), mark: palette.find(name) }
    }
}

/// An error of a template.
pub(super) fn encode(error: askama::Error) -> ReportError {
    ReportError::Encode { form: "HTML", detail: error.to_string() }
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
        Tone::Dim => "dim",
        Tone::Strong => "strong",
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
