//! A made-up trace, its chunks, and a consumer that checks everything.
#![allow(dead_code)]

pub mod bomb;
pub mod graph;

use std::collections::HashSet;

use heaptoll_trace::{
    Allocation, Batch, Ending, Event, EventKind, Frame, Gap, Header, Reader, Sample, Settings, Site, Sites,
    TraceError, Writer,
};

/// Numbers that look random and are the same every time.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }
}

pub fn call(kind: EventKind, size: u64) -> Allocation {
    Allocation {
        kind,
        thread: 0,
        size,
        usable: (size + 8).next_multiple_of(16),
        align_log2: 0,
        site: 0,
        latency_ns: 0,
    }
}

pub fn sites() -> Sites {
    let frame = |n: u64| Frame {
        object: "/usr/bin/program".into(),
        offset: 4096 + n,
        function: format!("function_{n}"),
        line: String::new(),
    };
    let site = |n: u32| Site { frames: vec![n, 1, 0] };
    Sites {
        sites: (0..40).map(|n| if n == 0 { Site::default() } else { site(n % 30) }).collect(),
        frames: (0..30).map(frame).collect(),
    }
}

/// A trace of `events` events in chunks of `per_chunk`, with every table.
pub fn trace(seed: u64, events: usize, per_chunk: u32, full: bool) -> Vec<u8> {
    let header = Header {
        command: vec!["program".into(), "input".into()],
        sites: full,
        latency: full,
        event_time: full,
        ..Header::default()
    };
    let settings = Settings { level: i32::from(full), events_per_chunk: per_chunk };
    let mut writer = Writer::new(Vec::new(), &header, &settings).unwrap();
    let mut numbers = Numbers(seed | 1);
    let mut live: Vec<u32> = Vec::new();
    for at in 0..events {
        writer.stamp(at as u64 * 50);
        let thread = (numbers.below(20) / 18) as u32;
        let size = if numbers.below(50) == 0 { numbers.below(1 << 20) } else { 16 + numbers.below(10) * 8 };
        let site = numbers.below(40) as u32;
        let latency_ns = numbers.below(300) as u32;
        let call = Allocation { thread, site, latency_ns, ..call(EventKind::Malloc, size) };
        let grows = live.len() < 40 || at % 7 == 0;
        match numbers.below(20) {
            0 if !live.is_empty() => {
                let slot = live[numbers.below(live.len() as u64) as usize];
                writer.resize(slot, &Allocation { kind: EventKind::Realloc, ..call }, at % 2 == 0).unwrap();
            }
            1 if full => writer.note(EventKind::Failed, &Allocation { size: 1 << 60, ..call }).unwrap(),
            2 if full => writer.note(EventKind::Foreign, &call).unwrap(),
            3..=9 if !grows => {
                let slot = live.swap_remove(numbers.below(live.len() as u64) as usize);
                writer.free(slot, EventKind::Free, thread, latency_ns).unwrap();
            }
            10..=12 if !live.is_empty() => {
                let slot = live.pop().unwrap();
                writer.free(slot, EventKind::Delete, thread, latency_ns).unwrap();
            }
            13 => live.push(
                writer.allocate(&Allocation { kind: EventKind::Aligned, align_log2: 6, ..call }).unwrap(),
            ),
            _ => live.push(writer.allocate(&call).unwrap()),
        }
        if at % 97 == 0 {
            writer.sample(&Sample {
                time_ns: at as u64 * 50,
                rss_kib: 1000 + at as u64,
                ..Sample::default()
            });
        }
    }
    if full {
        writer.gap(&Gap { why: "a thread's ring was lost".into(), events: None });
        writer.sites(&sites());
        writer.extra("ledger", &vec![1, 2, 3]);
    }
    writer.finish(&Ending { how: "exited with status 0".into(), ..Ending::default() }).unwrap()
}

/// Positions of the chunks of an undamaged trace: where each begins and ends, its kind.
pub fn chunks(bytes: &[u8]) -> Vec<(usize, usize, u8)> {
    let mut at = 16;
    let mut chunks = Vec::new();
    while at < bytes.len() {
        let length = u32::from_le_bytes(bytes[at + 12..at + 16].try_into().unwrap()) as usize;
        chunks.push((at, at + 32 + length, bytes[at + 8]));
        at += 32 + length;
    }
    chunks
}

/// A chunk with right checksums.
pub fn chunk(kind: u8, sequence: u64, payload: &[u8]) -> Vec<u8> {
    let mut head = b"\xF5hChunk\xA7".to_vec();
    head.extend_from_slice(&[kind, 0, 0, 0]);
    head.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    head.extend_from_slice(&sequence.to_le_bytes());
    head.extend_from_slice(&crc32fast::hash(payload).to_le_bytes());
    let sum = crc32fast::hash(&head);
    head.extend_from_slice(&sum.to_le_bytes());
    head.extend_from_slice(payload);
    head
}

/// The first bytes of a file of a version.
pub fn file_head(version: u32) -> Vec<u8> {
    let mut head = b"\x89HTRACE\n".to_vec();
    head.extend_from_slice(&version.to_le_bytes());
    let sum = crc32fast::hash(&head);
    head.extend_from_slice(&sum.to_le_bytes());
    head
}

/// The result of a careful consumer.
#[derive(Debug, Default)]
pub struct Read {
    pub events: Vec<Event>,
    pub warnings: Vec<String>,
    pub ending: Option<Ending>,
    pub gaps: Vec<Gap>,
    pub samples: usize,
    pub sites: Option<Sites>,
}

/// Reads all of it, and panics when what the reader guarantees for any bytes does not hold.
pub fn read(bytes: &[u8]) -> Result<Read, TraceError> {
    let mut reader = Reader::new(bytes)?;
    let mut batch = Batch::default();
    let mut live = HashSet::new();
    let mut events = Vec::new();
    let mut seen = 0;
    let mut sizes = 0_u64;
    let mut time_ns = 0;
    while reader.read(&mut batch)? {
        assert!(!batch.events.is_empty());
        for event in &batch.events {
            seen += 1;
            if event.kind.allocates() {
                assert!(live.insert(event.slot), "allocated twice: {event:?}");
            } else if event.kind.frees() {
                assert!(live.remove(&event.slot), "freed, not live: {event:?}");
            } else if event.kind == EventKind::Realloc {
                assert!(live.contains(&event.slot), "resized, not live: {event:?}");
            }
            if event.kind != EventKind::Failed {
                sizes = sizes.checked_add(event.size).expect("sums do not overflow");
                assert!(event.size < 1 << 57);
            }
            assert!(u64::from(event.slot) < batch.objects.max(1));
            assert!(event.time_ns >= time_ns && event.time_ns <= 1 << 62);
            time_ns = event.time_ns;
            assert!(u64::from(event.thread) < seen + (1 << 16));
            assert!(u64::from(event.site) < seen + (1 << 22));
            assert!(event.align_log2 < 64);
        }
        assert!(batch.objects <= seen, "tables by slot would be larger than the events seen");
        events.extend_from_slice(&batch.events);
    }
    assert!(!reader.read(&mut batch)?, "the end stays the end");
    let tables = reader.into_tables();
    let _ = tables.extra::<Vec<u32>>("ledger");
    if let Some(sites) = &tables.sites {
        let frames = sites.frames.len() as u32;
        assert!(sites.sites.iter().flat_map(|site| &site.frames).all(|&frame| frame < frames));
    }
    assert!(tables.warnings.len() <= 101 && tables.gaps.len() <= 100);
    Ok(Read {
        events,
        warnings: tables.warnings,
        ending: tables.ending,
        gaps: tables.gaps,
        samples: tables.samples.len(),
        sites: tables.sites,
    })
}
