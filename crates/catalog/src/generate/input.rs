//! What the enumeration of generators requires of each, apart from it, so that no generator depends on the list.

use std::io::{self, Write};

/// What each kind of input implements.
pub(crate) trait Generate {
    /// Raised whenever the bytes for the same parameters change, so that cached inputs are not mistaken for new ones.
    const VERSION: u32;

    /// Writes the input. Only `out` can fail.
    fn generate(&self, out: &mut dyn Write) -> io::Result<()>;
}
