//! A line of the kernel's list of a process's mappings, `/proc/PID/maps`.

use core::ops::Range;

/// One mapping, a line of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapsEntry<'a> {
    pub range: Range<usize>,
    pub readable: bool,
    pub writable: bool,
    pub executable: bool,
    /// Only this process sees changes.
    pub private: bool,
    /// Where in its file it begins, bytes.
    pub offset: usize,
    /// The file, as two numbers: of its device and within it. Both are 0 for memory without a file.
    pub file: (usize, usize),
    /// A path or a name in brackets; empty for most anonymous memory.
    pub name: &'a [u8],
}

impl<'a> MapsEntry<'a> {
    /// Reads a line like `55d0c0a00000-55d0c0a02000 r--p 00000000 fe:01 1234    /usr/bin/cat`.
    #[inline]
    pub fn parse(text: &'a [u8]) -> Option<MapsEntry<'a>> {
        let (start, text) = hexadecimal(text, b'-')?;
        let (end, text) = hexadecimal(text, b' ')?;
        let &[read, write, execute, share, b' ', ref text @ ..] = text else { return None };
        let (offset, text) = hexadecimal(text, b' ')?;
        let (major, text) = hexadecimal(text, b':')?;
        let (minor, text) = hexadecimal(text, b' ')?;
        let inode_end = text.iter().position(|&byte| byte == b' ').unwrap_or(text.len());
        let (inode, name) = text.split_at(inode_end);
        let padding = name.iter().position(|&byte| byte != b' ').unwrap_or(name.len());
        (start < end).then_some(MapsEntry {
            range: start..end,
            readable: read == b'r',
            writable: write == b'w',
            executable: execute == b'x',
            private: share == b'p',
            offset,
            file: (major << 32 | minor, decimal(inode)?),
            name: &name[padding..],
        })
    }
}

/// A hexadecimal number up to a byte, and what follows that.
#[inline]
fn hexadecimal(text: &[u8], end: u8) -> Option<(usize, &[u8])> {
    let mut value = 0_usize;
    for (at, &byte) in text.iter().enumerate() {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            _ if byte == end && at > 0 => return Some((value, &text[at + 1..])),
            _ => return None,
        };
        if value >> 60 != 0 {
            return None;
        }
        value = value << 4 | digit as usize;
    }
    None
}

#[inline]
fn decimal(text: &[u8]) -> Option<usize> {
    let digit = |byte: &u8| byte.is_ascii_digit().then(|| usize::from(byte - b'0'));
    text.iter().try_fold(0_usize, |value, byte| value.checked_mul(10)?.checked_add(digit(byte)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_in_all_its_parts() {
        let line = b"55d0c0a00000-55d0c0a02000 r-xp 00003000 fe:1f 1234    /usr/bin/a b";
        let entry = MapsEntry::parse(line).expect("a line");
        assert_eq!(entry.range, 0x55d0_c0a0_0000..0x55d0_c0a0_2000);
        assert_eq!(
            (entry.readable, entry.writable, entry.executable, entry.private),
            (true, false, true, true)
        );
        assert_eq!(
            (entry.offset, entry.file, entry.name),
            (0x3000, (0xfe << 32 | 0x1f, 1234), &b"/usr/bin/a b"[..])
        );
        let anonymous = MapsEntry::parse(b"7000-8000 rw-s 00000000 00:00 0 ").expect("a line");
        assert_eq!((anonymous.file, anonymous.name, anonymous.private), ((0, 0), &b""[..], false));
    }
}
