//! Traces with pointers that were cut, hit, spliced: no panic, nothing illegal (`read_graph` checks), and what is whole
//! is read.

use std::collections::HashSet;

use crate::common::graph::{graph, read_graph};
use heaptoll_trace::TraceError;
use heaptoll_trace::graph::Event;
use proptest::prelude::*;

/// Events of each chunk of events.
fn per_chunk(bytes: &[u8]) -> Vec<(usize, usize)> {
    let chunks = crate::common::chunks(bytes).into_iter().enumerate().filter(|(_, chunk)| chunk.2 == 2);
    chunks
        .map(|(at, (start, ..))| {
            (at, u32::from_le_bytes(bytes[start + 32..start + 36].try_into().unwrap()) as usize)
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    #[test]
    fn a_cut_file_gives_all_whole_chunks(seed: u64, full: bool, cut: prop::sample::Index) {
        let made = graph(seed, 700, 64, full);
        let cut = cut.index(made.bytes.len());
        let found = match read_graph(&made.bytes[..cut]) {
            Ok(found) => found,
            Err(TraceError::NotAGraph { .. }) => {
                prop_assert!(cut < 16);
                return Ok(());
            }
            Err(error) => panic!("{error}"),
        };
        let chunks = crate::common::chunks(&made.bytes);
        let whole = per_chunk(&made.bytes).into_iter().filter(|(at, _)| chunks[*at].1 <= cut);
        let count: usize = whole.map(|(_, events)| events).sum();
        let mut expected = made.events[..count].to_vec();
        let open = expected.iter().rev().find_map(|event| match event {
            Event::RootsBegin { .. } => Some(true),
            Event::RootsEnd { .. } => Some(false),
            _ => None,
        });
        if open == Some(true) {
            expected.push(Event::RootsEnd { whole: false });
        }
        prop_assert_eq!(found.events, expected);
        prop_assert!(found.warnings.iter().any(|warning| warning.contains("no ending")));
    }

    #[test]
    fn a_hit_chunk_takes_only_what_names_its_objects(
        seed: u64, full: bool, place: prop::sample::Index, with in 1..=255_u8,
    ) {
        let mut made = graph(seed, 700, 64, full);
        let chunks = crate::common::chunks(&made.bytes);
        let place = place.index(made.bytes.len());
        let hit = chunks.iter().position(|chunk| (chunk.0..chunk.1).contains(&place));
        let mut lost = HashSet::new();
        let mut expected = 0;
        let mut at = 0;
        for (chunk, count) in per_chunk(&made.bytes) {
            let events = &made.events[at..at + count];
            at += count;
            if Some(chunk) == hit {
                let made_there = events.iter().filter_map(|event| match event {
                    Event::Allocate { object, .. } => Some(*object),
                    _ => None,
                });
                lost.extend(made_there);
            } else {
                expected += events.iter().filter(|event| survives(event, &lost)).count();
            }
        }
        made.bytes[place] ^= with;
        let found = read_graph(&made.bytes).unwrap();
        let found_events = found.events.iter().filter(|event| survives(event, &lost)).count();
        prop_assert_eq!(found_events, expected);
        prop_assert!(!found.warnings.is_empty());
    }

    #[test]
    fn any_bytes_are_read_to_an_end(seed: u64, hits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40)) {
        let mut bytes = graph(seed, 300, 32, true).bytes;
        for (place, with) in hits {
            let place = place.index(bytes.len());
            bytes[place] = with;
        }
        match read_graph(&bytes) {
            Ok(_) | Err(TraceError::NotAGraph { .. } | TraceError::Newer { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn payloads_that_lie_are_read_to_an_end(seed: u64, full: bool, chunk: prop::sample::Index, place: prop::sample::Index, with in 1..=255_u8) {
        let mut bytes = graph(seed, 300, 32, full).bytes;
        let chunks = crate::common::chunks(&bytes);
        let (start, end, _) = chunks[chunk.index(chunks.len())];
        let place = start + 32 + place.index(end - start - 32);
        bytes[place] ^= with;
        // Checksums that fit: only the decoder sees that something is wrong.
        let sum = crc32fast::hash(&bytes[start + 32..end]);
        bytes[start + 24..start + 28].copy_from_slice(&sum.to_le_bytes());
        let sum = crc32fast::hash(&bytes[start..start + 28]);
        bytes[start + 28..start + 32].copy_from_slice(&sum.to_le_bytes());
        read_graph(&bytes).unwrap();
    }
}

/// Whether an event names none of the lost objects, and is no part of a root point, which a hit may cut.
fn survives(event: &Event, lost: &HashSet<u64>) -> bool {
    let here = |object: &u64| !lost.contains(object);
    match event {
        Event::RootsBegin { .. } | Event::Root { .. } | Event::RootsEnd { .. } => false,
        Event::Edge { from, to, .. } => here(from) && here(to),
        Event::Allocate { object, .. }
        | Event::Free { object, .. }
        | Event::Kept { object, .. }
        | Event::Touch { object }
        | Event::Access { object, .. } => here(object),
        Event::Clear { from, .. } => here(from),
        Event::RequestBegin { .. } | Event::RequestEnd { .. } => true,
    }
}

#[test]
fn a_file_made_to_fill_the_memory_is_refused() {
    let made = graph(3, 600, 64, false);
    let mut reader = heaptoll_trace::graph::Reader::with_name(&made.bytes[..], "the test").unwrap();
    reader.limit(heaptoll_trace::Memory { limit_bytes: 1000, each_object_bytes: 100 });
    let mut batch = Default::default();
    let error = loop {
        match reader.read(&mut batch) {
            Ok(true) => {}
            Ok(false) => panic!("it was read within the limit"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, TraceError::Memory { .. }), "{error}");
}
