//! Files: a full disk, a limit of sizes, one that exists; and outputs that refuse.

use std::ffi::CString;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::common::{call, read, trace};
use heaptoll_trace::{
    Allocation, Batch, Ending, EventKind, Exit, Frame, Gap, Header, Output, Reader, Sample, Settings, Site,
    Sites, SitesSoFar, Stream, TraceError, TraceFile, Writer, graph, tables,
};

/// An output that takes a number of bytes, then refuses for a while, then takes again.
struct Narrow {
    bytes: Vec<u8>,
    refuses: std::ops::Range<usize>,
    calls: usize,
}

impl Output for Narrow {
    fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.calls += 1;
        if self.refuses.contains(&self.calls) {
            return Err(io::Error::from_raw_os_error(libc::ENOSPC));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn conclude(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn name(&self) -> String {
        "narrow".into()
    }
}

#[test]
fn a_trace_with_pointers_shows_lost_events_after_the_disk_has_space_again() {
    let narrow = Narrow { bytes: Vec::new(), refuses: 4..7, calls: 0 };
    let settings = Settings { level: 1, events_per_chunk: 100 };
    let mut writer = graph::Writer::new(narrow, &Header::default(), &settings).unwrap();
    for size in 0..1000 {
        let kind = graph::AllocationKind::Plain;
        writer.allocate(&graph::Allocation { size, site: 0, thread: 0, kind, align_log2: 0 });
    }
    writer.flush().unwrap();
    assert!(writer.loss().is_some_and(TraceError::is_full));
    let lost = writer.events() - writer.written();
    assert!((1..1000).contains(&lost), "{lost}");
    let ending = Ending { how: "killed by signal 9".into(), ..Ending::default() };
    let bytes = writer.finish(&ending).unwrap().bytes;
    let mut reader = graph::Reader::with_name(&bytes[..], "the test").unwrap();
    while reader.read(&mut graph::Batch::default()).unwrap() {}
    let missing = reader.tables().incomplete();
    let marked = format!("{lost} events are missing: disk full");
    assert!(missing.contains(&marked), "{missing:?}");
    assert!(missing.iter().any(|line| line.contains("was killed by signal 9")), "{missing:?}");
}

fn fill(writer: &mut Writer<impl Output>, events: u64) {
    let mut slots = Vec::new();
    for at in 0..events {
        if at % 3 == 2 {
            let slot = slots.remove((at / 7) as usize % slots.len());
            writer.free(slot, EventKind::Free, 0, 0).unwrap();
        } else {
            slots.push(writer.allocate(&call(EventKind::Malloc, 16 + at * at % 3000)).unwrap());
        }
    }
}

#[test]
fn an_output_that_takes_chunks_again_gets_a_gap_and_the_rest() {
    let narrow = Narrow { bytes: Vec::new(), refuses: 4..7, calls: 0 };
    let settings = Settings { level: 1, events_per_chunk: 100 };
    let mut writer = Writer::new(narrow, &Header::default(), &settings).unwrap();
    fill(&mut writer, 250);
    assert!(writer.trouble().is_none());
    fill(&mut writer, 150);
    assert!(writer.trouble().is_some_and(TraceError::is_full));
    assert!(writer.lost() > 0);
    fill(&mut writer, 600);
    assert!(writer.trouble().is_none());
    assert_eq!(writer.events(), 1000);
    assert!(writer.loss().is_some_and(TraceError::is_full), "what was lost is not forgotten");
    let _ = writer.flush();
    let kept = writer.written();
    let bytes = writer.finish(&Ending::default()).unwrap().bytes;
    let found = read(&bytes).unwrap();
    let message = found.events.iter().filter(|event| event.kind != EventKind::Lost).count() as u64;
    assert!((600..1000).contains(&message), "{message}");
    assert_eq!(kept, message);
    assert_eq!(found.ending.unwrap().events, message);
    let marked = Gap { why: "disk full".into(), events: Some(1000 - message) };
    assert_eq!(found.gaps, [marked], "what the recorder marked is reported once");
    assert!(found.warnings.is_empty(), "nothing is wrong with the file: {:?}", found.warnings);
}

#[test]
fn last_chunks_are_written_when_nothing_else_can_be() {
    let narrow = Narrow { bytes: Vec::new(), refuses: 3..usize::MAX, calls: 0 };
    let settings = Settings { level: 1, events_per_chunk: 100 };
    let mut writer = Writer::new(narrow, &Header::default(), &settings).unwrap();
    fill(&mut writer, 450);
    writer.sample(&Sample::default());
    let error = writer.flush().unwrap_err();
    assert_eq!(error.to_string(), "cannot write narrow: No space left on device (os error 28)");
    assert!(error.is_full());
    fill(&mut writer, 50);
    let ending = Ending { how: "exited with status 3".into(), ..Ending::default() };
    let bytes = writer.finish(&ending).unwrap().bytes;
    let found = read(&bytes).unwrap();
    assert_eq!(found.events.len(), 100);
    assert_eq!(found.gaps, [Gap { why: "disk full".into(), events: Some(400) }]);
    assert!(found.warnings.is_empty());
    let ending = found.ending.unwrap();
    assert_eq!((ending.how.as_str(), ending.events), ("exited with status 3", 100));
}

/// A small file system of its own; none without the right to mount.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn new(bytes: usize) -> Option<SmallDisk> {
        let folder = tempfile::tempdir().unwrap();
        let place = CString::new(folder.path().to_str().unwrap()).unwrap();
        let options = CString::new(format!("size={bytes}")).unwrap();
        // SAFETY: mount reads its arguments, C strings that outlive the call.
        let mounted = unsafe {
            libc::mount(c"heaptoll".as_ptr(), place.as_ptr(), c"tmpfs".as_ptr(), 0, options.as_ptr().cast())
                == 0
        };
        mounted.then_some(SmallDisk(folder))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let place = CString::new(self.0.path().to_str().unwrap()).unwrap();
        // SAFETY: umount2 reads a C string that outlives the call.
        unsafe { libc::umount2(place.as_ptr(), libc::MNT_DETACH) };
    }
}

#[test]
fn a_full_disk_ends_the_file_with_a_gap_and_an_ending() {
    let Some(disk) = SmallDisk::new(1 << 20) else {
        eprintln!("not checked: no right to mount a small file system");
        return;
    };
    let path = disk.0.path().join("trace");
    let file = TraceFile::create(&path, false).unwrap();
    let settings = Settings { level: 0, events_per_chunk: 10_000 };
    let mut writer = Writer::new(file, &Header::default(), &settings).unwrap();
    fill(&mut writer, 900_000);
    assert!(writer.flush().unwrap_err().is_full());
    // The rest of the disk is taken, to the last page, but not what is reserved.
    let mut hog = std::fs::File::create(disk.0.path().join("hog")).unwrap();
    let taken = io::copy(&mut io::repeat(7), &mut hog).unwrap_err();
    assert_eq!(taken.raw_os_error(), Some(libc::ENOSPC));
    fill(&mut writer, 90_000);
    let threads: Vec<i32> = (0..100).collect();
    writer.finish(&Ending { how: "exited with status 0".into(), threads, ..Ending::default() }).unwrap();

    let found = tables(&path).unwrap();
    let ending = found.ending.unwrap();
    assert_eq!(ending.how, "exited with status 0");
    assert_eq!(ending.threads.len(), 100);
    assert_eq!(found.gaps.len(), 1);
    assert_eq!(found.gaps[0].why, "disk full");
    assert_eq!(found.gaps[0].events, Some(990_000 - ending.events));
    assert!(ending.events >= 100_000, "{} events in a megabyte", ending.events);
    let mut reader = Reader::open(&path).unwrap();
    let mut batch = Batch::default();
    let mut events = 0;
    while reader.read(&mut batch).unwrap() {
        events += batch.events.len() as u64;
    }
    assert_eq!(events, ending.events);
    assert_eq!(reader.tables().warnings, Vec::<String>::new());
}

#[test]
fn a_file_keeps_no_more_space_than_it_needs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    let file = TraceFile::create(&path, false).unwrap();
    let writer = Writer::new(file, &Header::default(), &Settings::default()).unwrap();
    writer.finish(&Ending::default()).unwrap();
    let facts = std::fs::metadata(&path).unwrap();
    assert!(facts.blocks() * 512 < 16 << 10, "{} bytes on disk", facts.blocks() * 512);
    assert_eq!(facts.mode() & 0o777, 0o600);
}

#[test]
fn a_file_that_exists_is_kept_unless_its_replacement_is_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    std::fs::write(&path, "precious").unwrap();
    let error = TraceFile::create(&path, false).unwrap_err();
    assert!(matches!(error, TraceError::Exists { .. }));
    assert!(error.to_string().contains("--force"));
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");
    let file = TraceFile::create(&path, true).unwrap();
    Writer::new(file, &Header::default(), &Settings::default()).unwrap().finish(&Ending::default()).unwrap();
    assert!(tables(&path).unwrap().warnings.is_empty());
    let error = TraceFile::create(Path::new("/nonexistent/trace"), false).unwrap_err().to_string();
    assert_eq!(error, "cannot make /nonexistent/trace: No such file or directory (os error 2)");
}

#[test]
fn a_pipe_takes_a_trace_too() {
    let writer = Writer::new(Stream(Vec::new()), &Header::default(), &Settings::default()).unwrap();
    let bytes = writer.finish(&Ending::default()).unwrap().0;
    assert!(read(&bytes).unwrap().warnings.is_empty());
}

#[test]
fn tables_without_events_are_those_of_the_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    let whole = trace(11, 2000, 100, true);
    let mut broken = whole.clone();
    let middle = broken.len() / 2;
    broken[middle] ^= 1;
    for bytes in [whole, broken] {
        std::fs::write(&path, &bytes).unwrap();
        let found = tables(&path).unwrap();
        let read = read(&bytes).unwrap();
        assert_eq!(found.header.command, ["program", "input"]);
        assert_eq!(found.ending, read.ending);
        assert_eq!(found.sites, read.sites);
        assert_eq!(found.sites.as_ref().unwrap(), &crate::common::sites());
        assert_eq!(found.samples.len(), read.samples);
        assert_eq!(found.extra::<Vec<u32>>("ledger").unwrap().unwrap(), [1, 2, 3]);
        assert!(found.extra::<Vec<u32>>("nothing").is_none());
        let error = found.extra::<String>("ledger").unwrap().unwrap_err().to_string();
        assert!(error.contains("ledger") && error.contains("trace"), "{error}");
        assert_eq!(found.extras().collect::<Vec<_>>(), ["ledger"]);
    }
}

#[test]
fn a_large_table_of_sites_comes_back() {
    use heaptoll_trace::{Frame, Site, Sites};
    let frames: Vec<Frame> = (0..9000_u64)
        .map(|n| Frame {
            function: format!("{n}{}", "x".repeat((n % 700) as usize)),
            offset: n,
            ..Frame::default()
        })
        .collect();
    let stacks: Vec<Site> =
        (0..5000_u32).map(|n| Site { frames: (0..n % 64).map(|at| (n + at) % 9000).collect() }).collect();
    let sites = Sites { sites: stacks, frames };
    let mut writer = Writer::new(Vec::new(), &Header::default(), &Settings::default()).unwrap();
    writer.sites(&sites);
    let bytes = writer.finish(&Ending::default()).unwrap();
    let found = read(&bytes).unwrap();
    assert_eq!(found.warnings, [] as [String; 0]);
    assert_eq!(found.sites.unwrap(), sites);
}

#[test]
fn a_caller_that_lost_count_gets_an_error() {
    let mut writer = Writer::new(Vec::new(), &Header::default(), &Settings::default()).unwrap();
    let slot = writer.allocate(&call(EventKind::Malloc, 8)).unwrap();
    assert!(matches!(writer.free(slot + 1, EventKind::Free, 0, 0), Err(TraceError::NotLive { slot: 1 })));
    assert!(matches!(writer.free(slot, EventKind::Realloc, 0, 0), Err(TraceError::WrongKind { .. })));
    assert!(matches!(
        writer.resize(slot, &call(EventKind::Malloc, 8), false),
        Err(TraceError::WrongKind { .. })
    ));
    assert!(matches!(writer.allocate(&call(EventKind::Realloc, 8)), Err(TraceError::WrongKind { .. })));
    assert!(matches!(
        writer.note(EventKind::Malloc, &call(EventKind::Malloc, 8)),
        Err(TraceError::WrongKind { .. })
    ));
    writer.free(slot, EventKind::Free, 0, 0).unwrap();
    assert!(matches!(writer.free(slot, EventKind::Free, 0, 0), Err(TraceError::NotLive { slot: 0 })));
    assert!(matches!(
        writer.resize(slot, &call(EventKind::Realloc, 8), false),
        Err(TraceError::NotLive { slot: 0 })
    ));
    let bytes = writer.finish(&Ending::default()).unwrap();
    assert_eq!(read(&bytes).unwrap().events.len(), 2);
}

#[test]
fn a_flushed_trace_without_an_ending_is_read_to_its_end() {
    struct Shared(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);
    impl Output for Shared {
        fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(())
        }
        fn conclude(&mut self, bytes: &[u8]) -> io::Result<()> {
            self.add(bytes)
        }
        fn name(&self) -> String {
            "shared".into()
        }
    }
    let bytes = std::sync::Arc::default();
    let mut writer =
        Writer::new(Shared(std::sync::Arc::clone(&bytes)), &Header::default(), &Settings::default()).unwrap();
    fill(&mut writer, 77);
    writer.flush().unwrap();
    fill(&mut writer, 50);
    drop(writer);
    let found = read(&bytes.lock().unwrap()).unwrap();
    assert_eq!(found.events.len(), 77);
    assert_eq!(found.warnings.len(), 1);
}

/// Frames that differ by their offsets, with names or without.
fn frames(offsets: std::ops::Range<u64>, is_named: bool) -> Vec<Frame> {
    let function = |offset| if is_named { format!("f{offset}") } else { String::new() };
    offsets
        .map(|offset| Frame {
            object: "/bin/x".into(),
            offset,
            function: function(offset),
            ..Frame::default()
        })
        .collect()
}

#[test]
fn a_trace_that_is_cut_anywhere_has_the_call_stacks_that_were_written_before() {
    let site = |frames: &[u32]| Site { frames: frames.to_vec() };
    let header = Header { sites: true, ..Header::default() };
    let settings = Settings { level: 1, events_per_chunk: 4 };
    let mut writer = Writer::new(Vec::new(), &header, &settings).expect("begins");
    let more = |first_site, first_frame, sites| SitesSoFar { first_site, first_frame, sites };
    let first = Sites { sites: vec![site(&[]), site(&[0, 1])], frames: frames(10..12, false) };
    writer.sites_so_far(&more(0, 0, first));
    // Another thread's ring: a site before the last one, and a frame that is known.
    let second = Sites { sites: vec![site(&[1, 2])], frames: frames(12..13, false) };
    writer.sites_so_far(&more(2, 2, second));
    for site in [1, 2, 1, 2, 1] {
        let call = Allocation {
            kind: EventKind::Malloc,
            thread: 0,
            size: 8,
            usable: 8,
            align_log2: 0,
            site,
            latency_ns: 0,
        };
        writer.allocate(&call).expect("allocates");
    }
    // With names the numbers of frames differ: 11 was inlined into 12, and comes first.
    let mut named = frames(11..13, true);
    named.extend(frames(10..11, true));
    let all = Sites { sites: vec![site(&[]), site(&[2, 0]), site(&[0, 1])], frames: named };
    writer.sites(&all);
    let bytes = writer.finish(&Ending::default()).expect("finishes");
    let mut has_stacks = 0;
    for length in 0..=bytes.len() {
        let Ok(mut reader) = Reader::new(&bytes[..length]) else { continue };
        let mut batch = Batch::default();
        while reader.read(&mut batch).expect("reads") {}
        let Some(sites) = &reader.tables().sites else { continue };
        let offsets = |site: &Site| -> Vec<u64> {
            site.frames.iter().map(|frame| sites.frames[*frame as usize].offset).collect()
        };
        let right = [vec![], vec![10, 11], vec![11, 12]];
        for (number, site) in sites.sites.iter().enumerate() {
            assert_eq!(offsets(site), right[number], "site {number} of {length} bytes");
        }
        has_stacks += 1;
    }
    assert!(has_stacks > 100, "{has_stacks}");
    let mut reader = Reader::new(&bytes[..]).expect("a trace");
    while reader.read(&mut Batch::default()).expect("reads") {}
    let whole = reader.tables().sites.as_ref().expect("call stacks");
    assert_eq!(whole.frames.len(), 3, "frames without names are left out");
    assert!(whole.frames.iter().all(|frame| !frame.function.is_empty()));
}

#[test]
fn batches_after_exit_are_marked_and_only_the_first_exit_counts() {
    let mut writer = Writer::new(Vec::new(), &Header::default(), &Settings::default()).unwrap();
    let slots = [(); 3].map(|()| writer.allocate(&call(EventKind::Malloc, 24)).unwrap());
    writer.stamp(70);
    writer.exit_begins();
    for slot in slots {
        writer.free(slot, EventKind::Free, 0, 0).unwrap();
        writer.exit_begins();
    }
    let bytes = writer.finish(&Ending::default()).unwrap();
    let (mut reader, mut batch, mut found) = (Reader::new(&bytes[..]).unwrap(), Batch::default(), Vec::new());
    while reader.read(&mut batch).unwrap() {
        found.extend(batch.events.iter().map(|event| (event.kind.frees(), batch.after_exit)));
    }
    assert_eq!(found, [[(false, false); 3], [(true, true); 3]].concat());
    assert_eq!(reader.tables().exit, Some(Exit { event: 3, time_ns: 70 }));
}
