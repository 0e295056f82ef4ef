//! Chunks of JSON: header, samples, gaps, sites, extra tables, ending. Texts longer than a chunk may hold are continued
//! in the next.

use serde::Serialize;

use crate::format::{PLAIN, TEXT_HEAD, TEXT_MAX, ZSTD, u32_at};

/// The text continues in the next chunk of the same kind and name.
const CONTINUES: u8 = 1;
/// Compression of texts: they are few, so it may be slow.
const LEVEL: i32 = 6;

/// A text as chunk payloads.
pub(crate) fn payloads(name: &str, text: &[u8]) -> Vec<Vec<u8>> {
    let name = &name.as_bytes()[..name.len().min(255)];
    let mut parts = text.chunks(TEXT_MAX).peekable();
    let mut payloads = Vec::new();
    if parts.peek().is_none() {
        payloads.push(payload(name, b"", 0));
    }
    while let Some(part) = parts.next() {
        payloads.push(payload(name, part, if parts.peek().is_some() { CONTINUES } else { 0 }));
    }
    payloads
}

/// JSON as chunk payloads.
pub(crate) fn json(name: &str, value: &impl Serialize) -> Result<Vec<Vec<u8>>, serde_json::Error> {
    Ok(payloads(name, &serde_json::to_vec(value)?))
}

fn payload(name: &[u8], text: &[u8], flags: u8) -> Vec<u8> {
    let packed = zstd::bulk::compress(text, LEVEL).ok().filter(|packed| packed.len() < text.len());
    let (encoding, stored) = packed.as_deref().map_or((PLAIN, text), |packed| (ZSTD, packed));
    let mut payload = Vec::with_capacity(TEXT_HEAD + name.len() + stored.len());
    payload.extend_from_slice(&[encoding, flags, name.len() as u8, 0]);
    payload.extend_from_slice(&(text.len() as u32).to_le_bytes());
    payload.extend_from_slice(name);
    payload.extend_from_slice(stored);
    payload
}

/// A payload unpacked.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Text {
    pub(crate) name: String,
    pub(crate) continues: bool,
    pub(crate) bytes: Vec<u8>,
}

/// `None` when the payload does not match its head.
pub(crate) fn parse(payload: &[u8]) -> Option<Text> {
    let (head, rest) = payload.split_at_checked(TEXT_HEAD)?;
    let length = u32_at(head, 4) as usize;
    if length > TEXT_MAX {
        return None;
    }
    let (name, stored) = rest.split_at_checked(head[2] as usize)?;
    let bytes = match head[0] {
        PLAIN => stored.to_vec(),
        ZSTD => zstd::bulk::decompress(stored, length).ok()?,
        _ => return None,
    };
    let name = String::from_utf8_lossy(name).into_owned();
    (bytes.len() == length).then_some(Text { name, continues: head[1] & CONTINUES != 0, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_continued() {
        let text: Vec<u8> = (0..2 * TEXT_MAX + 5).map(|n| ((n * n) >> 3) as u8).collect();
        let parts = payloads("ledger", &text);
        assert_eq!(parts.len(), 3);
        let parts: Vec<Text> = parts.iter().map(|part| parse(part).unwrap()).collect();
        assert_eq!(parts.iter().map(|part| part.continues).collect::<Vec<_>>(), [true, true, false]);
        assert!(parts.iter().all(|part| part.name == "ledger"));
        assert_eq!(parts.into_iter().flat_map(|part| part.bytes).collect::<Vec<u8>>(), text);
    }

    #[test]
    fn an_empty_text_is_a_text() {
        let parts = payloads("", b"");
        assert_eq!(parts.len(), 1);
        assert_eq!(parse(&parts[0]).unwrap().bytes, b"");
    }

    #[test]
    fn lengths_that_lie_are_refused() {
        let mut part = payloads("", &[7; 100]).remove(0);
        part[4] = 99;
        assert_eq!(parse(&part), None);
        part[7] = 255;
        assert_eq!(parse(&part), None);
        assert_eq!(parse(&[1, 2, 3]), None);
    }
}
