//! Ledgers of replays: blocks have the call sites of the recorded run.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use heaptoll_replay::job::Touch;
use heaptoll_replay::ledger::{Manager, Prepared, Replayed, Request, Sampled};
use heaptoll_replay::start::Stack;
use heaptoll_trace::{Allocation, Ending, EventKind, Header, Settings, Writer};

use crate::fixture::{glibc, manager};

/// Blocks that come and go, for each that stays.
const EACH: usize = 100;
const STAYING: usize = 500;

/// Blocks of site 1 from two threads, between them some of site 2 that stay when those are freed.
fn trace(folder: &Path) -> PathBuf {
    let header = Header { sites: true, ..Header::default() };
    let mut writer = Writer::new(Vec::new(), &header, &Settings::default()).expect("a writer");
    let call = |site, thread| Allocation {
        kind: EventKind::Malloc,
        thread,
        size: 120,
        usable: 120,
        align_log2: 0,
        site,
        latency_ns: 0,
    };
    let mut going = Vec::new();
    for at in 0..EACH * STAYING {
        let thread = u32::from(at % 1000 > 900);
        going.push(writer.allocate(&call(1, thread)).expect("a slot"));
        if at.is_multiple_of(EACH) {
            let mut slot = writer.allocate(&call(2, 0)).expect("a slot");
            if at.is_multiple_of(2 * EACH) {
                let larger = Allocation { kind: EventKind::Realloc, size: 140, ..call(1, 0) };
                writer.resize(slot, &larger, true).expect("resizes");
                slot = going.pop().expect("one");
                writer.free(slot, EventKind::Free, 0, 0).expect("frees");
            }
        }
    }
    for slot in going {
        writer.free(slot, EventKind::Free, 1, 0).expect("frees");
    }
    let bytes = writer.finish(&Ending::default()).expect("an end");
    let path = folder.join("trace");
    std::fs::write(&path, bytes).expect("writes");
    path
}

fn replay(trace: PathBuf, after: Vec<u64>, stack: Stack) -> Replayed {
    let prepared = Prepared::new(Request {
        trace,
        after,
        touch: Touch::Write,
        memory_limit_bytes: 1 << 30,
        timeout: Duration::from_secs(60),
        driver: PathBuf::from(env!("CARGO_BIN_EXE_heaptoll-replay")),
    });
    let name = stack.name.clone();
    prepared.expect("a trace").replay(&Manager { stack, name }, &AtomicBool::new(false)).expect("a driver")
}

fn sampled(replayed: Replayed) -> Vec<Sampled> {
    match replayed {
        Replayed::Sampled(all) => all,
        other => panic!("{other:?}"),
    }
}

#[test]
fn blocks_that_stay_hold_the_pages_by_the_call_site_of_the_recorded_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let all = sampled(replay(trace(folder.path()), vec![], glibc()));
    assert_eq!(all.len(), 40, "evenly");
    let last = all.last().expect("some");
    let pins = last.snapshot.pins.as_ref().expect("pages are read");
    assert_eq!(last.snapshot.live_blocks, STAYING as u64);
    assert_eq!((pins.sites.len(), pins.sites[0].site), (1, 2), "resizing leaves the site: {pins:?}");
    assert_eq!(pins.sites[0].blocks, STAYING as u64);
    let held = pins.bytes;
    assert!(held > (EACH * STAYING * 128 / 4) as u64 && held < last.resident_bytes, "{held}");
    let most = all.iter().map(|one| one.resident_bytes).max().expect("some");
    let requested = (EACH * STAYING * 120) as u64;
    assert!(
        most > requested && most < 2 * requested,
        "{most} resident of {requested}: without the driver's own"
    );
    let times: Vec<u64> = all.iter().map(|one| one.snapshot.clock_bytes).collect();
    assert!(times.is_sorted());
}

#[test]
fn marks_that_are_wanted_are_sampled_and_blocks_are_those_live_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let all = sampled(replay(trace(folder.path()), vec![3, 1000, 1_000_000], glibc()));
    let found: Vec<(u64, u64)> = all.iter().map(|one| (one.events, one.snapshot.live_blocks)).collect();
    // Malloc, malloc, resize; the trace ends before the last.
    assert_eq!(found[0], (3, 2));
    assert_eq!(found.len(), 2);
    let sites = all[0].snapshot.pins.as_ref().map_or(0, |pins| pins.sites.len());
    assert_eq!(sites, 2);
}

#[test]
fn a_manager_that_fails_is_no_error_of_the_replay() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = "#include <stdlib.h>\n#include <unistd.h>\nextern void *__libc_malloc(size_t); static int calls;\n\
        void *malloc(size_t bytes) { if (bytes == 120 && calls++ > 2000) _exit(3); return __libc_malloc(bytes); }";
    let stack = manager(folder.path(), "ends", source);
    let replayed = replay(trace(folder.path()), vec![], stack);
    assert!(matches!(&replayed, Replayed::Failed(why) if why.contains("status 3")), "{replayed:?}");
    let none = manager(folder.path(), "none", "int unused;");
    let replayed = replay(trace(folder.path()), vec![], none);
    assert!(
        matches!(&replayed, Replayed::Failed(why) if why.contains("still comes from the C library")),
        "{replayed:?}"
    );
}
