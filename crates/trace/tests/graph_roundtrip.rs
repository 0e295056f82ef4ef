//! What is written into a trace with pointers comes back; other files are refused by name.

use crate::common::graph::{graph, read_graph};
use heaptoll_trace::graph::Reader;
use heaptoll_trace::{TraceError, tables};
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
