//! Times: how long something took or may take.

use crate::NONE;
use crate::count::{grouped, three_digits};

/// Seconds with three significant digits and at most the microsecond, without a unit.
pub fn seconds(value: f64) -> String {
    match value.abs() {
        a if !a.is_finite() => NONE.to_owned(),
        a if a >= 999.5 => grouped(value.round() as i128),
        a if a >= 99.95 => format!("{value:.0}"),
        a if a >= 9.995 => format!("{value:.1}"),
        a if a >= 0.9995 => format!("{value:.2}"),
        a if a >= 0.0995 => format!("{value:.3}"),
        a if a >= 0.00995 => format!("{value:.4}"),
        0.0 => "0".to_owned(),
        _ => format!("{value:.6}"),
    }
}

/// Seconds as milliseconds, `0.84` or `12.3`, without a unit.
pub fn milliseconds(value_s: f64) -> String {
    match value_s * 1e3 {
        ms if !ms.is_finite() => NONE.to_owned(),
        ms if ms.abs() >= 99.95 => grouped(ms.round() as i128),
        ms if ms.abs() >= 9.995 => format!("{ms:.1}"),
        ms => format!("{ms:.2}"),
    }
}

/// A time in the unit that keeps it readable, three digits: `42 ns`, `1.30 ms`, `12.4 s`.
pub fn time_ns(ns: f64) -> String {
    match ns {
        ns if !ns.is_finite() => NONE.to_owned(),
        ns if ns < 1.0 => "0".to_owned(),
        ns if ns < 999.5 => format!("{ns:.0} ns"),
        ns if ns < 999.5e3 => format!("{} µs", three_digits(ns / 1e3)),
        ns if ns < 999.5e6 => format!("{} ms", three_digits(ns / 1e6)),
        ns => format!("{} s", three_digits(ns / 1e9)),
    }
}

/// A time to wait, in its usual form: `42 s`, `1 min 15 s`, `2 h 5 min`.
pub fn took(seconds: f64) -> String {
    let whole = seconds.max(0.0).round() as u64;
    let (hours, minutes, rest) = (whole / 3600, whole / 60 % 60, whole % 60);
    match (hours, minutes, rest) {
        (0, 0, _) if seconds < 9.95 => format!("{seconds:.1} s"),
        (0, 0, rest) => format!("{rest} s"),
        (0, minutes, 0) => format!("{minutes} min"),
        (0, minutes, rest) => format!("{minutes} min {rest} s"),
        (hours, 0, _) => format!("{hours} h"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

/// Seconds from `90s`, `10m` or `1h30m`: units from the largest down, each once; a number alone is seconds. `None` when
/// it is none of these, or not above 0.
pub fn duration(text: &str) -> Option<f64> {
    let mut seconds = 0.0;
    let mut number = String::new();
    let mut least = f64::INFINITY;
    for c in text.chars() {
        if c.is_ascii_digit() || c == '.' {
            number.push(c);
            continue;
        }
        let unit = match c {
            'h' => 3600.0,
            'm' => 60.0,
            's' => 1.0,
            _ => return None,
        };
        if unit >= least {
            return None;
        }
        least = unit;
        seconds += number.parse::<f64>().ok()? * unit;
        number.clear();
    }
    if !number.is_empty() {
        if least.is_finite() {
            return None;
        }
        seconds = number.parse::<f64>().ok()?;
    }
    (seconds > 0.0).then_some(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_one_unit_leave_it_out() {
        assert_eq!(
            [3.7, 0.0, 0.0123, 0.000042, 12.34, 1234567.0].map(seconds).join(" "),
            "3.70 0 0.0123 0.000042 12.3 1\u{202f}234\u{202f}567"
        );
        assert_eq!([0.0008, 0.0123, 1.5].map(milliseconds).join(" "), "0.80 12.3 1500");
        assert!([seconds, milliseconds, time_ns].iter().all(|text| text(f64::NAN) == NONE));
    }

    #[test]
    fn times_have_a_unit_and_three_digits() {
        let time = [0.0, 42.0, 1500.0, 999_499.0, 1.3e6, 12.4e9, 5e12].map(time_ns);
        assert_eq!(time.join(", "), "0, 42 ns, 1.50 µs, 999 µs, 1.30 ms, 12.4 s, 5000 s");
    }

    #[test]
    fn waits_have_their_usual_form() {
        let texts = [0.42, 42.4, 60.0, 75.0, 3600.0, 7500.0].map(took);
        assert_eq!(texts, ["0.4 s", "42 s", "1 min", "1 min 15 s", "1 h", "2 h 5 min"]);
    }

    #[test]
    fn times_are_read_as_people_write_them() {
        let texts = ["10m", "1h30m", "90", "1.5m", "2m5s"].map(duration);
        assert_eq!(texts, [600.0, 5400.0, 90.0, 90.0, 125.0].map(Some));
        let wrong = ["", "m", "10x", "0", "-5m", "5m10", "5s1m", "1m2m", "1..2s", "inf", "nan"];
        assert_eq!(wrong.map(duration), [None; 11]);
    }
}
