//! A whole log: the collector, its heap, its pauses.

use crate::java::gc_log::error::GcLogError;
use crate::java::gc_log::line::Line;

/// A collector of HotSpot, as its log names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Collector {
    /// One thread, generations.
    Serial,
    /// Several threads, generations.
    Parallel,
    /// Regions, generations; marks concurrently.
    G1,
    /// Copies concurrently, by barriers of loads.
    Shenandoah,
    /// Copies concurrently, by coloured pointers.
    Z,
}

impl Collector {
    /// All of them, in the order in which they came to HotSpot.
    pub const ALL: [Collector; 5] =
        [Collector::Serial, Collector::Parallel, Collector::G1, Collector::Shenandoah, Collector::Z];

    /// What the log calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Collector::Serial => "Serial",
            Collector::Parallel => "Parallel",
            Collector::G1 => "G1",
            Collector::Shenandoah => "Shenandoah",
            Collector::Z => "The Z Garbage Collector",
        }
    }
}

/// A time for which the program was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pause {
    /// `CLOCK_MONOTONIC`, ns.
    pub start_ns: u64,
    /// `CLOCK_MONOTONIC`, ns.
    pub end_ns: u64,
    /// The number of its collection, from 0 as the log counts.
    pub collection: u64,
}

/// How full the heap was before and after a collection or a part of one. Most logs have whole MiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeapChange {
    /// When it was written. `CLOCK_MONOTONIC`, ns.
    pub time_ns: u64,
    /// Bytes before.
    pub before: u64,
    /// Bytes after.
    pub after: u64,
}

/// What a log holds. A log that ends within a line, as of a process that was killed, is read up to there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GcLog {
    /// Which collector ran; `None` where the virtual machine ended before it chose.
    pub collector: Option<Collector>,
    /// What the heap may grow to, bytes.
    pub heap_limit_bytes: Option<u64>,
    /// In order of their ends, those within others left out.
    pub pauses: Vec<Pause>,
    /// In order of the log.
    pub changes: Vec<HeapChange>,
    /// Collections that have begun, concurrent ones too.
    pub collections: u64,
    /// The most that the heap had as capacity, at the beginning or after a collection, bytes.
    pub capacity_bytes: u64,
}

impl GcLog {
    /// Reads a log.
    ///
    /// # Errors
    /// [`GcLogError`].
    pub fn read(bytes: &[u8]) -> Result<GcLog, GcLogError> {
        let mut log = GcLog::default();
        let mut highest = None;
        let mut lines = bytes.split_inclusive(|byte| *byte == b'\n').enumerate().peekable();
        if lines.peek().is_none() {
            return Err(GcLogError::Empty);
        }
        for (at, line) in lines {
            let Some(line) = line.strip_suffix(b"\n") else { break };
            let text = std::str::from_utf8(line).map_err(|_| GcLogError::NotText { line: at + 1 })?;
            let line = Line::read(at + 1, text)?;
            highest = highest.max(line.collection);
            log.take(&line)?;
        }
        log.collections = highest.map_or(0, |number: u64| number.saturating_add(1));
        log.less_nested();
        Ok(log)
    }

    fn take(&mut self, line: &Line<'_>) -> Result<(), GcLogError> {
        match (line.tags, line.collection) {
            ("gc", None) => {
                let named = line.message.strip_prefix("Using ");
                let known = named.and_then(|name| Collector::ALL.into_iter().find(|one| one.name() == name));
                self.collector = self.collector.or(known);
            }
            ("gc,init", None) => {
                let limit = ["Heap Max Capacity: ", "Max Capacity: "];
                if let Some(text) = limit.into_iter().find_map(|prefix| line.message.strip_prefix(prefix)) {
                    self.heap_limit_bytes = line.bytes(text)?;
                }
                let initial = ["Heap Initial Capacity: ", "Initial Capacity: "];
                if let Some(text) = initial.into_iter().find_map(|prefix| line.message.strip_prefix(prefix)) {
                    self.capacity_bytes = self.capacity_bytes.max(line.bytes(text)?.unwrap_or(0));
                }
            }
            _ => {}
        }
        let Some(collection) = line.collection else { return Ok(()) };
        if line.is_pause()
            && let Some(length) = line.duration_ns()?
        {
            let start_ns = line
                .time_ns
                .checked_sub(length)
                .ok_or(GcLogError::Figure { line: line.number, what: "a pause" })?;
            self.pauses.push(Pause { start_ns, end_ns: line.time_ns, collection });
        }
        if line.tags == "gc"
            && let Some((before, after, capacity)) = line.heap()?
        {
            self.changes.push(HeapChange { time_ns: line.time_ns, before, after });
            self.capacity_bytes = self.capacity_bytes.max(capacity.unwrap_or(0));
        }
        Ok(())
    }

    /// Leaves out pauses within others: a young collection that fails reports the full one in it as well.
    fn less_nested(&mut self) {
        self.pauses.sort_by_key(|pause| (pause.start_ns, std::cmp::Reverse(pause.end_ns)));
        let mut latest = 0;
        self.pauses.retain(|pause| {
            let apart = pause.end_ns > latest;
            latest = latest.max(pause.end_ns);
            apart
        });
    }

    /// The most bytes that the heap held, as far as collections saw it.
    pub fn used_high_bytes(&self) -> u64 {
        self.changes.iter().map(|change| change.before.max(change.after)).max().unwrap_or(0)
    }

    /// Bytes that collections reclaimed.
    pub fn reclaimed_bytes(&self) -> u64 {
        let of = |change: &HeapChange| change.before.saturating_sub(change.after);
        self.changes.iter().map(of).fold(0, u64::saturating_add)
    }

    /// Bytes allocated between the first and the last collection that ended within these times, ns. Of a collector that
    /// works while the program runs it is less than that: what is allocated during a collection is not known.
    pub fn allocated_bytes(&self, from_ns: u64, to_ns: u64) -> u64 {
        let within = |change: &HeapChange| (from_ns..=to_ns).contains(&change.time_ns);
        let pairs = self.changes.windows(2).filter(|pair| within(&pair[0]) && within(&pair[1]));
        pairs.map(|pair| pair[1].before.saturating_sub(pair[0].after)).fold(0, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptoll_testing::damage::Dice;

    /// Cut from runs of OpenJDK 17 and 25 that keep 20 MB alive in a heap of 128 MiB.
    const LOGS: [(&str, &[u8]); 6] = [
        ("serial", include_bytes!("../../../testdata/gc-logs/serial.log")),
        ("parallel", include_bytes!("../../../testdata/gc-logs/parallel.log")),
        ("g1", include_bytes!("../../../testdata/gc-logs/g1.log")),
        ("shenandoah", include_bytes!("../../../testdata/gc-logs/shenandoah.log")),
        ("zgc", include_bytes!("../../../testdata/gc-logs/zgc.log")),
        ("zgc-25", include_bytes!("../../../testdata/gc-logs/zgc-25.log")),
    ];

    fn log(name: &str) -> GcLog {
        let bytes = LOGS.into_iter().find(|(other, _)| *other == name).expect("a log").1;
        GcLog::read(bytes).expect(name)
    }

    #[test]
    fn logs_of_all_collectors_are_read() {
        let names = ["serial", "parallel", "g1", "shenandoah", "zgc"];
        for (name, collector) in names.into_iter().zip(Collector::ALL) {
            let log = log(name);
            assert_eq!((log.collector, log.heap_limit_bytes), (Some(collector), Some(128 << 20)), "{name}");
            assert_eq!(log.capacity_bytes, 128 << 20, "{name}");
            assert!(!log.pauses.is_empty() && log.collections > 0 && log.reclaimed_bytes() > 0, "{name}");
            assert!((20 << 20..=128 << 20).contains(&log.used_high_bytes()), "{name}");
        }
        assert_eq!(log("zgc-25").collector, Some(Collector::Z));
        assert_eq!(log("zgc-25").pauses.len(), 5);
    }

    #[test]
    fn a_full_collection_within_a_young_one_is_one_pause() {
        let text = "[1000ns][info][gc] Using Serial\n\
            [2000000ns][info][gc] GC(1) Pause Full (Allocation Failure) 90M->20M(128M) 0.500ms\n\
            [2000100ns][info][gc] GC(0) Pause Young (Allocation Failure) 100M->20M(128M) 1.000ms\n\
            [9000000ns][info][gc] GC(2) Pause Young (Allocation Failure) 60M->30M(128M) 1.000ms\n";
        let log = GcLog::read(text.as_bytes()).expect("a log");
        let spans: Vec<(u64, u64)> = log.pauses.iter().map(|pause| (pause.start_ns, pause.end_ns)).collect();
        assert_eq!(spans, [(1_000_100, 2_000_100), (8_000_000, 9_000_000)]);
        assert_eq!(log.collections, 3);
        assert_eq!(log.allocated_bytes(2_000_100, 9_000_000), 40 << 20);
        assert_eq!(log.allocated_bytes(2_000_101, 9_000_000), 0);
    }

    #[test]
    fn a_log_that_ends_within_a_line_is_read_up_to_there() {
        let whole = "[1ns][info][gc] Using G1\n";
        let killed = format!("{whole}[2ns][info][gc] GC(0) Pause Yo");
        assert_eq!(GcLog::read(killed.as_bytes()), GcLog::read(whole.as_bytes()));
        assert_eq!(GcLog::read(b""), Err(GcLogError::Empty));
        assert_eq!(GcLog::read(b"\xff\n"), Err(GcLogError::NotText { line: 1 }));
        let before_time = b"[5ns][info][gc] GC(0) Pause Full 2M->1M(8M) 1.000ms\n";
        assert_eq!(GcLog::read(before_time), Err(GcLogError::Figure { line: 1, what: "a pause" }));
    }

    /// A damaged log gives an error or figures that hold together, never a panic.
    #[test]
    fn damaged_logs_are_refused_or_read() {
        for seed in 0..4000 {
            let (name, bytes) = LOGS[seed as usize % LOGS.len()];
            let damaged = heaptoll_testing::damage::bytes(&mut Dice::new(seed), bytes);
            if let Ok(log) = GcLog::read(&damaged) {
                assert!(log.pauses.iter().all(|pause| pause.start_ns <= pause.end_ns), "{name}, seed {seed}");
                assert!(
                    log.pauses.windows(2).all(|pair| pair[0].end_ns < pair[1].end_ns),
                    "{name}, seed {seed}"
                );
                let all = log.allocated_bytes(0, u64::MAX);
                assert!(all >= log.allocated_bytes(1, u64::MAX), "{name}, seed {seed}");
            }
        }
    }
}
