//! What is written is read back within the rounding that its digits allow.

use proptest::prelude::*;

use super::*;

/// The value of a text that a formatter wrote, in bytes, seconds, a share or the number itself.
fn read(text: &str) -> f64 {
    let plain: String = text.chars().filter(|c| *c != '\u{202f}').collect();
    let (number, unit) = plain.split_once(' ').unwrap_or((&plain, ""));
    let factor = match unit {
        "" | "B" | "s" | "a second" => 1.0,
        "KiB" => KIB,
        "MiB" => MIB,
        "GiB" => MIB * KIB,
        "TiB" => MIB * MIB,
        "PiB" => MIB * MIB * KIB,
        "ns" => 1e-9,
        "µs" => 1e-6,
        "ms" => 1e-3,
        "million a second" => 1e6,
        "%" => 0.01,
        other => panic!("`{text}` has the unit `{other}`"),
    };
    number.parse::<f64>().unwrap_or_else(|_| panic!("`{text}` holds no number")) * factor
}

/// Positive values of every magnitude from 10^`from` to 10^`to`.
fn magnitudes(from: f64, to: f64) -> impl Strategy<Value = f64> {
    (from..to).prop_map(|exponent| 10f64.powf(exponent))
}

/// Whether a text states a value with a relative error, or one of half a unit of its last place, at most.
fn states(text: &str, value: f64, relative: f64, last_place: f64) -> bool {
    let off = (read(text) - value).abs();
    off <= relative * value.abs() * (1.0 + 1e-9) || off <= last_place / 2.0 * (1.0 + 1e-9)
}

proptest! {
    #[test]
    fn sizes_and_percentages_of_options_come_back_exactly(bytes in any::<u64>(), hundredths in 0..1_000_000u32) {
        prop_assert_eq!(size(&size_text(bytes)), Some(bytes));
        let share = f64::from(hundredths) / 10_000.0;
        let read = read_percent(&written_percent(share));
        prop_assert!(read.is_some_and(|read| (read - share).abs() < 1e-12), "{:?}", read);
    }

    #[test]
    fn rounded_sizes_are_near(bytes in magnitudes(0.0, 15.0)) {
        let whole = bytes.round() as u64;
        let text = about(whole);
        let read = if let Some(exact) = size(&text) { exact as f64 } else {
            let (number, unit) = text.split_at(text.len() - 1);
            number.parse::<f64>().expect("a number") * size(&format!("1{unit}")).expect("a unit") as f64
        };
        // 1023.9 KiB may be written as 1.0 MiB does not hold: the last digit is a KiB, a tenth of a MiB or less.
        prop_assert!((read - whole as f64).abs() <= (whole as f64 * 0.05).max(512.0), "{} is {}", text, whole);
    }

    #[test]
    fn bytes_come_back_within_three_digits(value in magnitudes(-1.0, 17.0)) {
        prop_assert!(states(&bytes(value), value, 0.005, 0.01), "{} is {}", value, bytes(value));
        let kibs = read(&kib(value as u64)) * KIB;
        prop_assert!((kibs - (value as u64) as f64).abs() <= KIB / 2.0 + 1.0 + value * 1e-9);
        prop_assert!(states(&mib_from_bytes(value), value / MIB, 0.055, 0.01));
    }

    #[test]
    fn times_come_back_within_three_digits(value_s in magnitudes(-9.0, 6.0)) {
        prop_assert!(states(&time_ns(value_s * 1e9), value_s, 0.005, 1e-9), "{} is {}", value_s, time_ns(value_s * 1e9));
        prop_assert!(states(&seconds(value_s), value_s, 0.005, 1e-6));
        prop_assert!(states(&milliseconds(value_s), value_s * 1e3, 0.005, 0.01));
    }

    #[test]
    fn waits_come_back_within_their_last_unit(value_s in magnitudes(-1.0, 6.0)) {
        let text = took(value_s).replace(" min", "m").replace([' '], "");
        let read = duration(&text).unwrap_or(0.0);
        let unit = match value_s { s if s < 9.95 => 0.1, s if s < 3599.5 => 1.0, _ => 120.0 };
        prop_assert!((read - value_s).abs() <= unit / 2.0 * (1.0 + 1e-9), "{} is {}", value_s, text);
    }

    #[test]
    fn shares_come_back_within_their_digits(share in 0.000_1..0.9995f64, off in magnitudes(-3.0, 3.0)) {
        prop_assert!(states(&percent(share), share, 0.0505, 1e-4), "{} is {}", share, percent(share));
        prop_assert!(states(&rounded_percent(off), off, 0.0505, 0.001), "{} is {}", off, rounded_percent(off));
        prop_assert!(states(&percent_off(1.0 + off), off, 0.0505, 0.001));
        let parts = (share * 1e9) as u64;
        prop_assert!(states(&part(parts, 1_000_000_000), share, 0.0505, 1e-4));
        prop_assert!((read(&per_hundred(parts, 1_000_000_000)) - 100.0 * share).abs() <= 0.0501);
    }

    #[test]
    fn figures_come_back_within_their_digits(value in magnitudes(-3.0, 12.0), below in any::<bool>()) {
        let value = if below { -value } else { value };
        for (text, relative, last) in [
            (significant(value), 0.005_1, 0.0001),
            (ratio(value), 0.005_1, 0.01),
            (factor(value), 0.005_1, 0.001),
            (figure(value), 0.005_1, 0.0),
            (small(value), 0.005_1, 0.0001),
            (count(value), 0.0, 1.0),
        ] {
            prop_assert!(states(&text, value, relative, last), "{} is {}", value, text);
        }
        let value = value.abs();
        for (text, last) in [(tenths(value), 0.1), (three_digits(value), 0.01), (rate(value), 1.0)] {
            prop_assert!(states(&text, value, 0.005_1, last), "{} is {}", value, text);
        }
        prop_assert!(states(&number(value as u64), (value as u64) as f64, 0.0, 0.0));
    }
}
