//! Traces (docs/reference/trace-format.md): plain damage, and changes under right checksums, which get past them.

use super::dice::Dice;

/// Bytes of a file's head and of a chunk's.
const FILE_HEAD: usize = 16;
const CHUNK_HEAD: usize = 32;

/// A trace that is damaged.
pub fn trace(dice: &mut Dice, from: &[u8]) -> Vec<u8> {
    if dice.below(3) == 0 {
        return super::bytes::bytes(dice, from);
    }
    let (head, mut chunks) = taken_apart(from);
    for _ in 0..=dice.below(3) {
        change(dice, &mut chunks);
    }
    let renumber = dice.below(2) == 0;
    let mut bytes = head.to_vec();
    for (number, (chunk_head, payload)) in chunks.iter().enumerate() {
        bytes.extend(sealed(chunk_head, payload, renumber.then_some(number as u64)));
    }
    bytes
}

type Chunk = (Vec<u8>, Vec<u8>);

/// The file's head and its chunks, each a head and a payload.
fn taken_apart(from: &[u8]) -> (&[u8], Vec<Chunk>) {
    let (head, mut rest) = from.split_at(FILE_HEAD.min(from.len()));
    let mut chunks = Vec::new();
    while let Some((chunk_head, after)) = rest.split_at_checked(CHUNK_HEAD) {
        let length =
            u32::from_le_bytes([chunk_head[12], chunk_head[13], chunk_head[14], chunk_head[15]]) as usize;
        let (payload, after) = after.split_at(length.min(after.len()));
        chunks.push((chunk_head.to_vec(), payload.to_vec()));
        rest = after;
    }
    (head, chunks)
}

fn change(dice: &mut Dice, chunks: &mut Vec<Chunk>) {
    if chunks.is_empty() {
        return;
    }
    let (one, other) = (dice.below(chunks.len()), dice.below(chunks.len()));
    match dice.below(8) {
        0 => chunks.swap(one, other),
        1 => drop(chunks.remove(one)),
        2 => {
            let copy = chunks[one].clone();
            chunks.insert(other, copy);
        }
        3 => chunks[one].0[8] = (dice.below(9)) as u8,
        // The columns' directory and the head of events.
        4 => {
            let payload = &mut chunks[one].1;
            let within = payload.len().min(160);
            if within > 0 {
                let at = dice.below(within);
                payload[at] = [0, 1, 0x7F, 0xFF, dice.byte()][dice.below(5)];
            }
        }
        5 => {
            let (payload, text) = (&chunks[one].1, 8);
            if let Some(json) = payload.get(text..).and_then(|json| std::str::from_utf8(json).ok()) {
                let changed = super::text::text(dice, &json.replace(',', ",\n"));
                let mut new = payload[..text].to_vec();
                new[4..8].copy_from_slice(&(changed.len() as u32).to_le_bytes());
                new.extend(changed.as_bytes());
                chunks[one].1 = new;
            }
        }
        _ => chunks[one].1 = super::bytes::bytes(dice, &chunks[one].1.clone()),
    }
}

/// A chunk with right length and checksums.
fn sealed(head: &[u8], payload: &[u8], number: Option<u64>) -> Vec<u8> {
    let mut head = head.to_vec();
    head[12..16].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    if let Some(number) = number {
        head[16..24].copy_from_slice(&number.to_le_bytes());
    }
    head[24..28].copy_from_slice(&crc32fast::hash(payload).to_le_bytes());
    let sum = crc32fast::hash(&head[..28]);
    head[28..32].copy_from_slice(&sum.to_le_bytes());
    head.extend(payload);
    head
}
