//! The file, written by the layer's half of the crate and read by the tool's, in one process.

use std::ffi::CString;
use std::fs::OpenOptions;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::Ordering::{Relaxed, Release};

use heaptoll_events::layout::{
    CHUNKS_AT, COLLECTIONS, CollectionRecord, HEADER_BYTES, PROCESS_BYTES, PROCESSES, REQUESTS,
    RequestRecord, file_bytes,
};
use heaptoll_events::mapped::{Mapped, Room};
use heaptoll_events::{EventsError, EventsFile, Lost, ProcessEvents};
use proptest::prelude::*;

struct Bench {
    _directory: tempfile::TempDir,
    file: EventsFile,
    mapped: Mapped,
}

fn mapped(path: &Path) -> Option<Mapped> {
    Mapped::open(&CString::new(path.as_os_str().as_bytes()).expect("no NUL"))
}

fn bench(chunks: u32) -> Bench {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("heaptoll-test.events");
    let file = EventsFile::create(&path, file_bytes(chunks)).expect("the file is made");
    let mapped = mapped(&path).expect("the file is mapped");
    Bench { _directory: directory, file, mapped }
}

/// Appends a request, with room for it.
fn request(room: &mut Room<RequestRecord>, start: u64, end: u64, kind: u32) {
    assert!(room.next < room.end);
    // SAFETY: room in the mapping, which stays; this thread alone writes there.
    unsafe {
        let record = &*room.next;
        record.start.store(start, Relaxed);
        record.kind.store(kind, Relaxed);
        record.thread.store(77, Relaxed);
        record.end.store(end, Release);
        room.next = room.next.add(1);
    }
}

fn collection(room: &mut Room<CollectionRecord>, start: u64, end: u64, number: u64) {
    assert!(room.next < room.end);
    // SAFETY: as in `request`.
    unsafe {
        let record = &*room.next;
        record.start.store(start, Relaxed);
        record.number.store(number, Relaxed);
        record.live_bytes.store(number * 10, Relaxed);
        record.collector.store(1, Relaxed);
        record.reason.store(2, Relaxed);
        record.end.store(end, Release);
        room.next = room.next.add(1);
    }
}

fn read(bench: &Bench) -> Vec<ProcessEvents> {
    bench.file.read().expect("the file is read")
}

#[test]
fn events_come_back_in_order_on_the_monotonic_clock() {
    let bench = bench(4);
    let process = bench.mapped.claim_process(2, 1).expect("an entry");
    let mut requests = bench.mapped.claim_requests(process).expect("a chunk");
    let mut collections = bench.mapped.claim_collections(process).expect("a chunk");
    let before = heaptoll_clock::monotonic_ns();
    let [a, b, c, d] = std::array::from_fn(|_| {
        std::thread::sleep(std::time::Duration::from_millis(5));
        heaptoll_clock::ticks()
    });
    let after = heaptoll_clock::monotonic_ns();
    request(&mut requests, c, d, 9);
    request(&mut requests, a, b, 8);
    collection(&mut collections, b, c, 5);
    let [process] = &read(&bench)[..] else { panic!("one process") };
    assert_eq!((process.pid, process.heard, process.unheard), (std::process::id(), 2, 1));
    assert_eq!(Path::new(&process.exe), std::env::current_exe().expect("a path"));
    assert_eq!(process.requests.iter().map(|r| (r.kind, r.thread)).collect::<Vec<_>>(), [(8, 77), (9, 77)]);
    let [collection] = process.collections[..] else { panic!("one collection") };
    assert_eq!(
        (collection.number, collection.live_bytes, collection.collector, collection.reason),
        (5, 50, 1, 2)
    );
    let [first, last] = process.requests[..] else { panic!("two requests") };
    let moments = [before, first.start_ns, first.end_ns, last.start_ns, last.end_ns, after];
    assert!(moments.is_sorted(), "{moments:?}");
    assert_eq!((collection.start_ns, collection.end_ns), (first.end_ns, last.start_ns));
    // The sleeps between.
    assert!(moments[1..5].windows(2).all(|pair| pair[1] - pair[0] >= 5_000_000), "{moments:?}");
    assert!(bench.file.lost().expect("it is read").is_none());
}

#[test]
fn a_record_without_an_end_is_where_a_killed_thread_was() {
    let bench = bench(2);
    let process = bench.mapped.claim_process(0, 0).expect("an entry");
    let mut requests = bench.mapped.claim_requests(process).expect("a chunk");
    let now = heaptoll_clock::ticks();
    request(&mut requests, now, now + 1, 1);
    request(&mut requests, now + 2, 0, 2);
    // An entry and a chunk that were claimed and never filled in.
    let entry = (HEADER_BYTES + PROCESS_BYTES) as u64;
    let raw = OpenOptions::new().write(true).open(bench.file.path()).expect("it opens");
    bench.mapped.claim_process(0, 0).expect("an entry");
    raw.write_all_at(&[0; 4], entry).expect("it is written");
    bench.mapped.claim_requests(process).expect("a chunk");
    raw.write_all_at(&[0; 4], file_bytes(1)).expect("it is written");
    let processes = read(&bench);
    assert_eq!(processes.len(), 1);
    assert_eq!(processes[0].requests.iter().map(|request| request.kind).collect::<Vec<_>>(), [1]);
}

#[test]
fn a_request_that_ends_on_a_processor_whose_counter_is_behind_takes_no_time() {
    let bench = bench(1);
    let process = bench.mapped.claim_process(0, 0).expect("an entry");
    let mut requests = bench.mapped.claim_requests(process).expect("a chunk");
    let now = heaptoll_clock::ticks();
    request(&mut requests, now, now - 200, 1);
    let [request] = read(&bench)[0].requests[..] else { panic!("one request") };
    assert_eq!(request.start_ns, request.end_ns);
}

#[test]
fn where_the_kernel_does_not_use_the_counter_times_are_its_own() {
    let bench = bench(1);
    let process = bench.mapped.claim_process(0, 0).expect("an entry");
    let mut requests = bench.mapped.claim_requests(process).expect("a chunk");
    request(&mut requests, 5_000_000_123, 5_000_000_456, 1);
    // The flags of its entry.
    let raw = OpenOptions::new().write(true).open(bench.file.path()).expect("it opens");
    raw.write_all_at(&[0; 4], HEADER_BYTES as u64 + 12).expect("it is written");
    let [request] = read(&bench)[0].requests[..] else { panic!("one request") };
    assert_eq!((request.start_ns, request.end_ns), (5_000_000_123, 5_000_000_456));
}

#[test]
fn a_full_file_says_what_it_lost() {
    let bench = bench(1);
    let process = bench.mapped.claim_process(0, 0).expect("an entry");
    let mut room = bench.mapped.claim_requests(process).expect("a chunk");
    let now = heaptoll_clock::ticks();
    for number in 0..REQUESTS as u64 {
        request(&mut room, now + number, now + number + 1, 0);
    }
    assert_eq!(room.next, room.end);
    for _ in 0..3 {
        assert!(bench.mapped.claim_requests(process).is_none());
        bench.mapped.lost_request();
        assert!(bench.mapped.claim_collections(process).is_none());
    }
    bench.mapped.lost_collection();
    assert_eq!(read(&bench)[0].requests.len(), REQUESTS);
    assert_eq!(bench.file.lost().expect("it is read"), Lost { requests: 3, collections: 1, processes: 0 });
    bench.file.clear().expect("it is cleared");
    assert!(read(&bench).is_empty());
    assert!(bench.file.lost().expect("it is read").is_none());
    let process = bench.mapped.claim_process(0, 0).expect("an entry");
    assert!(bench.mapped.claim_collections(process).is_some());
    let [process] = &read(&bench)[..] else { panic!("one process") };
    assert!(process.requests.is_empty() && process.collections.is_empty(), "{process:?}");
}

#[test]
fn more_processes_than_the_table_has_room_for_are_counted() {
    let bench = bench(1);
    for _ in 0..PROCESSES {
        assert!(bench.mapped.claim_process(0, 0).is_some());
    }
    assert!(bench.mapped.claim_process(0, 0).is_none());
    assert_eq!(bench.file.lost().expect("it is read").processes, 1);
    assert_eq!(read(&bench).len(), PROCESSES);
}

#[test]
fn a_file_that_is_none_or_was_cut_is_refused_by_both_sides() {
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
    let cut = OpenOptions::new().write(true).open(path("cut")).expect("it opens");
    cut.set_len(file_bytes(2)).expect("it is cut");
    let error = EventsFile::open(&path("cut")).expect_err("it is refused");
    assert!(matches!(error, EventsError::Truncated { .. }), "{error}");
    assert!(mapped(&path("cut")).is_none());

    let error = EventsFile::create(&path("small"), file_bytes(1) - 1).expect_err("it is refused");
    assert!(matches!(error, EventsError::TooSmall { .. }), "{error}");
}

#[test]
fn a_header_that_changes_after_it_was_mapped_leads_no_writer_out_of_the_file() {
    let bench = bench(2);
    let process = bench.mapped.claim_process(0, 0).expect("an entry");
    let raw = OpenOptions::new().write(true).open(bench.file.path()).expect("it opens");
    for chunks in [0, 2, 3, u32::MAX] {
        for claimed in [2, 3, 0x700_0000, u32::MAX] {
            // Chunks; and behind them the entries and chunks that were claimed.
            let halves = [chunks, claimed | 1 << 20, claimed].map(u32::to_ne_bytes).concat();
            raw.write_all_at(&halves, 12).expect("it is written");
            assert!(bench.mapped.claim_requests(process).is_none(), "{chunks} {claimed}");
            assert!(bench.mapped.claim_collections(process).is_none(), "{chunks} {claimed}");
            assert!(bench.mapped.claim_process(0, 0).is_none(), "{chunks} {claimed}");
        }
    }
}

#[test]
fn a_header_and_a_length_that_grow_together_do_not_keep_the_reader_for_ever() {
    let bench = bench(1);
    let raw = OpenOptions::new().write(true).open(bench.file.path()).expect("it opens");
    let chunks = 1u32 << 24;
    raw.set_len(file_bytes(chunks)).expect("it grows");
    let halves = [chunks, 1, u32::MAX].map(u32::to_ne_bytes).concat();
    raw.write_all_at(&halves, 12).expect("it is written");
    assert!(matches!(bench.file.read(), Err(EventsError::Foreign { .. })));
    assert!(bench.file.clear().is_err());
}

#[test]
fn chunks_that_say_nonsense_are_damage() {
    let raw = |bench: &Bench| OpenOptions::new().write(true).open(bench.file.path()).expect("it opens");
    for (at, value) in [(0, 99u32), (4, 1)] {
        let bench = bench(1);
        let process = bench.mapped.claim_process(0, 0).expect("an entry");
        bench.mapped.claim_requests(process).expect("a chunk");
        raw(&bench).write_all_at(&value.to_ne_bytes(), CHUNKS_AT as u64 + at).expect("it is written");
        let error = bench.file.read().expect_err("it is refused");
        assert!(matches!(error, EventsError::Damaged { .. }), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Whatever the order of events of several processes, each comes back with its process, and nothing else does.
    #[test]
    fn several_processes_each_get_what_is_theirs(
        events in prop::collection::vec((0usize..3, any::<bool>(), 1u64..1_000_000, 0u64..1000), 0..3000),
    ) {
        let bench = bench(12);
        let entries: Vec<u32> = (0..3).map(|_| bench.mapped.claim_process(0, 0).expect("an entry")).collect();
        let begun = heaptoll_clock::ticks();
        let mut requests: [Option<Room<RequestRecord>>; 3] = [const { None }; 3];
        let mut collections: [Option<Room<CollectionRecord>>; 3] = [const { None }; 3];
        let mut expected = [const { (Vec::new(), Vec::new()) }; 3];
        for (number, &(who, is_request, start, length)) in events.iter().enumerate() {
            let (start, end) = (begun + start, begun + start + length);
            if is_request {
                let room = requests[who].get_or_insert_with(|| {
                    bench.mapped.claim_requests(entries[who]).expect("a chunk")
                });
                if room.next == room.end {
                    *room = bench.mapped.claim_requests(entries[who]).expect("a chunk");
                }
                request(room, start, end, number as u32);
                expected[who].0.push(number as u32);
            } else {
                let room = collections[who].get_or_insert_with(|| {
                    bench.mapped.claim_collections(entries[who]).expect("a chunk")
                });
                if room.next == room.end {
                    *room = bench.mapped.claim_collections(entries[who]).expect("a chunk");
                }
                collection(room, start, end, number as u64);
                expected[who].1.push(number as u64);
            }
        }
        let processes = read(&bench);
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

    /// Whatever is written over a part of a file, reading it gives events or an error.
    #[test]
    fn a_damaged_file_is_read_or_refused(
        at in 0u64..file_bytes(2),
        bytes in prop::collection::vec(any::<u8>(), 1..200),
    ) {
        let bench = bench(2);
        let process = bench.mapped.claim_process(0, 0).expect("an entry");
        let mut room = bench.mapped.claim_requests(process).expect("a chunk");
        let now = heaptoll_clock::ticks();
        for number in 0..100 {
            request(&mut room, now + number, now + number + 5, 0);
        }
        let mut collections = bench.mapped.claim_collections(process).expect("a chunk");
        for number in 0..100 {
            collection(&mut collections, now + number, now + number + 5, number);
        }
        let raw = OpenOptions::new().write(true).open(bench.file.path()).expect("it opens");
        let length = (file_bytes(2) - at).min(bytes.len() as u64) as usize;
        raw.write_all_at(&bytes[..length], at).expect("it is written");
        if let Ok(processes) = bench.file.read() {
            let most = REQUESTS.max(COLLECTIONS);
            prop_assert!(processes.iter().all(|process| process.requests.len() <= 2 * most));
            prop_assert!(processes.iter().all(|process| process.requests.iter().all(|r| r.start_ns <= r.end_ns)));
        }
        let _ = bench.file.lost();
    }
}
