//! The fields of a pprof profile. Every build recognises the format by them.

/// Whether these first bytes of a file can be those of a profile: fields of it, types of samples among them.
pub fn is_pprof(first: &[u8]) -> bool {
    let (mut rest, mut has_types) = (first, false);
    loop {
        match field(&mut rest) {
            Some((1, Some(_))) => has_types = true,
            Some((2..=6 | 11, Some(_)) | (7..=10 | 12..=15, None) | (13, Some(_))) => {}
            Some(_) => return false,
            // The end, or a field that goes on after these bytes.
            None => return has_types,
        }
    }
}

/// The number of the next field, and the length of its content where it has one; none where the bytes end before it
/// does. Field 0 is none that can be.
pub fn field(rest: &mut &[u8]) -> Option<(u64, Option<u64>)> {
    let key = varint(rest)?;
    match key & 7 {
        0 => varint(rest).map(|_| (key >> 3, None)),
        2 => {
            let length = varint(rest)?;
            *rest = rest.get(usize::try_from(length).ok()?..)?;
            Some((key >> 3, Some(length)))
        }
        _ => Some((0, None)),
    }
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let end = rest.iter().take(10).position(|byte| byte & 0x80 == 0)?;
    let (bytes, after) = rest.split_at(end + 1);
    *rest = after;
    Some(bytes.iter().rev().fold(0, |sum, byte| sum << 7 | u64::from(byte & 0x7f)))
}
