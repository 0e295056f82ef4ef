//! Versions of heaptoll, in files that one heaptoll writes and another reads.

/// This one.
pub const OURS: &str = env!("CARGO_PKG_VERSION");

/// Whether a version is later than this one. What is no version is not.
pub fn is_later(version: &str) -> bool {
    matches!((numbers(version), numbers(OURS)), (Some(theirs), Some(ours)) if theirs > ours)
}

/// The numbers of `1.2.3`; missing ones are zero, and what follows a `-` or `+` does not count.
pub fn numbers(version: &str) -> Option<[u64; 3]> {
    let mut numbers = [0; 3];
    let plain = version.split(['-', '+']).next()?;
    for (at, part) in plain.split('.').enumerate() {
        *numbers.get_mut(at)? = part.parse().ok()?;
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        assert!(numbers("0.10.0") > numbers("0.9.9"));
        assert_eq!(numbers("1.2"), Some([1, 2, 0]));
        assert_eq!(numbers("1.2.3-beta.1"), Some([1, 2, 3]));
        assert_eq!((numbers(""), numbers("new"), numbers("1.2.3.4")), (None, None, None));
        assert!(is_later("999.0") && !is_later(OURS) && !is_later("0.0.1") && !is_later("next"));
    }
}
