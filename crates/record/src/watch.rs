//! Samples of a process's memory from outside while it is recorded: over time, and at its peaks.

use std::time::Instant;

use heaptoll_trace::Sample;

use crate::live::LiveBlocks;
use crate::pace::Paced;
use crate::proc;

/// The first samples come this often, ns.
const INTERVAL_NS: u64 = 10_000_000;
/// Of a process that records nothing they come this often at most, ns.
const IDLE_NS: u64 = 200_000_000;
/// Samples of new peaks take at most one part in this many of the time.
const SHARE: u64 = 50;

/// The samples of one process.
#[derive(Debug)]
pub struct Watch {
    pid: i32,
    samples: Paced<Sample>,
    /// Events at the last sample, and when that was.
    events: u64,
    sampled_ns: u64,
    /// `VmHWM`, as last read.
    peak_rss_kib: u64,
    peak_heap_bytes: u64,
    /// Live bytes at the last reading of the heap, and the earliest time at which a new peak is read.
    peak_live_bytes: u64,
    next_peak_ns: u64,
}

impl Watch {
    /// Samples of process `pid`, none yet.
    pub fn new(pid: i32) -> Watch {
        Watch {
            pid,
            samples: Paced::new(INTERVAL_NS),
            events: 0,
            sampled_ns: 0,
            peak_rss_kib: 0,
            peak_heap_bytes: 0,
            peak_live_bytes: 0,
            next_peak_ns: 0,
        }
    }

    /// Takes a sample when one is due; reads the heap, too, when more is live than at any reading before: its peak must
    /// not fall between two samples. `now_ns` counts from the beginning of the trace.
    pub fn poll(&mut self, now_ns: u64, (events, live_bytes): (u64, u64), live: &LiveBlocks) {
        if self.samples.is_due(now_ns) {
            let idle = events == self.events && !self.samples.kept().is_empty();
            if idle && now_ns < self.sampled_ns + IDLE_NS {
                return;
            }
            (self.events, self.sampled_ns) = (events, now_ns);
            let Some(memory) = proc::memory(self.pid) else { return };
            self.peak_rss_kib = self.peak_rss_kib.max(memory.peak_kib);
            let heap = self.heap(now_ns, live_bytes, live).unwrap_or(0);
            let (rss_kib, anon_kib) = (memory.rss_kib, memory.anon_kib);
            self.samples.keep(now_ns, Sample { time_ns: now_ns, rss_kib, anon_kib, heap_kib: heap / 1024 });
        } else if live_bytes > self.peak_live_bytes + self.peak_live_bytes / 64 && now_ns >= self.next_peak_ns
        {
            self.heap(now_ns, live_bytes, live);
        }
    }

    fn heap(&mut self, now_ns: u64, live_bytes: u64, live: &LiveBlocks) -> Option<u64> {
        let begun = Instant::now();
        let bytes = proc::mappings_bytes(self.pid, |range| live.any_in(range));
        let took_ns = begun.elapsed().as_nanos() as u64;
        self.next_peak_ns = now_ns + took_ns.saturating_mul(SHARE);
        self.peak_live_bytes = self.peak_live_bytes.max(live_bytes);
        self.peak_heap_bytes = self.peak_heap_bytes.max(bytes?);
        bytes
    }

    /// The samples, in order.
    pub fn samples(&self) -> &[Sample] {
        self.samples.kept()
    }

    /// Peak resident memory, KiB, when it was read at all.
    pub fn peak_rss_kib(&self) -> Option<u64> {
        (self.peak_rss_kib > 0).then_some(self.peak_rss_kib)
    }

    /// Peak size of the heap's mappings, bytes, when it was read at all.
    pub fn peak_heap_bytes(&self) -> Option<u64> {
        (self.peak_heap_bytes > 0).then_some(self.peak_heap_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peaks_are_read_between_samples() {
        let block = vec![1u8; 1 << 20];
        let mut live = LiveBlocks::default();
        live.put::<()>(block.as_ptr() as u64 & !7, |_| Ok(0)).expect("puts");
        let mut watch = Watch::new(std::process::id() as i32);
        watch.poll(0, (1, 1000), &live);
        assert_eq!(watch.samples().len(), 1);
        let sample = watch.samples()[0];
        assert!(sample.heap_kib >= 1024 && sample.rss_kib > sample.anon_kib, "{sample:?}");
        assert!(watch.peak_rss_kib() >= Some(sample.rss_kib));
        let first = watch.peak_heap_bytes().expect("a peak");
        let more: Vec<Vec<u8>> = (0..4).map(|_| vec![1u8; 64 << 20]).collect();
        for more in &more {
            live.put::<()>(more.as_ptr() as u64 & !7, |_| Ok(1)).expect("puts");
        }
        watch.poll(9_999_999, (2, 1001), &live);
        assert_eq!(watch.peak_heap_bytes(), Some(first), "hardly higher: not read");
        watch.next_peak_ns = 0;
        watch.poll(9_999_999, (3, 2000), &live);
        assert!(watch.peak_heap_bytes() >= Some(first + (200 << 20)), "{watch:?}");
        assert_eq!(watch.samples().len(), 1);
    }

    #[test]
    fn a_process_that_records_nothing_is_sampled_less_often() {
        let live = LiveBlocks::default();
        let mut watch = Watch::new(std::process::id() as i32);
        for ms in 0..1000 {
            watch.poll(ms * 1_000_000, (5, 100), &live);
        }
        assert_eq!(watch.samples().len(), 5);
        for ms in 1000..2000 {
            watch.poll(ms * 1_000_000, (ms, 100), &live);
        }
        assert_eq!(watch.samples().len(), 105);
    }
}
