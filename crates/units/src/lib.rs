//! Sizes as people write them on command lines. K is 1024 here, in every command.

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
    }
}
