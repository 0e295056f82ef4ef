//! Small values that templates show; all text in them is already printable.

use crate::format;

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
