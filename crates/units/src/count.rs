//! Counts, and figures whose unit stands elsewhere.

use crate::NONE;

/// A count, grouped by thin spaces from five digits on.
pub fn count(value: f64) -> String {
    if value.is_finite() { grouped(value.round() as i128) } else { NONE.to_owned() }
}

/// A whole number, grouped.
pub fn number(value: u64) -> String {
    grouped(value.into())
}

/// Events per second: `1 234 a second`, `31.2 million a second`.
pub fn rate(value: f64) -> String {
    match value {
        value if value >= 1e6 => format!("{} million a second", three_digits(value / 1e6)),
        value => format!("{} a second", count(value)),
    }
}

/// A figure of unknown unit (a server's own report): three or four significant digits, grouped.
pub fn significant(value: f64) -> String {
    match value.abs() {
        a if !a.is_finite() => NONE.to_owned(),
        a if a >= 999.5 => grouped(value.round() as i128),
        a if a >= 99.95 => format!("{value:.1}"),
        a if a >= 9.995 => format!("{value:.2}"),
        0.0 => "0".to_owned(),
        a if a >= 0.0995 => format!("{value:.3}"),
        a if a >= 0.000995 => format!("{value:.4}"),
        a if a >= 1e-6 => format!("{value:.*}", (2.0 - a.log10().floor()) as usize),
        _ => format!("{value:.2e}"),
    }
}

/// Three digits that count, in a sentence: `1.62`, `0.0831`, `12345`.
pub fn figure(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        size if size >= 0.1 => format!("{value:.3}"),
        size if size >= 0.01 => format!("{value:.4}"),
        size if size >= 0.001 => format!("{value:.5}"),
        _ => format!("{value:.2e}"),
    }
}

/// A figure of a column that holds large and small ones, three digits, up to four decimals: `312`, `31.2`, `0.0312`,
/// `0.0010`. What is not nothing is not shown as nothing: `< 0.001`.
pub fn small(value: f64) -> String {
    match value.abs() {
        v if !v.is_finite() => NONE.to_owned(),
        0.0 => "0".to_owned(),
        v if v >= 99.95 => count(value),
        v if v >= 9.995 => format!("{value:.1}"),
        v if v >= 0.9995 => format!("{value:.2}"),
        v if v >= 0.0995 => format!("{value:.3}"),
        v if v >= 0.000_95 => format!("{value:.4}"),
        _ if value > 0.0 => "< 0.001".to_owned(),
        _ => "> -0.001".to_owned(),
    }
}

/// An average of counts: a decimal below a hundred.
pub fn tenths(value: f64) -> String {
    match value {
        value if !value.is_finite() => NONE.to_owned(),
        value if value < 99.95 => format!("{value:.1}"),
        value => count(value),
    }
}

/// Three digits, at most two of them decimals.
pub fn three_digits(value: f64) -> String {
    match value {
        value if value >= 999.5 => count(value),
        value if value >= 99.95 => format!("{value:.0}"),
        value if value >= 9.995 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

/// Digits in groups of three, by a thin no-break space, from five digits on.
pub(crate) fn grouped(value: i128) -> String {
    let digits = value.unsigned_abs().to_string();
    let sign = if value < 0 { "-" } else { "" };
    if digits.len() < 5 {
        return format!("{sign}{digits}");
    }
    let mut text = String::from(sign);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped_from_five_digits_on() {
        assert_eq!(
            [999.0, 9999.0, 31_000.0, -12_345_678.0].map(count).join(" "),
            "999 9999 31\u{202f}000 -12\u{202f}345\u{202f}678"
        );
        assert_eq!([0, 9999, 31_000].map(number).join(" "), "0 9999 31\u{202f}000");
        assert_eq!([3.12e7, 1234.0].map(rate).join(", "), "31.2 million a second, 1234 a second");
    }

    #[test]
    fn figures_keep_the_digits_that_matter() {
        assert_eq!(
            [104_123.4, 0.84, 0.000_541, 1e-7].map(significant).join(" "),
            "104\u{202f}123 0.840 0.000541 1.00e-7"
        );
        let words = [0.0, 1.6249, 0.08312, 12345.4, -0.5, 56.78].map(figure);
        assert_eq!(words, ["0", "1.62", "0.0831", "12345", "-0.500", "56.8"]);
        let rates =
            [0.0, 312.4, 31.24, 3.124, 0.3124, 0.0312, 0.000_01, -0.000_01, -2.5, f64::NAN].map(small);
        assert_eq!(rates.join(" "), "0 312 31.2 3.12 0.312 0.0312 < 0.001 > -0.001 -2.50 –");
        assert_eq!([3.126, 99.94, 99.95, 31_000.0].map(tenths).join(" "), "3.1 99.9 100 31\u{202f}000");
        assert_eq!([0.5, 31.24, 312.4].map(three_digits).join(" "), "0.50 31.2 312");
        assert!([count, significant, small, tenths].iter().all(|text| text(f64::NAN) == NONE));
    }
}
