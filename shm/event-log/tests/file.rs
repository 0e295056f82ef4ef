//! The file, written by the layer's side of the crate and read by the tool's, in one process.

use std::ffi::CString;
use std::fs::OpenOptions;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::Ordering::{Relaxed, Release};

use heaptoll_event_log::layout::{
    CHUNKS_AT, COLLECTIONS, CollectionRecord, HEADER_BYTES, PROCESS_BYTES, PROCESSES, REQUESTS,
    RequestRecord, file_bytes,
};
use heaptoll_event_log::mapped::{FreeRecords, Mapped};
use heaptoll_event_log::{EventsError, EventsFile, Lost, ProcessEvents};
use proptest::prelude::*;

struct Fixture {
    _directory: tempfile::TempDir,
    file: EventsFile,
    mapped: Mapped,
}

fn mapped(path: &Path) -> Option<Mapped> {
    Mapped::open(&CString::new(path.as_os_str().as_bytes()).expect("no NUL"))
}

fn fixture(chunks: u32) -> Fixture {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("heaptoll-test.events");
    let file = EventsFile::create(&path, file_bytes(chunks)).expect("the file is made");
    let mapped = mapped(&path).expect("the file is mapped");
    Fixture { _directory: directory, file, mapped }
}

/// Appends a request to a chunk with a free record.
fn request(records: &mut FreeRecords<RequestRecord>, start: u64, end: u64, kind: u32) {
    assert!(records.next < records.end);
    // SAFETY: `next` is before `end`, so a free record of a chunk in the mapping, which stays; only this thread writes
    // to the chunk.
    unsafe {
        let record = &*records.next;
        record.start.store(start, Relaxed);
        record.kind.store(kind, Relaxed);
        record.thread.store(77, Relaxed);
        record.end.store(end, Release);
        records.next = records.next.add(1);
    }
}

fn collection(records: &mut FreeRecords<CollectionRecord>, start: u64, end: u64, number: u64) {
    assert!(records.next < records.end);
    // SAFETY: `next` is before `end`, so a free record of a chunk in the mapping, which stays; only this thread writes
    // to the chunk.
    unsafe {
        let record = &*records.next;
        record.start.store(start, Relaxed);
        record.number.store(number, Relaxed);
        record.live_bytes.store(number * 10, Relaxed);
        record.collector.store(1, Relaxed);
        record.reason.store(2, Relaxed);
        record.end.store(end, Release);
        records.next = records.next.add(1);
    }
}

fn read(fixture: &Fixture) -> Vec<ProcessEvents> {
    fixture.file.read().expect("the file is read")
}

#[test]
fn events_come_back_in_order_on_the_monotonic_clock() {
    let fixture = fixture(4);
    let process = fixture.mapped.claim_process(2, 1).expect("an entry");
    let mut requests = fixture.mapped.claim_requests(process).expect("a chunk");
    let mut collections = fixture.mapped.claim_collections(process).expect("a chunk");
    let before = heaptoll_process::tsc::monotonic_ns();
    let [a, b, c, d] = std::array::from_fn(|_| {
        std::thread::sleep(std::time::Duration::from_millis(5));
        heaptoll_process::tsc::ticks()
    });
    let after = heaptoll_process::tsc::monotonic_ns();
    request(&mut requests, c, d, 9);
    request(&mut requests, a, b, 8);
    collection(&mut collections, b, c, 5);
    let [process] = &read(&fixture)[..] else { panic!("one process") };
    assert_eq!((process.pid, process.observed, process.unobserved), (std::process::id(), 2, 1));
    assert_eq!(Path::new(&process.exe), std::env::current_exe().expect("a path"));
    assert_eq!(process.requests.iter().map(|r| (r.kind, r.thread)).collect::<Vec<_>>(), [(8, 77), (9, 77)]);
    let [collection] = process.collections[..] else { panic!("one collection") };
    assert_eq!(
        (collection.number, collection.live_bytes, collection.collector, collection.reason),
        (5, 50, 1, 2)
    );
    let [first, last] = process.requests[..] else { panic!("two requests") };
    let instants = [before, first.start_ns, first.end_ns, last.start_ns, last.end_ns, after];
    assert!(instants.is_sorted(), "{instants:?}");
    assert_eq!((collection.start_ns, collection.end_ns), (first.end_ns, last.start_ns));
    // The sleeps in between.
    assert!(instants[1..5].windows(2).all(|pair| pair[1] - pair[0] >= 5_000_000), "{instants:?}");
    assert!(fixture.file.lost().expect("it is read").is_none());
}

#[test]
fn a_record_without_an_end_is_where_a_killed_thread_was() {
    let fixture = fixture(2);
    let process = fixture.mapped.claim_process(0, 0).expect("an entry");
    let mut requests = fixture.mapped.claim_requests(process).expect("a chunk");
    let now = heaptoll_process::tsc::ticks();
    request(&mut requests, now, now + 1, 1);
    request(&mut requests, now + 2, 0, 2);
    // An entry and a chunk that were claimed and never filled in.
    let entry = (HEADER_BYTES + PROCESS_BYTES) as u64;
    let raw = OpenOptions::new().write(true).open(fixture.file.path()).expect("it opens");
    fixture.mapped.claim_process(0, 0).expect("an entry");
    raw.write_all_at(&[0; 4], entry).expect("it is written");
    fixture.mapped.claim_requests(process).expect("a chunk");
    raw.write_all_at(&[0; 4], file_bytes(1)).expect("it is written");
    let processes = read(&fixture);
    assert_eq!(processes.len(), 1);
    assert_eq!(processes[0].requests.iter().map(|request| request.kind).collect::<Vec<_>>(), [1]);
}

#[test]
fn a_request_that_ends_on_a_processor_whose_counter_lags_takes_no_time() {
    let fixture = fixture(1);
    let process = fixture.mapped.claim_process(0, 0).expect("an entry");
    let mut requests = fixture.mapped.claim_requests(process).expect("a chunk");
    let now = heaptoll_process::tsc::ticks();
    request(&mut requests, now, now - 200, 1);
    let [request] = read(&fixture)[0].requests[..] else { panic!("one request") };
    assert_eq!(request.start_ns, request.end_ns);
}

#[test]
fn where_the_kernel_does_not_use_the_counter_times_are_its_own() {
    let fixture = fixture(1);
    let process = fixture.mapped.claim_process(0, 0).expect("an entry");
    let mut requests = fixture.mapped.claim_requests(process).expect("a chunk");
    request(&mut requests, 5_000_000_123, 5_000_000_456, 1);
    // The flags of its entry.
    let raw = OpenOptions::new().write(true).open(fixture.file.path()).expect("it opens");
    raw.write_all_at(&[0; 4], HEADER_BYTES as u64 + 12).expect("it is written");
    let [request] = read(&fixture)[0].requests[..] else { panic!("one request") };
    assert_eq!((request.start_ns, request.end_ns), (5_000_000_123, 5_000_000_456));
}

#[test]
fn a_full_file_counts_what_it_lost() {
    let fixture = fixture(1);
    let process = fixture.mapped.claim_process(0, 0).expect("an entry");
    let mut records = fixture.mapped.claim_requests(process).expect("a chunk");
    let now = heaptoll_process::tsc::ticks();
    for number in 0..REQUESTS as u64 {
        request(&mut records, now + number, now + number + 1, 0);
    }
    assert_eq!(records.next, records.end);
    for _ in 0..3 {
        assert!(fixture.mapped.claim_requests(process).is_none());
        fixture.mapped.lost_request();
        assert!(fixture.mapped.claim_collections(process).is_none());
    }
    fixture.mapped.lost_collection();
    assert_eq!(read(&fixture)[0].requests.len(), REQUESTS);
    assert_eq!(fixture.file.lost().expect("it is read"), Lost { requests: 3, collections: 1, processes: 0 });
    fixture.file.clear().expect("it is cleared");
    assert!(read(&fixture).is_empty());
    assert!(fixture.file.lost().expect("it is read").is_none());
    let process = fixture.mapped.claim_process(0, 0).expect("an entry");
    assert!(fixture.mapped.claim_collections(process).is_some());
    let [process] = &read(&fixture)[..] else { panic!("one process") };
    assert!(process.requests.is_empty() && process.collections.is_empty(), "{process:?}");
}

#[test]
fn processes_beyond_the_size_of_the_table_are_counted() {
    let fixture = fixture(1);
    for _ in 0..PROCESSES {
        assert!(fixture.mapped.claim_process(0, 0).is_some());
    }
    assert!(fixture.mapped.claim_process(0, 0).is_none());
    assert_eq!(fixture.file.lost().expect("it is read").processes, 1);
    assert_eq!(read(&fixture).len(), PROCESSES);
}

#[test]
fn a_file_of_another_format_or_truncated_is_refused_by_both_sides() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| directory.path().join(name);
    assert!(matches!(EventsFile::open(&path("none")), Err(EventsError::Io { .. })));
    assert!(mapped(&path("none")).is_none());

    for (name, bytes) in [("empty", vec![]), ("short", vec![7; 10]), ("foreign", vec![7; 3 << 20])] {
        std::fs::write(path(name), bytes).expect("it is written");
        assert!(matches!(EventsFile::open(&path(name)), Err(EventsError::Foreign { .. })), "{name}");
        assert!(mapped(&path(name)).is_none(), "{name}");
    }

    EventsFile::create(&path("cut"), file_bytes(3)).expect("the file is made");
    assert!(matches!(EventsFile::create(&path("cut"), file_bytes(3)), Err(EventsError::Io { .. })));
    let truncated = OpenOptions::new().write(true).open(path("cut")).expect("it opens");
    truncated.set_len(file_bytes(2)).expect("it is truncated");
    let error = EventsFile::open(&path("cut")).expect_err("it is refused");
    assert!(matches!(error, EventsError::Truncated { .. }), "{error}");
    assert!(mapped(&path("cut")).is_none());

    let error = EventsFile::create(&path("small"), file_bytes(1) - 1).expect_err("it is refused");
    assert!(matches!(error, EventsError::TooSmall { .. }), "{error}");
}

#[test]
fn a_header_that_changes_after_it_was_mapped_leads_no_writer_out_of_the_file() {
    let fixture = fixture(2);
    let process = fixture.mapped.claim_process(0, 0).expect("an entry");
    let raw = OpenOptions::new().write(true).open(fixture.file.path()).expect("it opens");
    for chunks in [0, 2, 3, u32::MAX] {
        for claimed in [2, 3, 0x700_0000, u32::MAX] {
            // The number of chunks, and after it the numbers of claimed entries and chunks.
            let halves = [chunks, claimed | 1 << 20, claimed].map(u32::to_ne_bytes).concat();
            raw.write_all_at(&halves, 12).expect("it is written");
            assert!(fixture.mapped.claim_requests(process).is_none(), "{chunks} {claimed}");
            assert!(fixture.mapped.claim_collections(process).is_none(), "{chunks} {claimed}");
            assert!(fixture.mapped.claim_process(0, 0).is_none(), "{chunks} {claimed}");
        }
    }
}

#[test]
fn a_header_and_a_length_that_grow_together_do_not_keep_the_reader_for_ever() {
    let fixture = fixture(1);
    let raw = OpenOptions::new().write(true).open(fixture.file.path()).expect("it opens");
    let chunks = 1u32 << 24;
    raw.set_len(file_bytes(chunks)).expect("it grows");
    let halves = [chunks, 1, u32::MAX].map(u32::to_ne_bytes).concat();
    raw.write_all_at(&halves, 12).expect("it is written");
    assert!(matches!(fixture.file.read(), Err(EventsError::Foreign { .. })));
    assert!(fixture.file.clear().is_err());
}

#[test]
fn chunks_with_invalid_headers_are_damage() {
    let raw = |fixture: &Fixture| OpenOptions::new().write(true).open(fixture.file.path()).expect("it opens");
    for (at, value) in [(0, 99u32), (4, 1)] {
        let fixture = fixture(1);
        let process = fixture.mapped.claim_process(0, 0).expect("an entry");
        fixture.mapped.claim_requests(process).expect("a chunk");
        raw(&fixture).write_all_at(&value.to_ne_bytes(), CHUNKS_AT as u64 + at).expect("it is written");
        let error = fixture.file.read().expect_err("it is refused");
        assert!(matches!(error, EventsError::Damaged { .. }), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// In whatever order several processes record events, each process gets its own events back, and no others.
    #[test]
    fn several_processes_each_get_their_own_events(
        events in prop::collection::vec((0usize..3, any::<bool>(), 1u64..1_000_000, 0u64..1000), 0..3000),
    ) {
        let fixture = fixture(12);
        let entries: Vec<u32> = (0..3).map(|_| fixture.mapped.claim_process(0, 0).expect("an entry")).collect();
        let begun = heaptoll_process::tsc::ticks();
        let mut requests: [Option<FreeRecords<RequestRecord>>; 3] = [const { None }; 3];
        let mut collections: [Option<FreeRecords<CollectionRecord>>; 3] = [const { None }; 3];
        let mut expected = [const { (Vec::new(), Vec::new()) }; 3];
        for (number, &(writer, is_request, start, length)) in events.iter().enumerate() {
            let (start, end) = (begun + start, begun + start + length);
            if is_request {
                let records = requests[writer].get_or_insert_with(|| {
                    fixture.mapped.claim_requests(entries[writer]).expect("a chunk")
                });
                if records.next == records.end {
                    *records = fixture.mapped.claim_requests(entries[writer]).expect("a chunk");
                }
                request(records, start, end, number as u32);
                expected[writer].0.push(number as u32);
            } else {
                let records = collections[writer].get_or_insert_with(|| {
                    fixture.mapped.claim_collections(entries[writer]).expect("a chunk")
                });
                if records.next == records.end {
                    *records = fixture.mapped.claim_collections(entries[writer]).expect("a chunk");
                }
                collection(records, start, end, number as u64);
                expected[writer].1.push(number as u64);
            }
        }
        let processes = read(&fixture);
        prop_assert_eq!(processes.len(), 3);
        for (process, mut expected) in processes.iter().zip(expected) {
            prop_assert!(process.requests.is_sorted_by_key(|request| request.start_ns));
            prop_assert!(process.collections.is_sorted_by_key(|collection| collection.start_ns));
            let mut kinds: Vec<u32> = process.requests.iter().map(|request| request.kind).collect();
            let mut numbers: Vec<u64> = process.collections.iter().map(|collection| collection.number).collect();
            kinds.sort_unstable();
            numbers.sort_unstable();
            expected.0.sort_unstable();
            expected.1.sort_unstable();
            prop_assert_eq!(kinds, expected.0);
            prop_assert_eq!(numbers, expected.1);
        }
    }

    /// Whatever overwrites a part of a file, reading it gives events or an error.
    #[test]
    fn a_damaged_file_is_read_or_refused(
        at in 0u64..file_bytes(2),
        bytes in prop::collection::vec(any::<u8>(), 1..200),
    ) {
        let fixture = fixture(2);
        let process = fixture.mapped.claim_process(0, 0).expect("an entry");
        let mut records = fixture.mapped.claim_requests(process).expect("a chunk");
        let now = heaptoll_process::tsc::ticks();
        for number in 0..100 {
            request(&mut records, now + number, now + number + 5, 0);
        }
        let mut collections = fixture.mapped.claim_collections(process).expect("a chunk");
        for number in 0..100 {
            collection(&mut collections, now + number, now + number + 5, number);
        }
        let raw = OpenOptions::new().write(true).open(fixture.file.path()).expect("it opens");
        let length = (file_bytes(2) - at).min(bytes.len() as u64) as usize;
        raw.write_all_at(&bytes[..length], at).expect("it is written");
        if let Ok(processes) = fixture.file.read() {
            let most = REQUESTS.max(COLLECTIONS);
            prop_assert!(processes.iter().all(|process| process.requests.len() <= 2 * most));
            prop_assert!(processes.iter().all(|process| process.requests.iter().all(|r| r.start_ns <= r.end_ns)));
        }
        let _ = fixture.file.lost();
    }
}
