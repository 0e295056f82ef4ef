//! A trace as a [`Profile`]: what each call stack allocated, and what of it was alive at the peak and at the end; of the
//! whole run, or as if recording had begun at one time and ended at another.

mod frames;
mod live;
mod lives;
mod sums;

use std::collections::HashMap;

use heaptoll_callsites::Sum;
use heaptoll_profiles::{Builder, Counter, Measure, Profile, Subject, Tracks, Unit};
use heaptoll_trace::{Batch, Event, EventKind, Header, Sites};

use crate::objects::{MAX_SIZE, Objects};
use crate::site_sums::{SITES, SiteSums};
use crate::stat::Point;
use crate::stat::timeline::Timeline;
pub use frames::{Frames, frame_of};
use live::Live;
use lives::LifeGroups;
use sums::{Now, Own, Totals};

/// What the values of a stack are, in their order.
pub const MEASURES: [Measure; 9] = [
    Measure::AllocatedObjects,
    Measure::AllocatedBytes,
    Measure::EndObjects,
    Measure::EndBytes,
    Measure::PeakObjects,
    Measure::PeakBytes,
    Measure::OwnPeakObjects,
    Measure::OwnPeakBytes,
    Measure::LifetimeNs,
];
/// Bytes kept for each object that is live at the same time as others.
pub const EACH_OBJECT: usize = size_of::<Live>();

/// The part of a trace that is looked at: as if recording had begun and ended there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// ns from the beginning of the trace.
    pub from_ns: u64,
    /// The first ns after it.
    pub to_ns: u64,
}

impl Default for Window {
    fn default() -> Window {
        Window { from_ns: 0, to_ns: u64::MAX }
    }
}

/// Sums up the events of a trace by call stack.
#[derive(Debug)]
pub struct StackSums {
    window: Window,
    objects: Objects<Live>,
    sites: SiteSums<Own>,
    now: Now,
    peak_ns: u64,
    clock_bytes: u64,
    time_ns: u64,
    timeline: Timeline,
    lives: Option<LifeGroups>,
}

impl StackSums {
    /// No events yet. `lives`: whether it is kept when objects lived.
    pub fn new(window: Window, lives: bool) -> StackSums {
        StackSums {
            window,
            objects: Objects::default(),
            sites: SiteSums::default(),
            now: Now::default(),
            peak_ns: 0,
            clock_bytes: 0,
            time_ns: 0,
            timeline: Timeline::default(),
            lives: lives.then(LifeGroups::default),
        }
    }

    /// Consumes a batch of events; what is live when `exit` begins stays so.
    pub fn batch(&mut self, batch: &Batch) {
        match batch.after_exit {
            true => self.events_after_exit(&batch.events),
            false => self.events(&batch.events),
        }
    }

    fn events_after_exit(&mut self, events: &[Event]) {
        let window = self.window.from_ns..self.window.to_ns;
        for event in events.iter().filter(|event| event.kind.allocates() && window.contains(&event.time_ns)) {
            let size = event.size.min(MAX_SIZE);
            self.clock_bytes = self.clock_bytes.saturating_add(size);
            self.sites.at(event.site, self.now.change, self.now.peak).allocated.add(size);
        }
    }

    /// Consumes the next events.
    pub fn events(&mut self, events: &[Event]) {
        let to_ns = self.window.to_ns;
        for event in events.iter().take_while(|event| event.time_ns < to_ns) {
            self.time_ns = event.time_ns;
            match event.kind {
                kind if kind.allocates() => self.allocate(event),
                kind if kind.frees() => self.free(event.slot),
                EventKind::Realloc => self.resize(event),
                _ => {}
            }
            if self.is_within() {
                self.timeline.pass(1, self.point());
            }
        }
    }

    fn is_within(&self) -> bool {
        self.time_ns >= self.window.from_ns
    }

    fn allocate(&mut self, event: &Event) {
        let size = event.size.min(MAX_SIZE);
        let counts = self.is_within();
        let old = if counts { 0 } else { size };
        let live = Live { size, old, born_ns: event.time_ns, site: event.site, counts, is_alive: true };
        if let Some(before) = self.objects.born(event.slot, live) {
            self.end(event.slot, &before);
        }
        if !counts {
            return;
        }
        self.clock_bytes = self.clock_bytes.saturating_add(size);
        self.now.change();
        let totals = self.sites.at(event.site, self.now.change, self.now.peak);
        totals.allocate(size);
        totals.own_peak();
        self.now.live.add(size);
        self.rise();
    }

    fn resize(&mut self, event: &Event) {
        let size = event.size.min(MAX_SIZE);
        let counts = self.is_within();
        let Some(live) = self.objects.resized(event.slot) else { return };
        let before = live.bytes();
        live.size = size;
        if !counts {
            live.old = size;
            return;
        }
        let live = *live;
        let after = live.bytes();
        self.clock_bytes = self.clock_bytes.saturating_add(after.saturating_sub(before));
        self.now.change();
        let totals = self.sites.at(live.site, self.now.change, self.now.peak);
        totals.resize(before, after);
        totals.own_peak();
        self.now.live.resize(before, after);
        if let Some(lives) = &mut self.lives {
            lives.resize(event.slot, live.site, before, after, live.born_ns, event.time_ns);
        }
        self.rise();
    }

    fn free(&mut self, slot: u32) {
        if let Some(live) = self.objects.ended(slot) {
            self.end(slot, &live);
        }
    }

    /// An object has ended.
    fn end(&mut self, slot: u32, live: &Live) {
        if !live.counts && live.bytes() == 0 {
            return;
        }
        self.now.change();
        let totals = self.sites.at(live.site, self.now.change, self.now.peak);
        let ended = Sum { objects: u64::from(live.counts), bytes: live.bytes() };
        totals.live = totals.live.minus(ended);
        if live.counts {
            totals.more.lived(self.time_ns.saturating_sub(live.born_ns));
        }
        self.now.live = self.now.live.minus(ended);
        if let Some(lives) = &mut self.lives {
            lives.end(slot, live, Some(self.time_ns));
        }
    }

    /// Checks for a new maximum of live bytes.
    fn rise(&mut self) {
        if self.now.live.bytes > self.timeline.highest_bytes() {
            self.timeline.rise(self.point());
        }
        if self.now.is_peak() {
            self.peak_ns = self.time_ns;
        }
    }

    fn point(&self) -> Point {
        Point {
            clock_bytes: self.clock_bytes,
            time_ns: self.time_ns,
            live_bytes: self.now.live.bytes,
            live_objects: self.now.live.objects,
        }
    }

    /// Time of the last event within the window, ns from the beginning.
    pub fn time_ns(&self) -> u64 {
        self.time_ns
    }

    /// The profile, and live bytes and objects over time. `end_ns` is the end of the trace.
    pub fn finish(mut self, header: &Header, sites: &Sites, end_ns: u64) -> (Profile, Tracks) {
        let to_ns = self.window.to_ns.min(end_ns.max(self.time_ns));
        let end = Point { time_ns: to_ns, ..self.point() };
        for (slot, live) in self.objects.live() {
            if live.counts {
                let totals = self.sites.at(live.site, self.now.change, self.now.peak);
                totals.more.lived(to_ns.saturating_sub(live.born_ns));
            }
            if let Some(lives) = &mut self.lives {
                lives.end(slot, live, None);
            }
        }
        let mut builder = Builder::new(MEASURES.to_vec());
        builder.subject(Subject {
            command: header.command.clone(),
            exe: header.exe.clone(),
            pid: header.pid,
            started_unix_s: header.started_unix_s,
            from_ns: self.window.from_ns.min(to_ns),
            to_ns,
            peak_ns: self.peak_ns,
            sampled_bytes: None,
        });
        let mut frames = Frames::new(sites);
        let mut stacks: HashMap<u32, u32> = HashMap::new();
        for (site, totals) in self.sites.finish(self.now.peak) {
            let stack = frames.stack(site, site + 1 == SITES, &mut builder);
            stacks.insert(site, builder.stack(&stack, &values(&totals)));
        }
        if let Some(lives) = self.lives {
            builder.lives(lives.finish(&stacks));
        }
        (builder.finish(), tracks(self.timeline.finish(end)))
    }
}

fn values(totals: &Totals) -> [u64; MEASURES.len()] {
    [
        totals.allocated.objects,
        totals.allocated.bytes,
        totals.live.objects,
        totals.live.bytes,
        totals.at_peak.objects,
        totals.at_peak.bytes,
        totals.more.peak.objects,
        totals.more.peak.bytes,
        totals.more.lifetime_ns,
    ]
}

fn tracks(points: Vec<Point>) -> Tracks {
    let counter = |name: &str, unit, of: fn(&Point) -> u64| Counter {
        name: name.to_owned(),
        unit,
        points: points.iter().map(|point| (point.time_ns, of(point))).collect(),
    };
    Tracks {
        counters: vec![
            counter("live bytes", Unit::Bytes, |point| point.live_bytes),
            counter("live objects", Unit::Count, |point| point.live_objects),
            counter("bytes allocated", Unit::Bytes, |point| point.clock_bytes),
        ],
        slices: Vec::new(),
    }
}

#[cfg(test)]
mod tests;
