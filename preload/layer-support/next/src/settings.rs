//! A layer's settings: `name=value` pairs in an environment variable of its own, written by the tool or by a person
//! that preloads by hand.

use core::ffi::CStr;

/// Parses a size in bytes: digits, perhaps followed by `K`, `M` or `G` (powers of 1024), perhaps by `B`.
pub fn size(text: &[u8]) -> Option<usize> {
    let text = text.strip_suffix(b"B").unwrap_or(text);
    let text = text.strip_suffix(b"i").unwrap_or(text);
    let (digits, shift) = match text.split_last()? {
        (b'K' | b'k', digits) => (digits, 10),
        (b'M' | b'm', digits) => (digits, 20),
        (b'G' | b'g', digits) => (digits, 30),
        _ => (text, 0),
    };
    usize::try_from(number(digits)?).ok()?.checked_mul(1 << shift)
}

/// Parses a whole number.
pub fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |sum, &digit| {
        let digit = digit.checked_sub(b'0').filter(|&digit| digit <= 9)?;
        sum.checked_mul(10)?.checked_add(digit.into())
    })
}

/// A pair that a layer does not accept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidPair<'a> {
    /// The text as written.
    pub pair: &'a [u8],
}

/// Passes each `name=value` of `text` to `set`, which returns whether it is valid. Empty pairs are ignored.
///
/// # Errors
/// The first pair that is not valid.
pub fn each<'a>(
    text: &'a [u8],
    mut set: impl FnMut(&'a [u8], &'a [u8]) -> bool,
) -> Result<(), InvalidPair<'a>> {
    for pair in text.split(|&byte| byte == b',').filter(|pair| !pair.is_empty()) {
        let at = pair.iter().position(|&byte| byte == b'=').ok_or(InvalidPair { pair })?;
        if !set(&pair[..at], &pair[at + 1..]) {
            return Err(InvalidPair { pair });
        }
    }
    Ok(())
}

/// The variable's value, as [`heaptoll_process::environment::variable`] finds it. It stays, since programs do not change a
/// layer's variables.
pub fn variable(name: &CStr) -> Option<&'static [u8]> {
    heaptoll_process::environment::variable(name).map(CStr::to_bytes)
}

/// Reports on standard error that a pair of a variable is not valid, and which are, and ends the process with status 2.
pub fn refuse(variable: &CStr, wrong: InvalidPair, allowed: &str) -> ! {
    let parts = [
        b"heaptoll: ",
        variable.to_bytes(),
        b": `",
        wrong.pair,
        b"` is not possible; ",
        allowed.as_bytes(),
        b"\n",
    ];
    let mut line = [0u8; 512];
    let mut used = 0;
    for part in parts {
        let kept = part.len().min(line.len() - used);
        line[used..used + kept].copy_from_slice(&part[..kept]);
        used += kept;
    }
    // SAFETY: write reads the first `used` bytes of `line`; _exit takes no pointers and does not return.
    unsafe {
        libc::write(2, line.as_ptr().cast(), used);
        libc::_exit(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units_of_1024() {
        let read = |text: &str| size(text.as_bytes());
        assert_eq!(
            ["1", "16B", "64K", "64k", "64KiB", "2M", "1G", "0"].map(read),
            [1, 16, 65536, 65536, 65536, 2 << 20, 1 << 30, 0].map(Some)
        );
        assert_eq!(["", "K", "B", "-1", "1.5M", "0x10", "2T", "20000000000G"].map(read), [None; 8]);
    }

    #[test]
    fn the_first_invalid_pair_is_returned() {
        let mut seen = [0u64; 2];
        let mut set = |name: &[u8], value: &[u8]| match name {
            b"a" => number(value).map(|value| seen[0] = value).is_some(),
            b"b" => number(value).map(|value| seen[1] = value).is_some(),
            _ => false,
        };
        assert_eq!(each(b"a=1,,b=2,", &mut set), Ok(()));
        assert_eq!(each(b"a=3,c=1,b=x", &mut set), Err(InvalidPair { pair: b"c=1" }));
        assert_eq!(each(b"b", &mut set), Err(InvalidPair { pair: b"b" }));
        assert_eq!(each(b"b=", &mut set), Err(InvalidPair { pair: b"b=" }));
        assert_eq!(seen, [3, 2]);
    }
}
