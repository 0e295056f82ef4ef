//! What is written into a trace with pointers comes back; other files are refused by name.

use crate::common::graph::{graph, read_graph};
use heaptoll_trace::graph::{Allocation, AllocationKind, Batch, Event, Reader, Writer};
use heaptoll_trace::{Ending, Header, Settings, TraceError, tables};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn all_events_come_back(seed: u64, steps in 0..900_usize, per_chunk in 1..300_u32, full: bool) {
        let made = graph(seed, steps, per_chunk, full);
        let found = read_graph(&made.bytes).unwrap();
        prop_assert_eq!(found.events, made.events);
        prop_assert_eq!(found.warnings, Vec::<String>::new());
        prop_assert_eq!(found.gaps, usize::from(full));
    }
}

#[test]
fn batches_have_the_time_of_their_events_to_a_millisecond_in_whichever_chunk_these_are() {
    let settings = Settings { level: 1, events_per_chunk: 7 };
    let mut writer = Writer::new(Vec::new(), &Header::default(), &settings).expect("begins");
    let times: Vec<u64> = (0..100).map(|at| at * at * 40).collect();
    for time_us in &times {
        writer.time(*time_us);
        let object = writer.allocate(&Allocation {
            size: 8,
            site: 0,
            thread: 0,
            kind: AllocationKind::Plain,
            align_log2: 0,
        });
        writer.touch(object);
    }
    writer.exit_begins();
    let bytes = writer.finish(&Ending::default()).expect("ends");
    let mut reader = Reader::with_name(&bytes[..], "t").expect("a trace");
    let (mut batch, mut objects) = (Batch::default(), 0);
    while reader.read(&mut batch).expect("reads") {
        for event in &batch.events {
            let Event::Allocate { object, .. } = *event else { continue };
            let ns = times[object as usize] * 1000;
            assert!(
                (ns.saturating_sub(1_000_000)..=ns).contains(&batch.time_ns),
                "{object}: {ns}, {}",
                batch.time_ns
            );
            objects += 1;
        }
    }
    assert_eq!((objects, reader.tables().gaps.len()), (100, 0));
    assert_eq!(reader.tables().exit.map(|exit| exit.time_ns), times.last().map(|us| us * 1000));
}

#[test]
fn header_and_tables_come_back() {
    let made = graph(7, 300, 64, true);
    let mut reader = Reader::with_name(&made.bytes[..], "the test").unwrap();
    let graph = reader.header().graph.unwrap();
    assert_eq!((graph.page_bytes, graph.roots_every_bytes, graph.references), (4096, 100, true));
    while reader.read(&mut Default::default()).unwrap() {}
    assert!(reader.plain_bytes() > 300);
    let tables = reader.into_tables();
    assert_eq!(tables.ending.as_ref().unwrap().events, made.events.len() as u64);
    assert_eq!(tables.sites.as_ref(), Some(&crate::common::sites()));
    assert_eq!(tables.extra::<Vec<i32>>("scan").unwrap().unwrap(), [1, 2, 3]);
}

#[test]
fn a_trace_without_pointers_is_refused_by_name() {
    let plain = crate::common::trace(1, 100, 64, false);
    let error = Reader::with_name(&plain[..], "plain.trace").unwrap_err();
    assert!(matches!(error, TraceError::NotAGraph { .. }));
    let text = error.to_string();
    assert!(text.contains("plain.trace") && text.contains("without pointers"), "{text}");
    assert!(text.contains("record --graph"), "{text}");
}

#[test]
fn a_trace_with_pointers_is_refused_as_a_plain_one() {
    let made = graph(1, 100, 64, false);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.graph");
    std::fs::write(&path, &made.bytes).unwrap();
    for error in [heaptoll_trace::Reader::open(&path).unwrap_err(), tables(&path).unwrap_err()] {
        assert!(matches!(error, TraceError::NotATrace { .. }));
        assert!(error.to_string().contains("a trace with pointers"), "{error}");
    }
}
