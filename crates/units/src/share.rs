//! Shares of a whole, which are written as percentages.

use crate::NONE;
use crate::count::grouped;

/// A share of a whole, from 0 to 1, as a percentage: `12.3 %`. What is not nothing is not shown as nothing, and what
/// is not all not as all.
pub fn percent(share: f64) -> String {
    match share * 100.0 {
        p if !p.is_finite() => NONE.to_owned(),
        p if p <= 0.0 => "0 %".to_owned(),
        p if p < 0.01 => "< 0.01 %".to_owned(),
        p if p < 0.995 => format!("{p:.2} %"),
        p if p < 99.95 => format!("{p:.1} %"),
        p if p < 100.0 => "> 99.9 %".to_owned(),
        p => format!("{p:.0} %"),
    }
}

/// A part of a whole as [`percent`] writes it; of nothing a dash.
pub fn part(part: u64, whole: u64) -> String {
    if whole == 0 { NONE.to_owned() } else { percent(part as f64 / whole as f64) }
}

/// A part of a whole in hundredths, without the sign, for a column that has it; of nothing a dash.
pub fn per_hundred(part: u64, whole: u64) -> String {
    if whole == 0 { NONE.to_owned() } else { format!("{:.1}", part as f64 * 100.0 / whole as f64) }
}

/// A share that is known roughly, or stands in a sentence: `45 %`, `9.0 %`, `0.4 %`.
pub fn rounded_percent(share: f64) -> String {
    match share * 100.0 {
        p if !p.is_finite() => NONE.to_owned(),
        p if p.abs() >= 9.95 => format!("{} %", grouped(p.round() as i128)),
        p => format!("{p:.1} %"),
    }
}

/// How far a ratio is from 1: `9.0 %`, `0.4 %`, `120 %`.
pub fn percent_off(ratio: f64) -> String {
    rounded_percent((ratio - 1.0).abs())
}

/// A share in the form of options, at most two decimals: `1%`, `2.5%`.
pub fn written_percent(share: f64) -> String {
    format!("{}%", (10_000.0 * share).round() / 100.0)
}

/// The share that `1%`, `0.5 %` or, without the sign, `2.5` is; `None` when it is none of these.
pub fn read_percent(text: &str) -> Option<f64> {
    let text = text.trim();
    let digits = text.strip_suffix('%').map_or(text, str::trim_end);
    let percent: f64 = digits.parse().ok()?;
    percent.is_finite().then_some(percent / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_percentages() {
        let share = [0.0, 0.000_01, 0.001, 0.031, 0.5, 0.9999, 1.0].map(percent);
        assert_eq!(share.join(", "), "0 %, < 0.01 %, 0.10 %, 3.1 %, 50.0 %, > 99.9 %, 100 %");
        assert_eq!((part(1, 4), part(1, 0)), ("25.0 %".to_owned(), NONE.to_owned()));
        assert_eq!((per_hundred(1, 8), per_hundred(1, 0)), ("12.5".to_owned(), NONE.to_owned()));
    }

    #[test]
    fn differences_have_two_digits() {
        assert_eq!([0.91, 1.004, 2.2, 1.05].map(percent_off).join(", "), "9.0 %, 0.4 %, 120 %, 5.0 %");
        assert_eq!([0.0, 0.003, 0.45].map(rounded_percent).join(", "), "0.0 %, 0.3 %, 45 %");
        assert_eq!(percent_off(f64::NAN), NONE);
    }

    #[test]
    fn percentages_are_read_with_and_without_their_sign() {
        assert_eq!(["1%", "2.5 %", "0.5", " 3% "].map(read_percent), [0.01, 0.025, 0.005, 0.03].map(Some));
        assert_eq!(["", "%", "x%", "NaN%", "inf", "1%%"].map(read_percent), [None; 6]);
        assert_eq!([0.01, 0.025, 1.0].map(written_percent).join(" "), "1% 2.5% 100%");
    }
}
