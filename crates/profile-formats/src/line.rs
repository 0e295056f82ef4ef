//! Text that must stay on one line.

use std::borrow::Cow;

/// The text with a space for each control character: formats of lines have no way to write one.
pub fn one_line(text: &str) -> Cow<'_, str> {
    if text.chars().any(char::is_control) {
        Cow::Owned(text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect())
    } else {
        Cow::Borrowed(text)
    }
}
