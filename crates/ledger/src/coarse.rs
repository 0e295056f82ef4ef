//! The coarse ledger of a trace that was recorded without samples of the ledger: its resident set over time, sampled
//! from outside, with the live bytes that the trace itself has.

use std::path::Path;

use heaptoll_trace::{Batch, Memory, Reader, Sample};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::LedgerError;

/// One sample, and the live bytes at its time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// ns from the beginning.
    pub time_ns: u64,
    /// Bytes allocated until then.
    pub clock_bytes: u64,
    /// Resident set, bytes.
    pub rss_bytes: u64,
    /// Its anonymous part, bytes.
    pub anonymous_bytes: u64,
    /// Address space of the heap, bytes; 0 where not read.
    pub heap_bytes: u64,
    /// Requested in live objects, bytes; resident or not.
    pub live_bytes: u64,
    /// Usable in them and not requested, bytes.
    pub internal_bytes: u64,
}

impl Point {
    /// The resident set without the bytes of the live objects: everything else, less those of their bytes that are not
    /// resident.
    pub fn rest_bytes(&self) -> i64 {
        let rest = i128::from(self.rss_bytes) - i128::from(self.live_bytes) - i128::from(self.internal_bytes);
        i64::try_from(rest).unwrap_or(if rest < 0 { i64::MIN } else { i64::MAX })
    }
}

/// Bytes kept for each object that is live at the same time as others.
pub const EACH_OBJECT: usize = size_of::<(u64, u64)>();

/// Reads a trace to its end, within `memory`, and gives each of its samples the live bytes of its time. The trace's
/// order is that of the process; its stamps, with which samples are compared, are about a millisecond apart. Also
/// returns what was wrong with the file.
///
/// # Errors
/// It cannot be read, takes more memory than is allowed, or has no samples.
pub fn coarse(path: &Path, memory: Memory) -> Result<(Vec<Point>, Vec<String>), LedgerError> {
    let mut samples = heaptoll_trace::tables(path)?.samples;
    samples.retain(|sample| sample.rss_kib > 0);
    if samples.is_empty() {
        return Err(LedgerError::NotRecorded);
    }
    samples.sort_by_key(|sample| sample.time_ns);
    let mut reader = Reader::open(path)?;
    reader.limit(memory);
    let mut sums = Sums::new(&samples);
    let mut batch = Batch::default();
    while reader.read(&mut batch)? {
        for event in &batch.events {
            sums.event(event);
        }
    }
    Ok((sums.finish(), reader.into_tables().warnings))
}

struct Sums<'a> {
    /// Samples still to come.
    samples: &'a [Sample],
    points: Vec<Point>,
    /// Requested and usable bytes by slot.
    slots: Vec<(u64, u64)>,
    clock: u64,
    live: u64,
    internal: u64,
}

impl Sums<'_> {
    fn new(samples: &[Sample]) -> Sums<'_> {
        Sums { samples, points: Vec::new(), slots: Vec::new(), clock: 0, live: 0, internal: 0 }
    }

    fn event(&mut self, event: &heaptoll_trace::Event) {
        while let Some((sample, rest)) =
            self.samples.split_first().filter(|(first, _)| first.time_ns < event.time_ns)
        {
            self.points.push(self.point(sample));
            self.samples = rest;
        }
        let slot = event.slot as usize;
        if event.kind.allocates() || event.kind == heaptoll_trace::EventKind::Realloc {
            if slot >= self.slots.len() {
                self.slots.resize(slot + 1, (0, 0));
            }
            let before = self.take(slot);
            let slack = event.usable.saturating_sub(event.size);
            self.slots[slot] = (event.size, slack);
            self.live = self.live.saturating_add(event.size);
            self.internal = self.internal.saturating_add(slack);
            let grown = if event.kind.allocates() { event.size } else { event.size.saturating_sub(before) };
            self.clock = self.clock.saturating_add(grown);
        } else if event.kind.frees() {
            self.take(slot);
        }
    }

    /// Subtracts an object's bytes; returns how many it had requested.
    fn take(&mut self, slot: usize) -> u64 {
        let (size, slack) = self.slots.get_mut(slot).map_or((0, 0), std::mem::take);
        self.live = self.live.saturating_sub(size);
        self.internal = self.internal.saturating_sub(slack);
        size
    }

    fn point(&self, sample: &Sample) -> Point {
        Point {
            time_ns: sample.time_ns,
            clock_bytes: self.clock,
            rss_bytes: sample.rss_kib.saturating_mul(1024),
            anonymous_bytes: sample.anon_kib.saturating_mul(1024),
            heap_bytes: sample.heap_kib.saturating_mul(1024),
            live_bytes: self.live,
            internal_bytes: self.internal,
        }
    }

    fn finish(mut self) -> Vec<Point> {
        let last: Vec<Point> = self.samples.iter().map(|sample| self.point(sample)).collect();
        self.points.extend(last);
        self.points
    }
}

#[cfg(test)]
mod tests {
    use heaptoll_trace::{Allocation, Ending, EventKind, Header, Settings, Writer};

    use super::*;

    fn trace(samples: &[Sample]) -> tempfile::NamedTempFile {
        let call = |kind, size, usable| Allocation {
            kind,
            thread: 0,
            size,
            usable,
            align_log2: 0,
            site: 0,
            latency_ns: 0,
        };
        let mut writer = Writer::new(Vec::new(), &Header::default(), &Settings::default()).expect("begins");
        let one = writer.allocate(&call(EventKind::Malloc, 100, 104)).expect("written");
        writer.stamp(1000);
        let two = writer.allocate(&call(EventKind::Malloc, 1000, 1024)).expect("written");
        writer.resize(one, &call(EventKind::Realloc, 150, 152), true).expect("written");
        writer.stamp(2000);
        writer.free(two, EventKind::Free, 0, 0).expect("written");
        for sample in samples {
            writer.sample(sample);
        }
        let bytes = writer.finish(&Ending::default()).expect("ends");
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), bytes).expect("written");
        file
    }

    #[test]
    fn samples_get_the_live_bytes_of_their_time() {
        let sample = |time_ns, rss_kib| Sample { time_ns, rss_kib, ..Sample::default() };
        let file = trace(&[sample(500, 4), sample(1500, 8), sample(9000, 6)]);
        let (points, warnings) = coarse(file.path(), Memory::default()).expect("read");
        assert!(warnings.is_empty());
        let figures: Vec<_> =
            points.iter().map(|point| (point.rss_bytes, point.live_bytes, point.internal_bytes)).collect();
        assert_eq!(figures, [(4096, 100, 4), (8192, 1150, 26), (6144, 150, 2)]);
        assert_eq!(points.iter().map(|point| point.clock_bytes).collect::<Vec<_>>(), [100, 1150, 1150]);
        assert_eq!(points[1].rest_bytes(), 8192 - 1150 - 26);
        assert_eq!(Point { live_bytes: 10, ..Point::default() }.rest_bytes(), -10);
    }

    #[test]
    fn a_trace_without_samples_is_refused() {
        assert!(matches!(coarse(trace(&[]).path(), Memory::default()), Err(LedgerError::NotRecorded)));
    }
}
