//! Sizes as options give them.

use heaptoll_units::size;

/// A size as an option gives it, bytes.
pub fn bytes(text: &str) -> Result<u64, String> {
    size(text).ok_or_else(|| "a size is a whole number with K, M or G, such as 4G".to_owned())
}
