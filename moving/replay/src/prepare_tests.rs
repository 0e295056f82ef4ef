//! Tests of the parent: traces made by the writer of traces, and the programs that they become.

use super::*;
use heaptoll_trace::graph::{
    Access as Recorded, Allocation, AllocationKind, Edge, FreeCause, LastTouch, Root, RootKind, Writer,
};
use heaptoll_trace::{Ending, Header, Settings, TraceError};

type Builder = Writer<Vec<u8>>;

fn allocate(writer: &mut Builder, size: u64) -> u64 {
    let kind = AllocationKind::Plain;
    writer.allocate(&Allocation { size, site: 0, thread: 0, kind, align_log2: 0 })
}

fn edge(writer: &mut Builder, from: u64, word: u64, to: u64) {
    writer.edge(&Edge { from, offset: 8 * word, to, to_offset: 0 });
}

fn touch(writer: &Builder) -> Option<LastTouch> {
    Some(LastTouch { event: writer.events(), clock_bytes: writer.clock_bytes() })
}

fn of_bytes(bytes: &[u8], limit: u64) -> Result<(Prepared, Vec<Operation>), Error> {
    let folder = tempfile::tempdir().unwrap();
    let (trace, program) = (folder.path().join("trace"), folder.path().join("program"));
    std::fs::write(&trace, bytes).unwrap();
    let prepared = prepare(&trace, &program, limit)?;
    Ok((prepared, Program::open(&program)?.operations().collect()))
}

fn bytes(make: impl FnOnce(&mut Builder)) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), &Header::default(), &Settings::default()).unwrap();
    make(&mut writer);
    writer.finish(&Ending::default()).unwrap()
}

fn made(make: impl FnOnce(&mut Builder)) -> (Prepared, Vec<Operation>) {
    of_bytes(&bytes(make), 1 << 20).unwrap()
}

use Operation::{Allocate, Clear, End, Point, Release, Root as Rooted};

#[test]
fn objects_are_released_at_their_last_touch_and_ended_where_they_are_freed() {
    let (prepared, operations) = made(|writer| {
        let first = allocate(writer, 20);
        let last_touch = touch(writer);
        allocate(writer, 0);
        writer.free(first, 20, 0, FreeCause::Free, last_touch);
        let third = allocate(writer, 8);
        writer.kept(1, None);
        writer.kept(third, touch(writer));
    });
    let allocated = |handle, words| Allocate { handle, words, scanned: 0 };
    let expected =
        [allocated(0, 3), Release(0), allocated(1, 0), Release(1), End(0), allocated(0, 1), Release(0)];
    assert_eq!(operations, expected);
    assert_eq!((prepared.objects, prepared.allocated_bytes, prepared.most_live_bytes), (3, 28, 20));
}

#[test]
fn an_object_states_from_its_beginning_which_of_its_words_hold_pointers() {
    let (_, operations) = made(|writer| {
        let (from, to) = (allocate(writer, 100), allocate(writer, 8));
        edge(writer, from, 4, to);
        edge(writer, from, 2, to);
    });
    assert_eq!(operations[0], Allocate { handle: 0, words: 13, scanned: 5 });
    assert_eq!(operations[1], Allocate { handle: 1, words: 1, scanned: 0 });
}

#[test]
fn words_that_point_to_a_freed_object_are_cleared_before_it_ends() {
    let (prepared, operations) = made(|writer| {
        let (from, to) = (allocate(writer, 16), allocate(writer, 8));
        edge(writer, from, 0, to);
        edge(writer, from, 1, to);
        writer.clear(from, 0);
        writer.free(to, 8, 0, FreeCause::Free, None);
    });
    assert!(operations.ends_with(&[Clear { from: 0, word: 0 }, Clear { from: 0, word: 1 }, End(1)]));
    assert_eq!((prepared.edges, prepared.dangling), (2, 1));
}

#[test]
fn a_root_point_ends_the_roots_before_it_and_names_each_of_its_own_once() {
    let (prepared, operations) = made(|writer| {
        let (first, second) = (allocate(writer, 8), allocate(writer, 8));
        let root = |object, kind| Root { object, kind, offset: 0 };
        writer.roots(&[
            root(second, RootKind::Register),
            root(first, RootKind::Stack),
            root(second, RootKind::Static),
        ]);
        writer.touch(first);
    });
    assert!(operations.ends_with(&[Point, Rooted(0), Rooted(1), Rooted(0)]), "{operations:?}");
    assert_eq!((prepared.root_points, prepared.partial_root_points), (1, 0));
}

#[test]
fn accesses_and_requests_are_replayed_where_they_were_and_end_with_their_object() {
    let access = |writer: &mut Builder, object, offset, size, store| {
        writer.access(&Recorded { object, offset, size, store, thread: 0 });
    };
    let (prepared, operations) = made(|writer| {
        let (first, empty) = (allocate(writer, 20), allocate(writer, 0));
        writer.request_begin(3);
        access(writer, first, 16, 32, true);
        access(writer, first, 0, 4, false);
        access(writer, empty, 0, 1, false);
        writer.request_end(3);
    });
    let replayed = |offset, bytes, store| Operation::Access(Access { handle: 0, offset, bytes, store });
    let expected = [
        Operation::RequestBegin(3),
        // The object's last word is whole.
        replayed(16, 8, true),
        replayed(0, 4, false),
        Operation::RequestEnd(3),
    ];
    assert_eq!(operations[2..], expected);
    assert_eq!((prepared.accesses, prepared.accesses_beyond, prepared.requests), (3, 1, 1));
}

#[test]
fn an_object_is_held_until_its_last_access() {
    let (_, operations) = made(|writer| {
        let object = allocate(writer, 8);
        writer.access(&Recorded { object, offset: 0, size: 8, store: false, thread: 0 });
        let last_touch = touch(writer);
        writer.free(object, 8, 0, FreeCause::Free, last_touch);
    });
    assert!(matches!(operations[..], [_, Operation::Access(_), Release(0), End(0)]), "{operations:?}");
}

#[test]
fn a_trace_that_was_cut_keeps_its_objects_to_the_end() {
    let mut writer = Writer::new(Vec::new(), &Header::default(), &Settings::default()).unwrap();
    allocate(&mut writer, 8);
    writer.flush().unwrap();
    let whole = writer.finish(&Ending::default()).unwrap();
    let (prepared, operations) = of_bytes(&whole, 1 << 20).unwrap();
    assert_eq!(operations, [Allocate { handle: 0, words: 1, scanned: 0 }]);
    assert_eq!(prepared.endless, 1);
    assert!(!prepared.warnings.is_empty());
}

#[test]
fn every_cut_of_a_trace_is_replayed_as_far_as_it_goes_or_refused() {
    let whole = bytes(|writer| {
        for _ in 0..50 {
            let (from, to) = (allocate(writer, 64), allocate(writer, 64));
            edge(writer, from, 3, to);
            writer.roots(&[Root { object: from, kind: RootKind::Stack, offset: 0 }]);
            writer.free(to, 64, 0, FreeCause::Free, touch(writer));
        }
    });
    for length in 0..whole.len() {
        if let Ok((_, operations)) = of_bytes(&whole[..length], 1 << 20) {
            assert!(!operations.is_empty(), "{length}");
        }
    }
}

#[test]
fn what_is_no_trace_with_pointers_is_refused_with_the_reason() {
    let plain = heaptoll_trace::Writer::new(Vec::new(), &Header::default(), &Settings::default()).unwrap();
    let plain = plain.finish(&Ending::default()).unwrap();
    for wrong in [b"text".as_slice(), &plain] {
        assert!(matches!(
            of_bytes(wrong, 1 << 20),
            Err(Error::Trace(TraceError::NotATrace { .. } | TraceError::NotAGraph { .. }))
        ));
    }
    let empty = bytes(|_| ());
    assert!(matches!(of_bytes(&empty, 1 << 20), Err(Error::Empty(_))));
}

#[test]
fn tables_that_take_more_memory_than_is_allowed_are_refused() {
    let many = bytes(|writer| {
        for _ in 0..100 {
            allocate(writer, 8);
        }
    });
    let refused = of_bytes(&many, 1000).unwrap_err();
    assert!(matches!(refused, Error::Memory { objects: 100, needs_bytes: 1200, limit_bytes: 1000, .. }));
    assert!(refused.to_string().contains("allow it with --memory-limit 1M"), "{refused}");
}

#[test]
fn a_trace_whose_events_contradict_each_other_is_refused_by_its_own_name() {
    let contradictory = bytes(|writer| {
        let (empty, other) = (allocate(writer, 0), allocate(writer, 8));
        edge(writer, empty, 0, other);
    });
    let refused = of_bytes(&contradictory, 1 << 20).unwrap_err();
    assert!(matches!(refused, Error::Damaged { .. }), "{refused}");
    assert!(refused.to_string().contains("/trace is damaged"), "{refused}");
}

#[test]
fn a_full_folder_is_named_with_the_lack_of_space() {
    let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
    let text = Error::system("write", Path::new("/some/where/ready"))(full).to_string();
    assert!(text.contains("no space left in the folder /some/where,") && text.contains("TMPDIR"), "{text}");
}
