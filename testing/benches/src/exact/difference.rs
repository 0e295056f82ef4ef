//! How far one count is from another.

use heaptoll_units::number;

/// The excess of `now` over `before`, with its sign.
pub fn difference(now: u64, before: u64) -> String {
    let sign = if now < before { "-" } else { "+" };
    if now == before { "0".into() } else { format!("{sign}{}", number(now.abs_diff(before))) }
}

/// The same in per cent of `before`.
pub fn per_cent(now: u64, before: u64) -> f64 {
    match (now, before) {
        (0, 0) => 0.0,
        (_, 0) => f64::INFINITY,
        _ => (now as f64 / before as f64 - 1.0) * 100.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_differences_are_set() {
        assert_eq!(
            (number(0), number(999), number(1_234_567)),
            ("0".into(), "999".into(), "1\u{202f}234\u{202f}567".into())
        );
        assert_eq!(
            (difference(5, 5), difference(2000, 1), difference(1, 2)),
            ("0".into(), "+1999".into(), "-1".into())
        );
        assert_eq!((per_cent(0, 0), per_cent(101, 100) > 0.99, per_cent(1, 0)), (0.0, true, f64::INFINITY));
    }
}
