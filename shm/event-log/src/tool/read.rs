//! Decodes the bytes of the file into events in ns.

use std::string::String;
use std::vec::Vec;

use heaptoll_assertions::assert_expensive;
use heaptoll_process::tsc::Pair;

use super::error::EventsError;
use super::timeline::Timeline;
use crate::layout::{
    CHUNK_BYTES, CHUNK_HEADER_BYTES, CHUNKS_AT, COUNTER, CollectionRecord, Contents, HEADER_BYTES, IN_USE,
    PROCESS_BYTES, PROCESSES, RequestRecord,
};

/// A request of the program, from `heaptoll_event_begin` to `heaptoll_event_end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// `CLOCK_MONOTONIC`, ns.
    pub start_ns: u64,
    /// `CLOCK_MONOTONIC`, ns.
    pub end_ns: u64,
    /// What sort of request, as the program numbers them.
    pub kind: u32,
    /// The kernel's number of the thread.
    pub thread: u32,
    /// Processor time of the thread in it, ns; `None` where it was not requested.
    pub cpu_ns: Option<u64>,
}

/// A collection, as the manager (or a layer) announced it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Collection {
    /// When its start was announced. `CLOCK_MONOTONIC`, ns.
    pub start_ns: u64,
    /// When its end was announced. `CLOCK_MONOTONIC`, ns.
    pub end_ns: u64,
    /// Its number as the collector counts, from 1.
    pub number: u64,
    /// Bytes that it found live.
    pub live_bytes: u64,
    /// Which of the process's collectors, from 0: almost always the only one.
    pub collector: u32,
    /// The reason: 1 allocation, 2 explicit request, 3 memory pressure, 0 not stated.
    pub reason: u32,
}

/// The events of one image of a program in one process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessEvents {
    /// Process number.
    pub pid: u32,
    /// Its parent's.
    pub parent_pid: u32,
    /// The program, or the end of its path.
    pub exe: String,
    /// When the layer started in it, or for a child of fork, when it had its first event. `CLOCK_MONOTONIC`, ns.
    pub started_ns: u64,
    /// Objects (managers, layers) that announce their collections to this process's layer.
    pub observed: u32,
    /// Objects that announce them to another listener, so that their collections are missing here.
    pub unobserved: u32,
    /// In order of their start.
    pub requests: Vec<Request>,
    /// In order of their start.
    pub collections: Vec<Collection>,
}

/// Counts of what was not recorded, because the file was full.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lost {
    pub requests: u64,
    pub collections: u64,
    /// Processes without an entry: nothing is known about them.
    pub processes: u32,
}

impl Lost {
    /// Whether nothing was lost.
    pub fn is_none(&self) -> bool {
        *self == Lost::default()
    }
}

/// The reason for which reading fails.
pub enum ReadError {
    File(EventsError),
    Damaged(&'static str),
}

impl From<EventsError> for ReadError {
    fn from(error: EventsError) -> ReadError {
        ReadError::File(error)
    }
}

pub fn word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_ne_bytes(word)
}

pub fn half(bytes: &[u8], at: usize) -> u32 {
    let mut half = [0; 4];
    half.copy_from_slice(&bytes[at..at + 4]);
    u32::from_ne_bytes(half)
}

pub fn lost(header: &[u8]) -> Lost {
    Lost { processes: half(header, 44), requests: word(header, 48), collections: word(header, 56) }
}

/// A process while it is read: events in ticks.
struct Raw {
    /// Number of the entry.
    entry: u32,
    counter: bool,
    claimed: Pair,
    events: ProcessEvents,
}

/// Decodes all processes. `beginning` is the file up to its chunks, of which `claimed` are read by `bytes(at, length)`;
/// `now` is the current instant by the counter and the clock.
pub fn processes(
    beginning: &[u8],
    claimed: u32,
    now: Option<Pair>,
    mut bytes: impl FnMut(usize, usize) -> Result<Vec<u8>, EventsError>,
) -> Result<Vec<ProcessEvents>, ReadError> {
    let mut processes: Vec<Raw> = Vec::new();
    let mut pairs: Vec<Pair> = now.into_iter().collect();
    if half(beginning, 40) & COUNTER != 0 {
        pairs.push(Pair { ticks: word(beginning, 24), ns: word(beginning, 32) });
    }
    let entries = half(beginning, 16).min(PROCESSES as u32);
    let table = &beginning[HEADER_BYTES..CHUNKS_AT];
    for (number, entry) in (0..entries).zip(table.chunks_exact(PROCESS_BYTES)) {
        if let Some(process) = process(number, entry) {
            if process.counter {
                pairs.push(process.claimed);
            }
            processes.push(process);
        }
    }
    for number in 0..claimed {
        let chunk = bytes(CHUNKS_AT + number as usize * CHUNK_BYTES, CHUNK_BYTES)?;
        // Claimed by a thread that was killed before it had filled in the header.
        let contents = half(&chunk, 0);
        if contents == 0 {
            continue;
        }
        let owner = half(&chunk, 4);
        let Some(process) = processes.iter_mut().find(|process| process.entry == owner) else {
            return Err(ReadError::Damaged("a chunk belongs to no process"));
        };
        if process.counter {
            pairs.push(Pair { ticks: word(&chunk, 8), ns: word(&chunk, 16) });
        }
        let records = &chunk[CHUNK_HEADER_BYTES..];
        if contents == Contents::Requests as u32 {
            process.events.requests.extend(requests(records));
        } else if contents == Contents::Collections as u32 {
            process.events.collections.extend(collections(records));
        } else {
            return Err(ReadError::Damaged("a chunk has contents of an unknown sort"));
        }
    }
    // All processes of a machine read the same counter.
    let timeline = Timeline::new(pairs);
    Ok(processes.into_iter().map(|process| in_ns(process, &timeline)).collect())
}

fn process(number: u32, entry: &[u8]) -> Option<Raw> {
    // Not claimed, or claimed by a process that was killed before it had filled it in.
    if half(entry, 0) != IN_USE {
        return None;
    }
    let exe = &entry[40..];
    let end = exe.iter().position(|&byte| byte == 0).unwrap_or(exe.len());
    let claimed = Pair { ticks: word(entry, 24), ns: word(entry, 32) };
    let events = ProcessEvents {
        pid: half(entry, 4),
        parent_pid: half(entry, 8),
        exe: String::from_utf8_lossy(&exe[..end]).into_owned(),
        started_ns: claimed.ns,
        observed: half(entry, 16),
        unobserved: half(entry, 20),
        requests: Vec::new(),
        collections: Vec::new(),
    };
    Some(Raw { entry: number, counter: half(entry, 12) & COUNTER != 0, claimed, events })
}

/// Requests up to the first without an end, in ticks.
fn requests(records: &[u8]) -> impl Iterator<Item = Request> {
    let records = records.chunks_exact(size_of::<RequestRecord>()).take_while(|record| word(record, 16) != 0);
    records.map(|record| Request {
        start_ns: word(record, 0),
        end_ns: word(record, 16),
        kind: half(record, 8),
        thread: half(record, 12),
        cpu_ns: word(record, 24).checked_sub(1),
    })
}

/// Collections up to the first without an end, in ticks.
fn collections(records: &[u8]) -> impl Iterator<Item = Collection> {
    let records =
        records.chunks_exact(size_of::<CollectionRecord>()).take_while(|record| word(record, 32) != 0);
    records.map(|record| Collection {
        start_ns: word(record, 0),
        end_ns: word(record, 32),
        number: word(record, 8),
        live_bytes: word(record, 16),
        collector: half(record, 24),
        reason: half(record, 28),
    })
}

/// Converts ticks to ns and sorts. Since two processors' counters may differ by a few ticks, no event is made to end
/// before it starts.
fn in_ns(process: Raw, timeline: &Timeline) -> ProcessEvents {
    let ns = |ticks: u64| if process.counter { timeline.ns(ticks) } else { ticks };
    let mut events = process.events;
    for request in &mut events.requests {
        request.start_ns = ns(request.start_ns);
        request.end_ns = ns(request.end_ns).max(request.start_ns);
    }
    for collection in &mut events.collections {
        collection.start_ns = ns(collection.start_ns);
        collection.end_ns = ns(collection.end_ns).max(collection.start_ns);
    }
    events.requests.sort_by_key(|request| (request.start_ns, request.end_ns));
    events.collections.sort_by_key(|collection| (collection.start_ns, collection.end_ns));
    assert_expensive!(
        events.requests.iter().all(|request| request.start_ns <= request.end_ns),
        "no request ends before it starts"
    );
    assert_expensive!(
        events.requests.is_sorted_by_key(|request| request.start_ns),
        "requests are in order of their start"
    );
    assert_expensive!(
        events.collections.iter().all(|collection| collection.start_ns <= collection.end_ns),
        "no collection ends before it starts"
    );
    assert_expensive!(
        events.collections.is_sorted_by_key(|collection| collection.start_ns),
        "collections are in order of their start"
    );
    events
}
