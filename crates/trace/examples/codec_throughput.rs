//! How fast traces are written and read, and how large they are, on a made-up stream of events:
//! `codec_throughput [EVENTS]`.
//!
//! Times are those of the thread's CPU clock, the best of five: other processes on the machine count for less.
//! Prints one line for each level of compression, then a JSON object for `make bench`.

use std::time::Duration;

use heaptoll_trace::{Allocation, Batch, Ending, Event, EventKind, Header, Reader, Settings, Writer};

/// CPU time of this thread.
fn now() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: clock_gettime writes to this live local only.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Sizes as C programs request them: mostly a few small ones, some strings of any length, sometimes a buffer.
fn size(random: u64) -> u64 {
    match random % 100 {
        0..=69 => [16, 24, 32, 40, 48, 64, 72, 120][(random >> 8) as usize % 8],
        70..=97 => 1 + (random >> 8) % 256,
        98 => 1024 << ((random >> 8) % 5),
        _ => 4096 + (random >> 8) % 100_000,
    }
}

/// A program: most objects die soon after their allocation, the last allocated first; some live for a while, some for
/// ever. One event in two hundred resizes an object.
fn program(events: usize) -> Vec<Event> {
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random >> 8
    };
    let blank = Event {
        kind: EventKind::Malloc,
        moved: false,
        align_log2: 0,
        thread: 0,
        slot: 0,
        site: 0,
        size: 0,
        usable: 0,
        time_ns: 0,
        latency_ns: 0,
    };
    let usable = |size: u64| (size + 8).next_multiple_of(16).max(32) - 8;
    let mut out: Vec<Event> = Vec::with_capacity(events);
    let mut free: Vec<u32> = Vec::new();
    let mut slots = 0;
    let mut young: Vec<u32> = Vec::new();
    let mut old: Vec<u32> = Vec::new();
    while out.len() < events {
        let time_ns = out.len() as u64 / 5000 * 100_000;
        let choice = next();
        let dead = match choice % 200 {
            0..=89 => young.pop(),
            90..=93 if young.len() > 8 => {
                let at = young.len() - 1 - (choice >> 8) as usize % 8;
                Some(young.remove(at))
            }
            94..=97 if old.len() > 20_000 => {
                let at = (choice >> 8) as usize % old.len();
                Some(old.swap_remove(at))
            }
            98 if !young.is_empty() => {
                let slot = young[young.len() - 1];
                let size = size(next());
                out.push(Event {
                    kind: EventKind::Realloc,
                    moved: size > 200,
                    slot,
                    size,
                    usable: usable(size),
                    time_ns,
                    ..blank
                });
                continue;
            }
            _ => None,
        };
        if let Some(slot) = dead {
            free.push(slot);
            out.push(Event { kind: EventKind::Free, slot, time_ns, ..blank });
            continue;
        }
        let slot = free.pop().unwrap_or_else(|| {
            slots += 1;
            slots - 1
        });
        let size = size(next());
        if young.len() >= 60 {
            old.push(young.remove(0));
        }
        young.push(slot);
        out.push(Event { slot, size, usable: usable(size), time_ns, ..blank });
    }
    out
}

fn write(events: &[Event], level: i32) -> Vec<u8> {
    let settings = Settings { level, ..Settings::default() };
    let out = Vec::with_capacity(events.len() * 4 + 4096);
    let mut writer = Writer::new(out, &Header::default(), &settings).expect("memory takes a trace");
    for event in events {
        writer.stamp(event.time_ns);
        let call = Allocation {
            kind: event.kind,
            thread: event.thread,
            size: event.size,
            usable: event.usable,
            align_log2: 0,
            site: 0,
            latency_ns: 0,
        };
        let written = match event.kind {
            EventKind::Realloc => writer.resize(event.slot, &call, event.moved),
            EventKind::Free => writer.free(event.slot, event.kind, event.thread, 0),
            _ => writer.allocate(&call).map(|slot| debug_assert_eq!(slot, event.slot)),
        };
        written.expect("the made-up program is legal");
    }
    writer.finish(&Ending::default()).expect("memory takes a trace")
}

fn read(bytes: &[u8]) -> (u64, u64) {
    let mut reader = Reader::new(bytes).expect("it was just written");
    let mut batch = Batch::default();
    let (mut events, mut sum) = (0, 0);
    while reader.read(&mut batch).expect("memory does not fail") {
        events += batch.events.len() as u64;
        sum += batch.events.iter().map(|event| event.size).sum::<u64>();
    }
    assert!(reader.warnings().is_empty(), "{:?}", reader.warnings());
    (events, sum)
}

fn best<T>(mut run: impl FnMut() -> T) -> (f64, T) {
    let mut best = f64::INFINITY;
    loop {
        let mut result = None;
        for _ in 0..5 {
            let start = now();
            result = Some(run());
            best = best.min((now() - start).as_secs_f64());
        }
        if let Some(result) = result {
            return (best, result);
        }
    }
}

fn main() {
    let events = std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(4_000_000);
    let events = program(events);
    let count = events.len() as f64;
    let sum: u64 = events.iter().map(|event| event.size).sum();
    let mut rows = Vec::new();
    for level in [0, 1] {
        let (writing, bytes) = best(|| write(&events, level));
        let (reading, found) = best(|| read(&bytes));
        assert_eq!(found, (events.len() as u64, sum));
        let row = (bytes.len() as f64 / count, count / writing / 1e6, count / reading / 1e6);
        println!(
            "zstd level {level}: {:.2} bytes an event, {:.0} M events/s written, {:.0} M events/s read",
            row.0, row.1, row.2
        );
        rows.push(serde_json::json!({
            "level": level,
            "bytes_per_event": row.0,
            "written_per_s": row.1 * 1e6,
            "read_per_s": row.2 * 1e6,
        }));
    }
    println!("{}", serde_json::json!({ "events": events.len(), "levels": rows }));
}
