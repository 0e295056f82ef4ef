//! Sizes of memory. K is 1024 here, in every command.

use crate::NONE;
use crate::count::{grouped, three_digits};

/// Bytes of a KiB.
pub const KIB: f64 = 1024.0;

/// Bytes of a MiB.
pub const MIB: f64 = 1024.0 * 1024.0;

/// Bytes from `32K`, `2M`, `1G`, `4096`, `16KiB` or `1B`; `None` when it is none of these.
pub fn size(text: &str) -> Option<u64> {
    let text = text.strip_suffix("iB").or_else(|| text.strip_suffix(['B', 'b'])).unwrap_or(text);
    let (digits, shift) = match text.chars().last()? {
        'k' | 'K' => (&text[..text.len() - 1], 10),
        'm' | 'M' => (&text[..text.len() - 1], 20),
        'g' | 'G' => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// Bytes as [`size`] reads them, in the largest unit that keeps them whole.
pub fn size_text(bytes: u64) -> String {
    match bytes {
        0 => "0".into(),
        b if b.is_multiple_of(1 << 30) => format!("{}G", b >> 30),
        b if b.is_multiple_of(1 << 20) => format!("{}M", b >> 20),
        b if b.is_multiple_of(1 << 10) => format!("{}K", b >> 10),
        b => b.to_string(),
    }
}

/// The same with a unit in any case: `1B`, `64K`, as stacks are written.
pub fn size_label(bytes: u64) -> String {
    let text = size_text(bytes);
    if text.ends_with(|last: char| last.is_ascii_digit()) { format!("{text}B") } else { text }
}

/// A size in the form of options that need not be a round number: `340K`, `1.3M`.
pub fn about(bytes: u64) -> String {
    let exact = size_text(bytes);
    if exact.len() <= 5 {
        return exact;
    }
    match bytes as f64 {
        b if b < MIB => format!("{:.0}K", b / KIB),
        b if b < MIB * KIB => format!("{:.1}M", b / MIB),
        b => format!("{:.2}G", b / (MIB * KIB)),
    }
}

/// Bytes in the unit that keeps them below 1024, three digits: `812 B`, `4.31 MiB`.
pub fn bytes(value: f64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if !value.is_finite() {
        return NONE.to_owned();
    }
    if value < 1023.5 {
        let whole = value.fract() == 0.0;
        return if whole { format!("{value:.0} B") } else { format!("{} B", three_digits(value)) };
    }
    let mut value = value / KIB;
    let mut unit = 0;
    while value >= 1023.5 && unit + 1 < UNITS.len() {
        (value, unit) = (value / KIB, unit + 1);
    }
    format!("{} {}", three_digits(value), UNITS[unit])
}

/// A whole number of bytes as [`bytes`] writes it.
pub fn whole_bytes(value: u64) -> String {
    bytes(value as f64)
}

/// Bytes as whole KiB, grouped, without a unit.
pub fn kib(bytes: u64) -> String {
    crate::count(bytes as f64 / KIB)
}

/// Bytes in MiB, for axes.
pub fn mib(bytes: u64) -> f64 {
    bytes as f64 / MIB
}

/// KiB as MiB, `2.9` or `137`, without a unit.
pub fn mib_from_kib(kib: f64) -> String {
    match kib / KIB {
        mib if !mib.is_finite() => NONE.to_owned(),
        mib if mib.abs() >= 99.95 => grouped(mib.round() as i128),
        mib if mib.abs() >= 0.95 => format!("{mib:.1}"),
        mib => format!("{mib:.2}"),
    }
}

/// Bytes as MiB, without a unit.
pub fn mib_from_bytes(bytes: f64) -> String {
    mib_from_kib(bytes / KIB)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units_of_1024() {
        assert_eq!(
            ["16", "16K", "16k", "16KiB", "2M", "1G", "64B"].map(size),
            [
                Some(16),
                Some(16 << 10),
                Some(16 << 10),
                Some(16 << 10),
                Some(2 << 20),
                Some(1 << 30),
                Some(64)
            ]
        );
        assert_eq!(["", "K", "1.5M", "0x10", "+1K"].map(size), [None; 5]);
        assert_eq!([0, 100, 1536, 2 << 20, 3 << 30].map(size_text), ["0", "100", "1536", "2M", "3G"]);
        assert_eq!([64 << 10, 348_160, 1_400_000, 5 << 30].map(about).join(" "), "64K 340K 1.3M 5G");
    }

    #[test]
    fn bytes_have_units_and_three_digits() {
        let byte = [0.0, 12.0, 40.82, 1023.0, 1024.0, 10240.0, 1_048_575.0, 4.5e6, 1e12, 1e18].map(bytes);
        assert_eq!(
            byte.join(", "),
            "0 B, 12 B, 40.8 B, 1023 B, 1.00 KiB, 10.0 KiB, 1.00 MiB, 4.29 MiB, 931 GiB, 888 PiB"
        );
        assert_eq!(bytes(f64::NAN), NONE);
    }

    #[test]
    fn columns_of_one_unit_leave_it_out() {
        assert_eq!([2969.6, 140_000.0, 512.0].map(mib_from_kib).join(" "), "2.9 137 0.50");
        assert_eq!((mib_from_kib(f64::NAN), mib_from_bytes(3.0 * MIB)), (NONE.into(), "3.0".into()));
        assert_eq!((kib(31_000 << 10), mib(1 << 19)), ("31\u{202f}000".into(), 0.5));
    }
}
