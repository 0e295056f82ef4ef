//! A legal trace that is a few kilobytes long and has millions of objects alive at once: each chunk's columns are one
//! byte repeated, which zstd packs into nothing.

use super::{chunk, file_head};

/// Events that a chunk may have.
const EVENTS: u32 = 262_144;

/// So many chunks of objects that are never freed.
pub fn bomb(chunks: u64) -> Vec<u8> {
    let mut bytes = file_head(1);
    bytes.extend(chunk(1, 0, &json(b"{}")));
    for number in 0..chunks {
        bytes.extend(chunk(2, number + 1, &events(number)));
    }
    bytes.extend(chunk(7, chunks + 1, &json(br#"{"how":"exited"}"#)));
    bytes
}

fn json(text: &[u8]) -> Vec<u8> {
    let mut payload = vec![0, 0, 0, 0];
    payload.extend((text.len() as u32).to_le_bytes());
    payload.extend(text);
    payload
}

/// A chunk's payload: as many mallocs of 0 bytes as it may have.
fn events(number: u64) -> Vec<u8> {
    let before = number * u64::from(EVENTS);
    let mut payload = EVENTS.to_le_bytes().to_vec();
    payload.extend([0, 0, 2, 0]);
    payload.extend(before.to_le_bytes());
    // Byte clock, live bytes, time; the thread.
    payload.extend([0; 28]);
    payload.extend((before as u32).to_le_bytes());
    // Ops of 0, and sizes of 0, which as plain numbers are bytes of 1.
    let columns = [(0_u8, 0_u8), (1, 1)].map(|(column, byte)| {
        (column, zstd::bulk::compress(&vec![byte; EVENTS as usize], 1).expect("packs"))
    });
    for (column, packed) in &columns {
        payload.extend([*column, 1, 0, 0]);
        payload.extend(EVENTS.to_le_bytes());
        payload.extend((packed.len() as u32).to_le_bytes());
    }
    columns.iter().for_each(|(_, packed)| payload.extend(packed));
    payload
}
