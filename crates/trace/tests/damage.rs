//! Files that were cut, hit, spliced: no panic, nothing illegal, and every whole chunk is read.

use crate::common::{Numbers, Read, chunks, read, trace};
use heaptoll_trace::{Event, EventKind, TraceError};
use proptest::prelude::*;

/// The fields of an event that do not depend on what is missing before it: size, usable size, thread, time.
type Essence = (u64, u64, u32, u64);

fn essence(event: &Event) -> Essence {
    (event.size, event.usable, event.thread, event.time_ns)
}

/// Events of the recorder, without those that the reader adds for what is missing.
fn of_recorder(read: &Read) -> Vec<Essence> {
    read.events.iter().filter(|event| event.kind != EventKind::Lost).map(essence).collect()
}

/// Events of each chunk of events of the whole file.
fn by_chunk(bytes: &[u8]) -> Vec<(usize, Vec<Essence>)> {
    let mut all = of_recorder(&read(bytes).unwrap()).into_iter();
    let chunks = chunks(bytes).into_iter().enumerate().filter(|(_, chunk)| chunk.2 == 2);
    chunks
        .map(|(at, (start, ..))| {
            let count = u32::from_le_bytes(bytes[start + 32..start + 36].try_into().unwrap());
            (at, all.by_ref().take(count as usize).collect())
        })
        .collect()
}

fn without(bytes: &[u8], gone: &[usize]) -> Vec<Essence> {
    by_chunk(bytes).into_iter().filter(|(at, _)| !gone.contains(at)).flat_map(|(_, events)| events).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn a_cut_file_gives_all_whole_chunks(seed: u64, full: bool, cut: prop::sample::Index) {
        let bytes = trace(seed, 700, 64, full);
        let cut = cut.index(bytes.len());
        let found = match read(&bytes[..cut]) {
            Ok(found) => found,
            Err(TraceError::NotATrace { .. }) => {
                prop_assert!(cut < 16);
                return Ok(());
            }
            Err(error) => panic!("{error}"),
        };
        let gone: Vec<usize> =
            chunks(&bytes).iter().enumerate().filter(|(_, chunk)| chunk.1 > cut).map(|(at, _)| at).collect();
        prop_assert_eq!(of_recorder(&found), without(&bytes, &gone));
        prop_assert!(found.warnings.iter().any(|warning| warning.contains("no ending")));
    }

    #[test]
    fn a_hit_chunk_takes_no_other_with_it(seed: u64, full: bool, place: prop::sample::Index, with in 1..=255_u8) {
        let mut bytes = trace(seed, 700, 64, full);
        let whole = bytes.clone();
        let place = place.index(bytes.len());
        bytes[place] ^= with;
        let found = read(&bytes).unwrap();
        let hit: Vec<usize> = chunks(&whole)
            .iter()
            .enumerate()
            .filter(|(_, chunk)| (chunk.0..chunk.1).contains(&place))
            .map(|(at, _)| at)
            .collect();
        prop_assert_eq!(of_recorder(&found), without(&whole, &hit));
        prop_assert!(!found.warnings.is_empty());
    }

    #[test]
    fn removed_and_repeated_chunks_take_no_other_with_them(
        seed: u64,
        removed: prop::sample::Index,
        repeated: prop::sample::Index,
    ) {
        let whole = trace(seed, 700, 64, true);
        let chunks = chunks(&whole);
        let (removed, repeated) = (removed.index(chunks.len()), repeated.index(chunks.len()));
        let mut bytes = whole[..16].to_vec();
        for (at, chunk) in chunks.iter().enumerate() {
            let times = if at == removed { 0 } else if at == repeated { 2 } else { 1 };
            for _ in 0..times {
                bytes.extend_from_slice(&whole[chunk.0..chunk.1]);
            }
        }
        let found = read(&bytes).unwrap();
        prop_assert_eq!(of_recorder(&found), without(&whole, &[removed]));
        prop_assert!(!found.warnings.is_empty());
    }

    #[test]
    fn bytes_put_in_or_taken_out_cost_one_chunk(seed: u64, place: prop::sample::Index, extra in prop::collection::vec(any::<u8>(), 1..200), take: bool) {
        let whole = trace(seed, 700, 64, false);
        let place = 16 + place.index(whole.len() - 16);
        let mut bytes = whole.clone();
        let range = if take { place..(place + extra.len()).min(whole.len()) } else { place..place };
        bytes.splice(range.clone(), if take { Vec::new() } else { extra });
        let found = read(&bytes).unwrap();
        let hit: Vec<usize> = chunks(&whole)
            .iter()
            .enumerate()
            .filter(|(_, chunk)| if take { chunk.0 < range.end && range.start < chunk.1 } else { chunk.0 < place && place < chunk.1 })
            .map(|(at, _)| at)
            .collect();
        prop_assert_eq!(of_recorder(&found), without(&whole, &hit));
    }
}

/// Hostile content: the checksums are right, what they cover is not.
#[test]
fn mutated_chunks_with_right_checksums_do_no_harm() {
    let mut numbers = Numbers(0x5eed_1992);
    let seeds: Vec<Vec<u8>> = (0..6).map(|n| trace(n * 77 + 1, 400, 50, n % 2 == 0)).collect();
    let rounds = if cfg!(debug_assertions) { 3_000 } else { 30_000 };
    for _ in 0..rounds {
        let whole = &seeds[numbers.below(seeds.len() as u64) as usize];
        let mut parts: Vec<(u8, u64, Vec<u8>)> = chunks(whole)
            .iter()
            .enumerate()
            .map(|(at, &(start, end, kind))| (kind, at as u64, whole[start + 32..end].to_vec()))
            .collect();
        for _ in 0..=numbers.below(3) {
            let at = numbers.below(parts.len() as u64) as usize;
            let (kind, sequence, payload) = &mut parts[at];
            let place = numbers.below(payload.len() as u64) as usize;
            match numbers.below(8) {
                0 => *kind = numbers.below(9) as u8,
                1 => *sequence = numbers.next() >> numbers.below(64),
                2 => payload.truncate(place),
                3 => payload.extend_from_within(place..),
                // The heads of chunk, columns and texts are where lengths are.
                4 => {
                    let place = numbers.below(payload.len().min(120) as u64) as usize;
                    payload[place..].iter_mut().take(1).for_each(|byte| *byte = numbers.next() as u8);
                }
                5 => {
                    let value = (numbers.next() >> numbers.below(64)).to_le_bytes();
                    for (byte, new) in payload[place..].iter_mut().zip(value) {
                        *byte = new;
                    }
                }
                6 => {
                    let other = numbers.below(parts.len() as u64) as usize;
                    parts.swap(at, other);
                }
                _ => {
                    if let Some(byte) = payload.get_mut(place) {
                        *byte ^= 1 << numbers.below(8);
                    }
                }
            }
        }
        let mut bytes = crate::common::file_head(1);
        for (kind, sequence, payload) in parts {
            bytes.extend_from_slice(&crate::common::chunk(kind, sequence, &payload));
        }
        read(&bytes).unwrap();
    }
}

/// Bytes hit anywhere, several at once, checksums wrong.
#[test]
fn mutated_files_do_no_harm() {
    let mut numbers = Numbers(0xdead_1994);
    let whole = trace(5, 500, 100, true);
    let rounds = if cfg!(debug_assertions) { 1_000 } else { 10_000 };
    for _ in 0..rounds {
        let mut bytes = whole.clone();
        for _ in 0..=numbers.below(6) {
            let place = numbers.below(bytes.len() as u64) as usize;
            match numbers.below(4) {
                0 => bytes.truncate(place),
                1 => {
                    let end = (place + numbers.below(300) as usize).min(bytes.len());
                    bytes.drain(place..end);
                }
                2 => {
                    let end = (place + numbers.below(3000) as usize).min(bytes.len());
                    let copy = bytes[place..end].to_vec();
                    let at = numbers.below(bytes.len() as u64) as usize;
                    bytes.splice(at..at, copy);
                }
                _ => {
                    if let Some(byte) = bytes.get_mut(place) {
                        *byte = numbers.next() as u8;
                    }
                }
            }
            if bytes.is_empty() {
                break;
            }
        }
        match read(&bytes) {
            Ok(_) | Err(TraceError::NotATrace { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn any_bytes_are_refused_in_words() {
    let mut numbers = Numbers(7);
    for length in 0..200 {
        let bytes: Vec<u8> = (0..length).map(|_| numbers.next() as u8).collect();
        assert!(matches!(read(&bytes), Err(TraceError::NotATrace { .. })));
    }
}

#[test]
fn frees_and_resizes_of_what_is_missing_are_foreign_or_new() {
    use heaptoll_trace::{Ending, Header, Settings, Writer};
    let settings = Settings { level: 0, events_per_chunk: 2 };
    let mut writer = Writer::new(Vec::new(), &Header::default(), &settings).unwrap();
    let call = crate::common::call(EventKind::Malloc, 32);
    let first = writer.allocate(&call).unwrap();
    let second = writer.allocate(&call).unwrap();
    // The chunk that will be missing: the first is freed, a third and a fourth are allocated.
    writer.free(first, EventKind::Free, 0, 0).unwrap();
    let third = writer.allocate(&call).unwrap();
    assert_eq!(third, first);
    let fourth = writer.allocate(&call).unwrap();
    let fifth = writer.allocate(&call).unwrap();
    // Returned.
    writer.free(fourth, EventKind::Free, 0, 0).unwrap();
    writer.resize(fifth, &crate::common::call(EventKind::Realloc, 64), true).unwrap();
    writer.free(fifth, EventKind::Free, 0, 0).unwrap();
    writer.free(second, EventKind::Free, 0, 0).unwrap();
    let whole = writer.finish(&Ending::default()).unwrap();
    let parts = chunks(&whole);
    let mut bytes = whole.clone();
    bytes.drain(parts[2].0..parts[3].1);
    let found = read(&bytes).unwrap();
    let kinds: Vec<(EventKind, u32, u64)> =
        found.events.iter().map(|event| (event.kind, event.slot, event.size)).collect();
    assert_eq!(
        kinds,
        [
            (EventKind::Malloc, 0, 32),
            (EventKind::Malloc, 1, 32),
            (EventKind::Foreign, 0, 0),
            // Its slot in the file was 3; nothing had been seen of 2 and 3.
            (EventKind::Malloc, 2, 64),
            (EventKind::Free, 2, 0),
            (EventKind::Free, 1, 0),
        ]
    );
    assert_eq!(found.gaps.len(), 1);
    assert_eq!(found.gaps[0].events, Some(4));
}

#[test]
fn an_allocation_of_a_slot_whose_free_is_missing_follows_a_lost() {
    use heaptoll_trace::{Ending, Header, Settings, Writer};
    let settings = Settings { level: 0, events_per_chunk: 1 };
    let mut writer = Writer::new(Vec::new(), &Header::default(), &settings).unwrap();
    let first = writer.allocate(&crate::common::call(EventKind::Malloc, 32)).unwrap();
    writer.free(first, EventKind::Free, 0, 0).unwrap();
    writer.allocate(&crate::common::call(EventKind::Malloc, 48)).unwrap();
    let whole = writer.finish(&Ending::default()).unwrap();
    let parts = chunks(&whole);
    let mut bytes = whole.clone();
    bytes.drain(parts[2].0..parts[2].1);
    let kinds: Vec<(EventKind, u32, u64)> =
        read(&bytes).unwrap().events.iter().map(|event| (event.kind, event.slot, event.size)).collect();
    assert_eq!(kinds, [(EventKind::Malloc, 0, 32), (EventKind::Lost, 0, 0), (EventKind::Malloc, 0, 48)]);
}

#[test]
fn the_batch_following_a_malformed_chunk_is_after_the_gap_and_the_one_before_is_not() {
    let mut bytes = trace(5, 300, 100, false);
    let (start, end, _) = chunks(&bytes).into_iter().filter(|chunk| chunk.2 == 2).nth(1).unwrap();
    let mut payload = bytes[start + 32..end].to_vec();
    // The first column's bytes come after the directory: the op of its last event is an unknown one.
    let columns = u16::from_le_bytes([payload[6], payload[7]]) as usize;
    let ops = u32::from_le_bytes(payload[52..56].try_into().unwrap()) as usize;
    assert_eq!(payload[48..50], [0, 0], "the first column is that of ops, plain");
    payload[48 + 12 * columns + ops - 1] = 15;
    let sequence = u64::from_le_bytes(bytes[start + 16..start + 24].try_into().unwrap());
    bytes.splice(start..end, crate::common::chunk(2, sequence, &payload));
    let mut reader = heaptoll_trace::Reader::new(&bytes[..]).unwrap();
    let mut batch = heaptoll_trace::Batch::default();
    let mut found = Vec::new();
    while reader.read(&mut batch).unwrap() {
        found.push((batch.first_event, batch.after_gap));
    }
    assert_eq!(found, [(0, false), (100, false), (200, true)]);
}
