//! Recordings of heaptrack, real ones of `heaptrack_recordings/requests.cc` and made ones, become traces; damaged ones are refused
//! or cut.

use std::io::Read;
use std::time::{Duration, SystemTime};

use heaptoll_record::heaptrack::{About, HeaptrackError, Summary, import, is_heaptrack, unpack};
use heaptoll_testing::damage::Dice;
use heaptoll_trace::{Batch, EventKind, Reader, Tables, TraceError};
use proptest::prelude::*;

const INTERPRETED: &[u8] = include_bytes!("heaptrack_recordings/requests.zst");
const RAW: &[u8] = include_bytes!("heaptrack_recordings/requests.raw.zst");

fn about() -> About {
    About {
        name: "x.zst".into(),
        // No file on this machine is as old: names of raw recordings are not looked up.
        recorded_at: SystemTime::UNIX_EPOCH + Duration::from_secs(1),
        memory_limit_bytes: 64 << 20,
        heaptoll: "1".into(),
    }
}

/// An output that can be read when the writer has ended.
fn imported(bytes: &[u8]) -> Result<(Summary, Vec<u8>), HeaptrackError> {
    let file = std::env::temp_dir().join(format!(
        "heaptoll-import-{}-{:?}.heaptoll",
        std::process::id(),
        std::thread::current().id()
    ));
    let unpacked = unpack(bytes).map_err(|source| HeaptrackError::Read { name: "x".into(), source })?;
    let make = || heaptoll_trace::TraceFile::create(&file, true);
    let summary = import(unpacked.read, &about(), make);
    let trace = std::fs::read(&file).unwrap_or_default();
    let _ = std::fs::remove_file(&file);
    Ok((summary?, trace))
}

/// Objects made, bytes, most bytes alive, objects never freed, events that are neither.
fn sums(trace: &[u8]) -> ([u64; 5], Tables) {
    let mut reader = Reader::new(trace).expect("a trace");
    let (mut batch, mut sizes) = (Batch::default(), Vec::new());
    let (mut objects, mut bytes, mut live, mut most, mut odd) = (0, 0, 0_u64, 0, 0);
    while reader.read(&mut batch).expect("reads") {
        for event in &batch.events {
            let slot = event.slot as usize;
            match event.kind {
                kind if kind.allocates() => {
                    sizes.resize(sizes.len().max(slot + 1), 0);
                    sizes[slot] = event.size;
                    (objects, bytes, live) = (objects + 1, bytes + event.size, live + event.size);
                    most = most.max(live);
                }
                EventKind::Free => live -= std::mem::take(&mut sizes[slot]),
                _ => odd += 1,
            }
        }
    }
    let kept = sizes.iter().filter(|size| **size > 0).count() as u64;
    ([objects, bytes, most, kept, odd], reader.into_tables())
}

fn plain(bytes: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    unpack(bytes).expect("begins").read.read_to_end(&mut all).expect("unpacks");
    all
}

/// As `heaptrack_print` counts them: 303 allocations (300 requests, two of a resize, and the C++ library's reserve), a
/// peak of 92.0 kB, 10.3 kB never freed.
#[test]
fn both_forms_have_the_sums_that_heaptrack_prints() {
    let requests: u64 = (0..300).map(|n| 100 + n % 7).sum();
    let kept: u64 = (0..300).filter(|n| n % 3 == 0).map(|n| 100 + n % 7).sum();
    let reserve = 0x11c00;
    for (file, is_raw) in [(INTERPRETED, false), (RAW, true)] {
        let (summary, trace) = imported(file).expect("imports");
        let (sums, tables) = sums(&trace);
        let most = kept + reserve + 9000;
        assert_eq!(sums, [303, requests + 5000 + 9000 + reserve, most, 100, 0], "raw: {is_raw}");
        assert_eq!((summary.is_raw, summary.cut, summary.stacks), (is_raw, None, 4));
        assert!(tables.warnings.is_empty(), "{:?}", tables.warnings);
        let imported = tables.header.imported.expect("another tool's");
        assert!(imported.from.starts_with("heaptrack 1.4.0 (file format 3, "), "{}", imported.from);
        assert_eq!(imported.lacks, summary.lacks);
        assert_eq!(imported.lacks.iter().any(|lack| lack.contains("single lifetimes")), !is_raw);
        assert_eq!(tables.header.command, ["./requests"]);
        let ending = tables.ending.expect("an end");
        let expected = if is_raw { (1_000_000, Some(3812)) } else { (0, Some(3836)) };
        assert_eq!((ending.time_ns, ending.peak_rss_kib), expected);
    }
}

#[test]
fn an_interpreted_recording_has_functions_with_lines() {
    let (_, trace) = imported(INTERPRETED).expect("imports");
    let sites = sums(&trace).1.sites.expect("call stacks");
    let stacks: Vec<Vec<String>> = sites
        .sites
        .iter()
        .map(|site| {
            let frames = site.frames.iter().map(|&frame| &sites.frames[frame as usize]);
            frames.map(|frame| format!("{} ({})", frame.function, frame.line)).collect()
        })
        .collect();
    assert!(stacks[0].is_empty());
    let requests =
        stacks.iter().find(|stack| stack.iter().any(|frame| frame.starts_with("parse"))).expect("it");
    let inside = requests.iter().position(|frame| frame.starts_with("parse")).expect("it");
    let [parse, handle, main] = &requests[inside..inside + 3] else { panic!("{requests:?}") };
    assert!(parse.ends_with("requests.cc:7)"), "{parse}");
    assert!(handle.starts_with("handle") && handle.ends_with("requests.cc:12)"), "{handle}");
    assert!(main.starts_with("main (") && main.ends_with("requests.cc:16)"), "{main}");
}

#[test]
fn a_raw_recording_keeps_addresses_within_files_and_takes_no_names_from_newer_ones() {
    let (_, trace) = imported(RAW).expect("imports");
    let sites = sums(&trace).1.sites.expect("call stacks");
    let of_program: Vec<_> = sites.frames.iter().filter(|frame| frame.object.contains("/requests")).collect();
    assert!(of_program.iter().any(|frame| frame.offset == 0x11ab + 1), "the address after the call");
    assert!(of_program.iter().all(|frame| frame.function.is_empty()));
}

#[test]
fn other_versions_and_other_files_are_refused_with_their_reason() {
    let error = |bytes: &[u8]| imported(bytes).expect_err("refused");
    assert!(matches!(error(b"v 10600 4\nX a\n"), HeaptrackError::OtherVersion { version: 4, .. }));
    assert!(matches!(error(b"v 10200\nX a\n"), HeaptrackError::OtherVersion { version: 0, .. }));
    assert!(matches!(error(b"{\"dhatFileVersion\":2}"), HeaptrackError::NotHeaptrack { .. }));
    assert!(matches!(error(b""), HeaptrackError::NotHeaptrack { .. }));
    assert!(matches!(error(b"v 10400 3\nX ./a\nI 1000 5\n"), HeaptrackError::Empty { .. }));
    for (text, at) in [
        ("v 10400 3\ns 99 short\n", 2),
        ("v 10400 3\ni 5 1\n", 2),
        ("v 10400 3\nt 1 0\n", 2),
        ("v 10400 3\ni 5 0\nt 1 1\n", 3),
        ("v 10400 3\na 5 1\n", 2),
        ("v 10400 3\nc 1\n+ 0\n", 3),
        ("v 10400 3\nx 2 /a\nm 1 -\n+ 5 1 1000\n", 4),
        ("v 10400 3\n%\n", 2),
        ("v 10400 3\nz 5\n", 2),
    ] {
        match error(text.as_bytes()) {
            HeaptrackError::Malformed { line, .. } => assert_eq!(line, at, "{text}"),
            other => panic!("{text}: {other}"),
        }
    }
    assert!(is_heaptrack(&plain(RAW)) && !is_heaptrack(b"v {") && !is_heaptrack(b"\x1f\x8b"));
}

/// What bytehound's `export-heaptrack` writes: version 2, texts without lengths.
#[test]
fn version_2_has_texts_without_lengths() {
    let text = "v 10100 2\nX /bin/a b\ns /lib/my lib.so\ns f(int, char)\ns f.c\ni 7f0000001000 1 2 3 7 2 3 9\nt 1 0\n\
                a 40 1\n+ 0\nc 5\n+ 0\n- 0\nc a\n";
    let (summary, trace) = imported(text.as_bytes()).expect("imports");
    let (sums, tables) = sums(&trace);
    assert_eq!((sums, summary.stacks), ([2, 128, 128, 1, 0], 1));
    let frames = tables.sites.expect("call stacks").frames;
    assert_eq!(frames.len(), 2, "one is inlined into the other");
    assert_eq!((frames[0].object.as_str(), frames[0].function.as_str()), ("/lib/my lib.so", "f(int, char)"));
    assert_eq!((frames[0].line.as_str(), frames[1].line.as_str()), ("f.c:7", "f.c:9"));
    assert_eq!(frames[0].offset, 0x7f00_0000_1000, "heaptrack 1.1 has the address after the call");
}

#[test]
fn addresses_that_do_not_fit_are_counted() {
    let text =
        "v 10400 3\nx 2 /a\nX a\nA\nm 1 -\nm 1 x 1000 0 2000\nt 1500 0\n- 9000\n+ 10 1 5000\n+ 20 1 5000\n";
    let (summary, trace) = imported(text.as_bytes()).expect("imports");
    assert_eq!((summary.tally.unknown_frees, summary.tally.unseen_frees), (1, 1));
    assert!(summary.lacks.iter().any(|lack| lack.contains("attached")));
    let (sums, tables) = sums(&trace);
    assert_eq!((sums[0], sums[4]), (2, 2), "a foreign free and a lost one");
    assert_eq!(tables.sites.expect("call stacks").frames[0].offset, 0x501);
}

#[test]
fn a_recording_that_was_cut_off_is_a_trace_with_a_gap() {
    let events: String = (0..100_000_u64).map(|n| format!("+ 0\nc {:x}\n", n * n % 977)).collect();
    let text = format!("v 10400 3\ni 5 0\nt 1 0\na 5 1\n{events}");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, text.as_bytes()).expect("a vector takes all");
    let gzip = gzip.finish().expect("ends");
    for cut in [&gzip[..gzip.len() * 3 / 4], &text.as_bytes()[..text.len() - 3]] {
        let (summary, trace) = imported(cut).expect("imports what is whole");
        assert!(summary.cut.is_some_and(|why| why.contains("cut off")));
        assert!(summary.events > 10_000);
        assert_eq!(sums(&trace).1.gaps.len(), 1);
    }
    // zstd keeps a short recording in one block: nothing of it is whole.
    let nothing = imported(&INTERPRETED[..INTERPRETED.len() / 2]);
    assert!(matches!(nothing, Err(HeaptrackError::Read { .. })));
}

#[test]
fn memory_has_a_limit() {
    let chain: String = (0..200_000).map(|caller| format!("t 1 {caller:x}\n")).collect();
    let stacks: String = (1..200_000).map(|node| format!("a 1 {node:x}\n+ {:x}\n", node - 1)).collect();
    let text = format!("v 10400 3\ni 5 0\n{chain}{stacks}");
    let few = About { memory_limit_bytes: 32 << 20, ..about() };
    let result = import(text.as_bytes(), &few, || Ok::<_, TraceError>(Vec::new()));
    assert!(matches!(result, Err(HeaptrackError::Memory { .. })), "every stack has up to 256 frames");
}

fn damaged(bytes: &[u8], seed: u64) {
    let bytes = heaptoll_testing::damage::bytes(&mut Dice::new(seed), bytes);
    let read = unpack(&bytes[..]).expect("memory can be read").read;
    // An error has a type; a panic fails the test.
    let _ = import(read, &about(), || Ok::<_, TraceError>(Vec::new()));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn damaged_recordings_are_imported_or_refused(seed: u64) {
        damaged(&plain(INTERPRETED), seed);
        damaged(&plain(RAW), seed);
        damaged(INTERPRETED, seed);
    }

    #[test]
    fn cut_recordings_are_imported_or_refused(at in 0_usize..4000) {
        for whole in [plain(INTERPRETED), plain(RAW)] {
            let cut = &whole[..at.min(whole.len())];
            let _ = import(cut, &about(), || Ok::<_, TraceError>(Vec::new()));
        }
    }

    #[test]
    fn any_lines_are_imported_or_refused(
        lines in proptest::collection::vec("[vxXImstia+\\-cRAS#]( [0-9a-f]{0,17}){0,5}", 0..60),
        sized: bool,
    ) {
        let text = format!("v 10400 {}\n{}\n", if sized { 3 } else { 2 }, lines.join("\n"));
        let _ = import(text.as_bytes(), &about(), || Ok::<_, TraceError>(Vec::new()));
    }
}
