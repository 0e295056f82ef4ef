//! Quantities as text: bytes, times and shares with their units.

use heaptoll_report::format::{NONE, count};

/// Bytes in the unit that keeps them below 1024, three digits: `812 B`, `4.31 MiB`.
pub fn bytes(value: f64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if !value.is_finite() {
        return NONE.to_owned();
    }
    if value < 1023.5 {
        return if value.fract() == 0.0 { format!("{value:.0} B") } else { format!("{} B", digits(value)) };
    }
    let mut value = value / 1024.0;
    let mut unit = 0;
    while value >= 1023.5 && unit + 1 < UNITS.len() {
        (value, unit) = (value / 1024.0, unit + 1);
    }
    format!("{} {}", digits(value), UNITS[unit])
}

/// A time in the unit that keeps it readable, three digits: `42 ns`, `1.30 ms`, `12.4 s`.
pub fn time_ns(ns: f64) -> String {
    match ns {
        ns if !ns.is_finite() => NONE.to_owned(),
        ns if ns < 1.0 => "0".to_owned(),
        ns if ns < 999.5 => format!("{ns:.0} ns"),
        ns if ns < 999.5e3 => format!("{} µs", digits(ns / 1e3)),
        ns if ns < 999.5e6 => format!("{} ms", digits(ns / 1e6)),
        ns => format!("{} s", digits(ns / 1e9)),
    }
}

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

/// A part of a whole as a percentage; of nothing a dash.
pub fn part(part: u64, whole: u64) -> String {
    if whole == 0 { NONE.to_owned() } else { percent(part as f64 / whole as f64) }
}

/// A whole number, grouped.
pub fn number(value: u64) -> String {
    count(value as f64)
}

/// A whole number of bytes.
pub fn whole_bytes(value: u64) -> String {
    bytes(value as f64)
}

/// `1 object`, `2 objects`.
pub fn objects(value: u64) -> String {
    format!("{} object{}", number(value), if value == 1 { "" } else { "s" })
}

/// Events per second: `1 234 a second`, `31.2 million a second`.
pub fn rate(value: f64) -> String {
    match value {
        value if value >= 1e6 => format!("{} million a second", digits(value / 1e6)),
        value => format!("{} a second", count(value)),
    }
}

/// Three digits.
fn digits(value: f64) -> String {
    match value {
        value if value >= 999.5 => count(value),
        value if value >= 99.95 => format!("{value:.0}"),
        value if value >= 9.995 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_units_and_three_digits() {
        let byte = [0.0, 12.0, 40.82, 1023.0, 1024.0, 10240.0, 1_048_575.0, 4.5e6, 1e12, 1e18].map(bytes);
        assert_eq!(
            byte.join(", "),
            "0 B, 12 B, 40.8 B, 1023 B, 1.00 KiB, 10.0 KiB, 1.00 MiB, 4.29 MiB, 931 GiB, 888 PiB"
        );
        let time = [0.0, 42.0, 1500.0, 999_499.0, 1.3e6, 12.4e9, 5e12].map(time_ns);
        assert_eq!(time.join(", "), "0, 42 ns, 1.50 µs, 999 µs, 1.30 ms, 12.4 s, 5000 s");
        let share = [0.0, 0.000_01, 0.001, 0.031, 0.5, 0.9999, 1.0].map(percent);
        assert_eq!(share.join(", "), "0 %, < 0.01 %, 0.10 %, 3.1 %, 50.0 %, > 99.9 %, 100 %");
        assert_eq!((part(1, 4), part(1, 0)), ("25.0 %".to_owned(), NONE.to_owned()));
        assert_eq!((objects(1), objects(2)), ("1 object".to_owned(), "2 objects".to_owned()));
        assert_eq!(rate(3.12e7), "31.2 million a second");
        assert_eq!(bytes(f64::NAN), NONE);
    }
}
