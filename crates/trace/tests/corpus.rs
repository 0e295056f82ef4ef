//! Small files that a user may give by mistake or on purpose: each is refused or read with the outcome in the table, in
//! little memory. `cargo test -p heaptoll-trace --test corpus -- --ignored` makes the generated ones again.

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::{chunk, chunks, file_head, read, trace};
use heaptoll_trace::{Reader, TraceError, tables};

/// Counts what the reader allocates.
struct Counter;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counter {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(now, Ordering::Relaxed);
        // SAFETY: the caller of `alloc` keeps the contract of `GlobalAlloc`, and `System.alloc` has the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: `block` was allocated by `alloc` above with this layout, so by `System`.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static COUNTER: Counter = Counter;

/// The expected outcome of a file.
enum Outcome {
    /// Not a trace; it seems to be this.
    Foreign(&'static str),
    /// Newer, of this version.
    Newer(u32),
    /// Read: this many events, and a warning with this text (empty: no warning).
    Read(usize, &'static str),
}
use Outcome::{Foreign, Newer, Read as Readable};

/// A chunk of one event with hostile numbers: `head` changes the head of events.
fn events(head: impl Fn(&mut Vec<u8>), columns: &[(u8, u8, u32, &[u8])]) -> Vec<u8> {
    let mut payload = vec![0; 48];
    payload[0] = 1;
    payload[6..8].copy_from_slice(&(columns.len() as u16).to_le_bytes());
    head(&mut payload);
    for (which, encoding, length, bytes) in columns {
        payload.extend_from_slice(&[*which, *encoding, 0, 0]);
        payload.extend_from_slice(&length.to_le_bytes());
        payload.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    }
    columns.iter().for_each(|column| payload.extend_from_slice(column.3));
    payload
}

fn zeroes(length: usize) -> Vec<u8> {
    zstd::bulk::compress(&vec![0; length], 1).unwrap()
}

fn with(parts: &[(u8, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = file_head(1);
    let header = [&[0, 0, 0, 0, 2, 0, 0, 0][..], b"{}"].concat();
    bytes.extend_from_slice(&chunk(1, 0, &header));
    for (at, (kind, payload)) in parts.iter().enumerate() {
        bytes.extend_from_slice(&chunk(*kind, at as u64 + 1, payload));
    }
    bytes
}

fn text(encoding: u8, flags: u8, length: u32, name: &[u8], bytes: &[u8]) -> Vec<u8> {
    [&[encoding, flags, name.len() as u8, 0][..], &length.to_le_bytes(), name, bytes].concat()
}

/// Name, bytes, outcome.
type Case = (&'static str, Vec<u8>, Outcome);
/// Name, kinds and payloads of chunks, events, text of a warning.
type Hostile = (&'static str, Vec<(u8, Vec<u8>)>, usize, &'static str);

fn files() -> Vec<Case> {
    let small = trace(3, 60, 20, true);
    let places = chunks(&small);
    let mut files: Vec<Case> = vec![
        ("empty", Vec::new(), Foreign("an empty file")),
        ("text", b"malloc(32) = 0x1000\nfree(0x1000)\n".to_vec(), Foreign("text")),
        ("json", b"{\"trace\": []}".to_vec(), Foreign("JSON")),
        ("gzip", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03".to_vec(), Foreign("a file compressed by gzip")),
        ("zstd", zstd::bulk::compress(&small, 1).unwrap(), Foreign("a file compressed by zstd")),
        (
            "elf",
            b"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x03\x00>\x00".to_vec(),
            Foreign("a program or library (ELF)"),
        ),
        ("parquet", b"PAR1\x15\x04\x15\x00PAR1".to_vec(), Foreign("a Parquet file")),
        ("sqlite", b"SQLite format 3\0\x10\x00\x01\x01".to_vec(), Foreign("an SQLite database")),
        ("zeroes", vec![0; 4096], Foreign("zeroes")),
        (
            "binary",
            vec![0xfe, 1, 2, 3, 4, 5, 6, 7, 8, 9],
            Foreign("binary data that begin with fe 01 02 03 04 05 06 07"),
        ),
        ("head-cut", small[..7].to_vec(), Foreign("cut off within its first bytes")),
        ("newer", file_head(2), Newer(2)),
        ("much-newer", file_head(u32::MAX), Newer(u32::MAX)),
        ("good", small.clone(), Readable(60, "")),
        ("head-only", small[..16].to_vec(), Readable(0, "no ending")),
        ("no-head", small[16..].to_vec(), Readable(60, "first bytes of the file are damaged")),
        (
            "version-hit",
            [&small[..8], &[9], &small[9..]].concat(),
            Readable(60, "first bytes of the file are damaged"),
        ),
        ("head-of-chunk-cut", small[..places[2].0 + 20].to_vec(), Readable(20, "it is cut off")),
        ("chunk-cut", small[..places[2].1 - 1].to_vec(), Readable(20, "is cut off")),
        ("trailing-garbage", [&small[..], &[7; 1000]].concat(), Readable(60, "head of a chunk is damaged")),
        ("trailing-zeroes", [&small[..], &[0; 5000]].concat(), Readable(60, "head of a chunk is damaged")),
    ];
    let malloc = |slot: Vec<u8>| {
        events(|_| {}, &[(0, 0, 1, &[16]), (1, 0, 1, &[33]), (2, 0, slot.len() as u32, &slot)])
    };
    let hostile: [Hostile; 24] = [
        ("unknown-kind-of-chunk", vec![(200, b"from the future".to_vec())], 0, "no ending"),
        ("events-too-short", vec![(2, vec![1, 2, 3])], 0, "its head is too short"),
        (
            "column-twice",
            vec![(2, events(|_| {}, &[(0, 0, 1, &[10]), (0, 0, 1, &[10])]))],
            0,
            "a column is there twice",
        ),
        (
            "site-overflow",
            vec![(
                5,
                text(0, 0, 83, b"", b"{\"first_site\":18446744073709551615,\"sites\":[{}],\"first_frame\":18446744073709551615}"),
            )],
            0,
            "the tables are larger than",
        ),
        (
            "too-many-events",
            vec![(2, events(|head| head[..4].fill(255), &[]))],
            0,
            "more events than a chunk may have",
        ),
        (
            "too-many-columns",
            vec![(2, events(|head| head[6..8].fill(255), &[]))],
            0,
            "list of columns is too short",
        ),
        (
            "long-column",
            vec![(2, events(|_| {}, &[(0, 1, u32::MAX, &zeroes(100))]))],
            0,
            "longer than its events can fill",
        ),
        (
            "column-past-the-end",
            vec![(2, {
                let mut payload = events(|_| {}, &[(0, 0, 1, &[0])]);
                payload[56..60].fill(255);
                payload
            })],
            0,
            "a column is too short",
        ),
        (
            "zstd-bomb",
            vec![(
                2,
                events(
                    |head| head[..4].copy_from_slice(&[0, 0, 4, 0]),
                    &[(0, 1, 3 << 18, &zeroes(64 << 20))],
                ),
            )],
            0,
            "cannot be unpacked",
        ),
        ("unknown-packing", vec![(2, events(|_| {}, &[(0, 9, 1, &[0])]))], 0, "packed in an unknown way"),
        ("unknown-op", vec![(2, events(|_| {}, &[(0, 0, 1, &[15])]))], 0, "unknown kind of event"),
        (
            "unknown-column",
            vec![(2, events(|_| {}, &[(0, 0, 1, &[10]), (77, 9, 9, b"whatever")]))],
            1,
            "no ending",
        ),
        ("column-missing", vec![(2, events(|_| {}, &[(0, 0, 1, &[0])]))], 0, "a column ends too early"),
        (
            "column-left-over",
            vec![(2, events(|_| {}, &[(0, 0, 1, &[10]), (1, 0, 1, &[1])]))],
            1,
            "do not fit its number of events",
        ),
        // Four thousand million slots in use by the head, and one more.
        (
            "slot-bomb-in-head",
            vec![(
                2,
                events(
                    |head| head[44..48].copy_from_slice(&[0xf0, 255, 255, 255]),
                    &[(0, 0, 1, &[0]), (1, 0, 1, &[33])],
                ),
            )],
            1,
            "does not continue",
        ),
        ("slot-bomb", vec![(2, malloc(vec![0x10, 0xfe, 0xff, 0xff, 0x1f]))], 0, "an impossible object"),
        (
            "free-of-nothing",
            vec![(2, events(|_| {}, &[(0, 0, 1, &[1]), (2, 0, 1, &[1])]))],
            0,
            "an impossible object",
        ),
        (
            "thread-bomb",
            vec![(2, events(|_| {}, &[(0, 0, 2, &[13, 10]), (5, 0, 5, &[0x10, 0xff, 0xff, 0xff, 0x7f])]))],
            0,
            "thread's number is beyond reason",
        ),
        (
            "thread-bomb-in-head",
            vec![(2, events(|head| head[40..44].fill(255), &[(0, 0, 1, &[10])]))],
            0,
            "thread's number is beyond reason",
        ),
        (
            "site-bomb",
            vec![(
                2,
                events(
                    |_| {},
                    &[(0, 0, 1, &[0]), (1, 0, 1, &[33]), (4, 0, 5, &[0x10, 0xff, 0xff, 0xff, 0x7f])],
                ),
            )],
            0,
            "site's number is beyond reason",
        ),
        (
            "huge-size",
            vec![(
                2,
                events(|_| {}, &[(0, 0, 1, &[0]), (1, 0, 9, &[0, 255, 255, 255, 255, 255, 255, 255, 255])]),
            )],
            0,
            "sizes are beyond reason",
        ),
        (
            "first-event-bomb",
            vec![(2, events(|head| head[8..16].fill(255), &[(0, 0, 1, &[10])]))],
            0,
            "clocks are beyond reason",
        ),
        (
            "sites-bomb",
            vec![(5, text(0, 0, 31, b"", b"{\"first_site\":67000000,\"sites\":"))],
            0,
            "has the wrong contents",
        ),
        (
            "hole-in-sites",
            vec![(5, text(0, 0, 39, b"", b"{\"first_frame\":60000000,\"frames\":[{}]} "))],
            0,
            "tables are larger than",
        ),
    ];
    for (name, parts, count, words) in hostile {
        files.push((name, with(&parts), Readable(count, words)));
    }
    // A megabyte of spaces a chunk, a thousand times, never ending: a table without an end.
    let megabyte = text(1, 1, 1 << 20, b"bomb", &zeroes(1 << 20));
    let endless: Vec<(u8, Vec<u8>)> = (0..1000).map(|_| (6, megabyte.clone())).collect();
    files.push(("endless-table", with(&endless), Readable(0, "tables are larger than")));
    let nested = "[".repeat(100_000);
    files.push((
        "nested-json",
        with(&[(7, text(0, 0, 100_000, b"", nested.as_bytes()))]),
        Readable(0, "has the wrong contents"),
    ));
    let mut long = with(&[]);
    // The head of a chunk states the most that a chunk may hold; nothing follows.
    let mut promise = chunk(2, 1, b"")[..28].to_vec();
    promise[12..16].copy_from_slice(&(16_u32 << 20).to_le_bytes());
    let sum = crc32fast::hash(&promise);
    long.extend_from_slice(&promise);
    long.extend_from_slice(&sum.to_le_bytes());
    files.push(("long-promise", long, Readable(0, "is cut off")));
    let names: Vec<u8> = (0..200_u32).flat_map(|_| chunk(2, 0, b"")).collect();
    files.push(("many-warnings", [with(&[]), names].concat(), Readable(0, "more of the kind")));
    files
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus")
}

#[test]
#[ignore = "writes the corpus into the source tree"]
fn make_the_corpus() {
    for (name, bytes, _) in files() {
        std::fs::write(folder().join(name), bytes).unwrap();
    }
}

/// One test, since the memory of others would be counted too.
#[test]
fn each_file_has_its_outcome_in_little_memory() {
    let expected = files();
    let mut found: Vec<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    found.sort();
    let mut names: Vec<&str> = expected.iter().map(|file| file.0).collect();
    names.sort_unstable();
    assert_eq!(found, names, "the corpus and its table");
    for (name, _, outcome) in expected {
        let path = folder().join(name);
        let before = NOW.load(Ordering::Relaxed);
        MOST.store(before, Ordering::Relaxed);
        let length = std::fs::metadata(&path).unwrap().len();
        let bytes = std::fs::read(&path).unwrap();
        let result = read(&bytes);
        let by_seeking = tables(&path);
        let most = MOST.load(Ordering::Relaxed) - before;
        // The endless table may cost what tables may cost at most.
        let allowed = if name == "endless-table" { 600 << 20 } else { 40 << 20 };
        assert!(most < allowed + 4 * length as usize, "{name} took {most} bytes");
        match outcome {
            Foreign(content) => {
                let error = result.unwrap_err();
                assert!(matches!(error, TraceError::NotATrace { .. }), "{name}: {error}");
                assert!(error.to_string().contains(content), "{name}: {error}");
                let error = by_seeking.unwrap_err().to_string();
                assert!(error.contains(content) && error.contains(name), "{name}: {error}");
                assert!(matches!(Reader::open(&path), Err(TraceError::NotATrace { .. })), "{name}");
            }
            Newer(version) => {
                let error = result.unwrap_err();
                assert!(
                    matches!(error, TraceError::Newer { version: found, .. } if found == version),
                    "{name}: {error}"
                );
                assert!(matches!(by_seeking, Err(TraceError::Newer { .. })), "{name}");
            }
            Readable(events, words) => {
                let result = result.unwrap_or_else(|error| panic!("{name}: {error}"));
                assert_eq!(result.events.len(), events, "{name}: {:?}", result.warnings);
                let message = result.warnings.iter().any(|warning| warning.contains(words));
                assert!(
                    if words.is_empty() { result.warnings.is_empty() } else { message },
                    "{name}: {:?}",
                    result.warnings
                );
                let by_seeking = by_seeking.unwrap();
                assert_eq!(by_seeking.ending, result.ending, "{name}");
                assert_eq!(by_seeking.sites, result.sites, "{name}");
                assert_eq!(by_seeking.samples.len(), result.samples, "{name}");
            }
        }
    }
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = Reader::open(Path::new("/nonexistent/trace")).unwrap_err().to_string();
    assert_eq!(error, "cannot open /nonexistent/trace: No such file or directory (os error 2)");
    let error = tables(Path::new("/")).unwrap_err().to_string();
    assert!(
        error.starts_with(
            "/ is not a trace of heaptoll: it seems to be a folder; `heaptoll record` makes traces. "
        ),
        "{error}"
    );
}
