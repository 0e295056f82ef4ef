//! Figures of `heaptoll exact locality` as text.

use heaptoll_units::{NONE, count, ratio, small};

/// The same with its sign; `0` has none.
pub fn signed_rate(value: f64) -> String {
    let text = small(value);
    match value {
        v if v > 0.0 && text.starts_with('<') => text.replacen("< ", "< +", 1),
        v if v > 0.0 => format!("+{text}"),
        _ => text.replacen('-', "\u{2212}", 1),
    }
}

/// A count with its sign; `0` has none.
pub fn signed_count(value: i64) -> String {
    let text = count(value.unsigned_abs() as f64);
    match value {
        0 => text,
        v if v > 0 => format!("+{text}"),
        _ => format!("\u{2212}{text}"),
    }
}

/// A figure over the baseline's.
pub fn over(value: u64, baseline: u64) -> String {
    if baseline == 0 { NONE.to_owned() } else { ratio(value as f64 / baseline as f64) }
}

/// A count of millions, three digits.
pub fn millions(value: u64) -> String {
    small(value as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_have_their_sign() {
        assert_eq!([2.5, -2.5, 0.0].map(signed_rate).join(" "), "+2.50 \u{2212}2.50 0");
        assert_eq!(signed_rate(0.000_01), "< +0.001");
        assert_eq!([7, -31_000, 0].map(signed_count).join(" "), "+7 \u{2212}31\u{202f}000 0");
        assert_eq!((over(3, 2), over(3, 0)), ("1.50".to_owned(), NONE.to_owned()));
    }
}
