//! Counts, sizes and rates of a trace: Table II of Detlefs, Dosser & Zorn 1994, and further figures of a trace.

mod figures;
mod latency;
mod live;
mod reallocs;
mod sites;
mod sizes;
mod threads;
pub(crate) mod timeline;

use heaptoll_trace::{Event, EventKind, Sample};

pub use figures::*;
use latency::Latencies;
use live::Live;
use reallocs::ReallocCounts;
use sizes::SizeCounts;
use threads::Threads;
use timeline::Timeline;

pub use sizes::{bounds as size_bounds, class as size_class};

use crate::objects::{MAX_SIZE, Objects};
use crate::share::share;
use crate::site_sums::SiteSums;
use crate::stacks::CallSites;
use crate::subject::Subject;

/// Bytes kept for each object that is live at the same time as others.
pub const EACH_OBJECT: usize = size_of::<Live>();
/// Commonest sizes that are listed.
const COMMONEST: usize = 20;
/// "Within 4 KiB of the byte clock".
const SOON_BYTES: u64 = 4096;

/// All kinds, in the order of their numbers.
const KINDS: [EventKind; 11] = [
    EventKind::Malloc,
    EventKind::Calloc,
    EventKind::Aligned,
    EventKind::New,
    EventKind::Realloc,
    EventKind::Free,
    EventKind::Delete,
    EventKind::ReallocFree,
    EventKind::Failed,
    EventKind::Foreign,
    EventKind::Lost,
];

/// Sums up the events of a trace. Memory: 32 bytes a slot, and tables that do not grow with the trace.
#[derive(Debug, Clone)]
pub struct Stat {
    objects: Objects<Live>,
    calls: [u64; KINDS.len()],
    kind_bytes: [u64; KINDS.len()],
    events: u64,
    clock: u64,
    time_ns: u64,
    live: LiveTotals,
    max_live_objects: u64,
    peak: Peak,
    at_exit: Option<LiveTotals>,
    allocated: LiveTotals,
    unknown_usable: u64,
    temporary: Temporary,
    sizes: SizeCounts,
    reallocs: ReallocCounts,
    threads: Threads,
    timeline: Timeline,
    latencies: Option<Latencies>,
    site_sums: Option<SiteSums>,
}

impl Stat {
    /// No events yet. `latency` and `sites`: whether the trace has them.
    pub fn new(latency: bool, sites: bool) -> Stat {
        Stat {
            objects: Objects::default(),
            calls: Default::default(),
            kind_bytes: Default::default(),
            events: 0,
            clock: 0,
            time_ns: 0,
            live: LiveTotals::default(),
            max_live_objects: 0,
            peak: Peak::default(),
            at_exit: None,
            allocated: LiveTotals::default(),
            unknown_usable: 0,
            temporary: Temporary::default(),
            sizes: SizeCounts::default(),
            reallocs: ReallocCounts::default(),
            threads: Threads::default(),
            timeline: Timeline::default(),
            latencies: if latency { Latencies::new() } else { None },
            site_sums: sites.then(SiteSums::default),
        }
    }

    /// `exit` begins: from now on no maximum of live bytes is the peak. A second time counts for nothing.
    pub fn exit_begins(&mut self) {
        self.at_exit.get_or_insert(self.live);
    }

    /// Consumes the next event.
    pub fn event(&mut self, event: &Event) {
        self.events(std::slice::from_ref(event));
    }

    /// Consumes the next events.
    pub fn events(&mut self, mut events: &[Event]) {
        while !events.is_empty() {
            let left = usize::try_from(self.timeline.left()).unwrap_or(usize::MAX);
            let (interval, rest) = events.split_at(left.min(events.len()));
            for event in interval {
                self.take(event);
            }
            if let Some(latencies) = &mut self.latencies {
                interval.iter().for_each(|event| latencies.add(event));
            }
            self.timeline.pass(interval.len() as u64, self.now());
            events = rest;
        }
    }

    #[inline(always)]
    fn take(&mut self, event: &Event) {
        self.events += 1;
        self.time_ns = event.time_ns;
        self.calls[event.kind as usize] += 1;
        match event.kind {
            EventKind::Malloc | EventKind::Calloc | EventKind::Aligned | EventKind::New => {
                self.allocate(event)
            }
            EventKind::Free | EventKind::Delete | EventKind::ReallocFree | EventKind::Lost => {
                self.free(event)
            }
            EventKind::Realloc => self.resize(event),
            EventKind::Failed | EventKind::Foreign => self.add_kind_bytes(event.kind, event.size),
        }
    }

    #[inline(always)]
    fn allocate(&mut self, event: &Event) {
        let size = event.size.min(MAX_SIZE);
        let usable = usable(event, size);
        self.unknown_usable += u64::from(event.usable == 0);
        self.clock = self.clock.saturating_add(size);
        self.add_kind_bytes(event.kind, size);
        self.sizes.add(size);
        let thread = self.threads.of(event.thread);
        thread.objects += 1;
        thread.bytes = thread.bytes.saturating_add(size);
        let live = Live::new(size, usable, self.clock, thread.objects, event.thread, event.site);
        if let Some(before) = self.objects.born(event.slot, live) {
            self.end(&before);
        }
        self.live.objects += 1;
        self.live.bytes = self.live.bytes.saturating_add(size);
        self.live.usable_bytes = self.live.usable_bytes.saturating_add(usable);
        self.allocated.bytes = self.allocated.bytes.saturating_add(size);
        self.allocated.usable_bytes = self.allocated.usable_bytes.saturating_add(usable);
        self.max_live_objects = self.max_live_objects.max(self.live.objects);
        if let Some(site_sums) = &mut self.site_sums {
            site_sums.at(event.site, self.events, self.peak.event).allocate(size);
        }
        self.rise();
    }

    #[inline(always)]
    fn free(&mut self, event: &Event) {
        let Some(live) = self.objects.ended(event.slot) else { return };
        self.add_kind_bytes(event.kind, live.size());
        // An object that was freed past the layer was freed at an unknown time by an unknown thread.
        if event.kind != EventKind::Lost {
            let allocating_thread = self.threads.of(live.thread).objects;
            let thread = self.threads.of(event.thread);
            thread.frees += 1;
            thread.frees_of_others += u64::from(event.thread != live.thread);
            let next = live.age_allocations(allocating_thread);
            self.temporary.before_next_1 += u64::from(next < 1);
            self.temporary.before_next_10 += u64::from(next < 10);
            self.temporary.before_next_100 += u64::from(next < 100);
            self.temporary.within_4_kib += u64::from(live.age_bytes(self.clock) < SOON_BYTES);
        }
        self.end(&live);
    }

    #[inline]
    fn resize(&mut self, event: &Event) {
        let size = event.size.min(MAX_SIZE);
        let Some(live) = self.objects.resized(event.slot) else { return };
        let before = *live;
        let usable = usable(event, size);
        live.resize(size, usable);
        self.unknown_usable += u64::from(event.usable == 0);
        self.add_kind_bytes(EventKind::Realloc, size);
        let growth = size.saturating_sub(before.size());
        self.clock = self.clock.saturating_add(growth);
        self.reallocs.add(before.size(), size, event.moved);
        let thread = self.threads.of(event.thread);
        thread.resizes += 1;
        thread.bytes = thread.bytes.saturating_add(growth);
        self.live.bytes = self.live.bytes.saturating_sub(before.size()).saturating_add(size);
        self.live.usable_bytes =
            self.live.usable_bytes.saturating_sub(before.usable()).saturating_add(usable);
        self.allocated.bytes = self.allocated.bytes.saturating_add(size);
        self.allocated.usable_bytes = self.allocated.usable_bytes.saturating_add(usable);
        if let Some(site_sums) = &mut self.site_sums {
            site_sums.at(before.site, self.events, self.peak.event).resize(before.size(), size);
        }
        self.rise();
    }

    /// An object has ended.
    #[inline(always)]
    fn end(&mut self, live: &Live) {
        self.live.objects -= 1;
        self.live.bytes = self.live.bytes.saturating_sub(live.size());
        self.live.usable_bytes = self.live.usable_bytes.saturating_sub(live.usable());
        if live.resizes() > 0 {
            self.reallocs.end_chain(live.resizes());
        }
        if let Some(site_sums) = &mut self.site_sums {
            site_sums.at(live.site, self.events, self.peak.event).free(live.size());
        }
    }

    /// Checks for a new maximum of live bytes.
    #[inline(always)]
    fn rise(&mut self) {
        if self.live.bytes <= self.timeline.highest_bytes() {
            return;
        }
        self.timeline.rise(self.now());
        if self.live.bytes > self.peak.live_bytes && self.at_exit.is_none() {
            self.peak = Peak {
                live_bytes: self.live.bytes,
                live_objects: self.live.objects,
                usable_bytes: self.live.usable_bytes,
                clock_bytes: self.clock,
                time_ns: self.time_ns,
                event: self.events,
            };
        }
    }

    #[inline(always)]
    fn add_kind_bytes(&mut self, kind: EventKind, bytes: u64) {
        let sum = &mut self.kind_bytes[kind as usize];
        *sum = sum.saturating_add(bytes);
    }

    #[inline(always)]
    fn now(&self) -> Point {
        Point {
            clock_bytes: self.clock,
            time_ns: self.time_ns,
            live_bytes: self.live.bytes,
            live_objects: self.live.objects,
        }
    }

    /// Time of the last event, ns from the beginning.
    pub fn time_ns(&self) -> u64 {
        self.time_ns
    }

    /// The result.
    pub fn figures(
        mut self,
        subject: Subject,
        samples: &[Sample],
        call_sites: &mut CallSites,
    ) -> StatFigures {
        for (_, live) in self.objects.live().filter(|(_, live)| live.resizes() > 0) {
            self.reallocs.end_chain(live.resizes());
        }
        let now = self.now();
        let count = |kinds: fn(EventKind) -> bool| -> u64 {
            KINDS.iter().filter(|kind| kinds(**kind)).map(|kind| self.calls[*kind as usize]).sum()
        };
        let objects = count(EventKind::allocates);
        let per = |amount: u64, seconds: f64| (seconds > 0.0).then(|| amount as f64 / seconds);
        let threads = self.threads.figures();
        let kinds = KINDS.iter().filter(|kind| self.calls[**kind as usize] > 0);
        let sites =
            self.site_sums.map_or_else(Vec::new, |sums| sites::figures(sums, self.peak.event, call_sites));
        StatFigures {
            events: self.events,
            objects,
            bytes: self.clock,
            average_size_bytes: (objects > 0).then(|| self.clock as f64 / objects as f64),
            peak: self.peak,
            max_live_objects: self.max_live_objects,
            at_exit: self.live,
            when_exit_began: self.at_exit,
            kinds: kinds
                .map(|&kind| KindFigures {
                    kind,
                    calls: self.calls[kind as usize],
                    bytes: self.kind_bytes[kind as usize],
                })
                .collect(),
            rates: Rates {
                objects_per_s: per(objects, subject.wall_s),
                bytes_per_s: per(self.clock, subject.wall_s),
                objects_per_cpu_s: subject.cpu_s.and_then(|cpu_s| per(objects, cpu_s)),
                bytes_per_cpu_s: subject.cpu_s.and_then(|cpu_s| per(self.clock, cpu_s)),
            },
            sizes: self.sizes.figures(COMMONEST),
            internal: internal(&self.peak, &self.allocated, self.unknown_usable),
            reallocs: self.reallocs.figures(),
            temporary: self.temporary,
            cross_thread_frees: threads.iter().map(|thread| thread.frees_of_others).sum(),
            frees: threads.iter().map(|thread| thread.frees).sum(),
            threads,
            latencies: self.latencies.map_or_else(Vec::new, |latencies| latencies.figures()),
            timeline: self.timeline.finish(now),
            resident: figures::resident(samples),
            call_sites: sites::together(&sites, call_sites),
            frames: if sites.is_empty() { Vec::new() } else { call_sites.frames() },
            sites,
            misfits: self.objects.misfits(),
            subject,
        }
    }
}

/// Usable bytes of a block: never less than was requested, and exactly that where unknown.
#[inline(always)]
fn usable(event: &Event, size: u64) -> u64 {
    event.usable.clamp(size, MAX_SIZE)
}

fn internal(peak: &Peak, allocated: &LiveTotals, unknown: u64) -> Internal {
    let part = |usable: u64, bytes: u64| (usable > 0).then(|| share(usable.saturating_sub(bytes), usable));
    Internal {
        at_peak_bytes: peak.usable_bytes.saturating_sub(peak.live_bytes),
        at_peak_share: part(peak.usable_bytes, peak.live_bytes),
        overall_bytes: allocated.usable_bytes.saturating_sub(allocated.bytes),
        overall_share: part(allocated.usable_bytes, allocated.bytes),
        unknown,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// An event of thread 0 without anything else.
    pub fn event(kind: EventKind, slot: u32, size: u64) -> Event {
        Event {
            kind,
            moved: false,
            align_log2: 0,
            thread: 0,
            slot,
            site: 0,
            size,
            usable: size.saturating_add(15) & !15,
            time_ns: 0,
            latency_ns: 0,
        }
    }

    fn stat(events: &[Event]) -> StatFigures {
        let mut stat = Stat::new(false, true);
        stat.events(events);
        stat.figures(Subject::default(), &[], &mut CallSites::new(&Default::default(), 3))
    }

    #[test]
    fn a_small_trace_gives_the_figures_counted_by_hand() {
        let at = |event: Event, thread, site, time_ns| Event { thread, site, time_ns, ..event };
        let figures = stat(&[
            at(event(EventKind::Malloc, 0, 100), 0, 1, 10), // live 100, usable 112
            at(event(EventKind::Calloc, 1, 40), 1, 2, 20),  // 140, 160
            at(event(EventKind::Free, 0, 0), 1, 0, 30),     // 40, 48: freed before thread 0's next
            at(event(EventKind::New, 0, 8), 0, 1, 40),      // 48, 64
            Event { moved: true, ..at(event(EventKind::Realloc, 1, 5000), 1, 3, 50) }, // 5008, 5024
            at(event(EventKind::Failed, 0, 1 << 40), 0, 0, 60),
            at(event(EventKind::Foreign, 0, 0), 0, 0, 60),
            at(event(EventKind::Delete, 0, 0), 0, 0, 70), // its age is 4960 bytes
            at(event(EventKind::Aligned, 0, 0), 0, 4, 80),
        ]);
        assert_eq!((figures.events, figures.objects, figures.bytes), (9, 4, 148 + 4960));
        assert_eq!(figures.average_size_bytes, Some(5108.0 / 4.0));
        let peak = Peak {
            live_bytes: 5008,
            live_objects: 2,
            usable_bytes: 5024,
            clock_bytes: 5108,
            time_ns: 50,
            event: 5,
        };
        assert_eq!((figures.peak, figures.max_live_objects), (peak, 2));
        assert_eq!(figures.at_exit, LiveTotals { objects: 2, bytes: 5000, usable_bytes: 5008 });
        let kind = |kind| {
            let found = figures.kinds.iter().find(|figures| figures.kind == kind);
            found.map(|figures| (figures.calls, figures.bytes))
        };
        assert_eq!(kind(EventKind::Malloc), Some((1, 100)));
        assert_eq!(kind(EventKind::Realloc), Some((1, 5000)));
        assert_eq!(kind(EventKind::Free), Some((1, 100)));
        assert_eq!(kind(EventKind::Delete), Some((1, 8)));
        assert_eq!(kind(EventKind::Failed), Some((1, 1 << 40)));
        assert_eq!(kind(EventKind::Foreign), Some((1, 0)));
        assert_eq!(kind(EventKind::Lost), None);
        assert_eq!((figures.frees, figures.cross_thread_frees), (2, 1));
        let temporary =
            Temporary { before_next_1: 2, before_next_10: 2, before_next_100: 2, within_4_kib: 1 };
        assert_eq!(figures.temporary, temporary);
        assert_eq!(figures.internal.at_peak_bytes, 16);
        assert_eq!(figures.internal.overall_bytes, 12 + 8 + 8 + 8);
        assert_eq!(figures.internal.unknown, 1, "aligned of 0 bytes");
        assert_eq!((figures.reallocs.grown, figures.reallocs.moved), (1, 1));
        assert_eq!(figures.reallocs.resized_objects, 1, "alive at exit and counted");
        let threads: Vec<_> =
            figures.threads.iter().map(|t| (t.objects, t.bytes, t.resizes, t.frees)).collect();
        assert_eq!(threads, [(3, 108, 0, 1), (1, 5000, 1, 1)]);
        let sites: Vec<_> =
            figures.sites.iter().map(|s| (s.site, s.objects, s.bytes, s.at_peak.bytes)).collect();
        assert_eq!(
            sites,
            [(1, 2, 108, 8), (2, 1, 5000, 5000), (4, 1, 0, 0)],
            "growth counts for the site of the allocation"
        );
        assert_eq!(figures.misfits, 0);
    }

    #[test]
    fn events_of_a_damaged_trace_are_counted_and_do_no_harm() {
        let figures = stat(&[
            event(EventKind::Free, 7, 0),
            event(EventKind::Realloc, 7, 10),
            event(EventKind::Malloc, 1, 10),
            event(EventKind::Malloc, 1, u64::MAX),
            event(EventKind::Malloc, 2, u64::MAX),
            event(EventKind::Free, 1, 0),
            event(EventKind::Free, 1, 0),
        ]);
        assert_eq!((figures.misfits, figures.objects), (4, 3));
        assert_eq!(figures.at_exit.objects, 1);
        assert_eq!(figures.at_exit.bytes, MAX_SIZE);
    }

    #[test]
    fn of_equal_peaks_the_first_counts() {
        let mut events = vec![event(EventKind::Malloc, 0, 100), event(EventKind::Free, 0, 0)];
        // Longer than a stretch of the timeline.
        events.extend([event(EventKind::Malloc, 0, 1), event(EventKind::Free, 0, 0)].repeat(40));
        events.push(event(EventKind::Malloc, 0, 100));
        assert_eq!(stat(&events).peak.event, 1);
    }

    #[test]
    fn an_interval_without_allocations_begins_with_what_is_live() {
        let mut events: Vec<Event> = (0..100).map(|slot| event(EventKind::Malloc, slot, 10)).collect();
        events.extend((0..100).map(|slot| event(EventKind::Free, slot, 0)));
        let timeline = stat(&events).timeline;
        assert!(timeline.is_sorted_by_key(|point| point.clock_bytes), "{timeline:?}");
        assert!(
            timeline.iter().any(|point| (100..1000).contains(&point.live_bytes) && point.clock_bytes == 1000)
        );
    }

    #[test]
    fn an_empty_trace_has_no_averages() {
        let figures = stat(&[]);
        assert_eq!((figures.objects, figures.average_size_bytes, figures.rates), (0, None, Rates::default()));
        assert_eq!(figures.internal.at_peak_share, None);
    }

    #[test]
    fn rates_are_taken_by_wall_and_cpu_time() {
        let mut stat = Stat::new(false, false);
        stat.events(&[event(EventKind::Malloc, 0, 100), event(EventKind::Malloc, 1, 100)]);
        let subject = Subject { wall_s: 4.0, cpu_s: Some(0.5), ..Subject::default() };
        let rates = stat.figures(subject, &[], &mut CallSites::new(&Default::default(), 3)).rates;
        assert_eq!((rates.objects_per_s, rates.bytes_per_s), (Some(0.5), Some(50.0)));
        assert_eq!((rates.objects_per_cpu_s, rates.bytes_per_cpu_s), (Some(4.0), Some(400.0)));
    }
}
