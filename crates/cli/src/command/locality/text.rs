//! Figures of `heaptoll locality` as text.

use heaptoll_report::format::{NONE, count, ratio};
use heaptoll_units::size_text;

/// A rate with three digits, none lost where it is small: `312`, `31.2`, `0.031`, `0.0004`.
pub fn rate(value: f64) -> String {
    match value {
        v if !v.is_finite() => NONE.to_owned(),
        0.0 => "0".to_owned(),
        v if v.abs() >= 99.95 => count(v),
        v if v.abs() >= 9.995 => format!("{v:.1}"),
        v if v.abs() >= 0.9995 => format!("{v:.2}"),
        v if v.abs() >= 0.0995 => format!("{v:.3}"),
        v if v.abs() >= 0.000_95 => format!("{v:.4}"),
        _ if value > 0.0 => "< 0.001".to_owned(),
        _ => "> -0.001".to_owned(),
    }
}

/// The same with its sign; `0` has none.
pub fn signed_rate(value: f64) -> String {
    let text = rate(value);
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
    rate(value as f64 / 1e6)
}

/// A size that need not be a round number: `340K`, `1.3M`.
pub fn about(bytes: u64) -> String {
    let exact = size_text(bytes);
    if exact.len() <= 5 {
        return exact;
    }
    match bytes as f64 {
        b if b < 1_048_576.0 => format!("{:.0}K", b / 1024.0),
        b if b < 1_073_741_824.0 => format!("{:.1}M", b / 1_048_576.0),
        b => format!("{:.2}G", b / 1_073_741_824.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_keep_three_digits() {
        let rates = [0.0, 312.4, 31.24, 3.124, 0.3124, 0.0312, 0.000_01, -0.000_01, -2.5, f64::NAN].map(rate);
        assert_eq!(rates.join(" "), "0 312 31.2 3.12 0.312 0.0312 < 0.001 > -0.001 -2.50 –");
        assert_eq!([2.5, -2.5, 0.0].map(signed_rate).join(" "), "+2.50 \u{2212}2.50 0");
        assert_eq!(signed_rate(0.000_01), "< +0.001");
        assert_eq!([7, -31_000, 0].map(signed_count).join(" "), "+7 \u{2212}31\u{202f}000 0");
        assert_eq!((over(3, 2), over(3, 0)), ("1.50".to_owned(), NONE.to_owned()));
        assert_eq!([64 << 10, 348_160, 1_400_000, 5 << 30].map(about).join(" "), "64K 340K 1.3M 5G");
    }
}
