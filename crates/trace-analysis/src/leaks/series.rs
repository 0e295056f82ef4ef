//! The live bytes of each call site over a whole run whose length is not known beforehand.
//!
//! The clock, bytes allocated, is cut into intervals of equal length; of each a site keeps its least live bytes, its
//! *floor*, so that what comes and goes within an interval does not show. When there are too many intervals, neighbours
//! are merged and intervals become twice as long. A site keeps only intervals in which it changes.
//!
//! The series ends where the last frees begin. What a site had there is kept until the next place where they may begin.

use heaptoll_trace::LastFrees;

use crate::sum::Sum;

/// Most intervals.
const INTERVALS: u64 = 256;
/// Length of the first intervals, bytes.
const FIRST: u64 = 64;
/// Sites that are distinguished; those with higher numbers are merged into the last.
const SITES: usize = 1 << 20;
/// Parts of a run of which a floor is given.
pub(super) const PARTS: usize = 60;

/// An interval in which a site changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Change {
    interval: u32,
    /// Least live bytes in it, those at its beginning included.
    floor: u64,
    /// Live bytes at its end.
    end: u64,
}

#[derive(Debug, Clone, Default)]
struct Site {
    live: Sum,
    changes: Vec<Change>,
    /// What was live at a place where the last frees may begin; of the latest, it has not changed since if it has another.
    before_last_frees: Sum,
    place: u64,
}

/// All sites.
#[derive(Debug, Clone)]
pub struct LiveSeries {
    sites: Vec<Site>,
    all: Site,
    /// Bytes of an interval.
    length: u64,
    clock_bytes: u64,
    /// By interval, the time at its end.
    times_ns: Vec<u64>,
    last_frees: LastFrees,
    /// Places so far where they may begin, and the clock at the latest.
    places: u64,
    place_bytes: u64,
}

impl Default for LiveSeries {
    fn default() -> LiveSeries {
        LiveSeries {
            sites: Vec::new(),
            all: Site::default(),
            length: FIRST,
            clock_bytes: 0,
            times_ns: Vec::new(),
            last_frees: LastFrees::default(),
            places: 0,
            place_bytes: 0,
        }
    }
}

impl LiveSeries {
    /// More is live of a site; the clock is `clock_bytes`.
    pub fn add(&mut self, site: u32, more: Sum, clock_bytes: u64, time_ns: u64) {
        self.change(site, clock_bytes, time_ns, |live| live.plus(more));
    }

    /// Less is.
    pub fn remove(&mut self, site: u32, less: Sum, clock_bytes: u64, time_ns: u64) {
        self.change(site, clock_bytes, time_ns, |live| live.minus(less));
    }

    fn change(&mut self, site: u32, clock_bytes: u64, time_ns: u64, to: impl Fn(Sum) -> Sum) {
        self.clock_bytes = self.clock_bytes.max(clock_bytes);
        while self.clock_bytes / self.length >= INTERVALS {
            self.halve();
        }
        let interval = (self.clock_bytes / self.length) as usize;
        let before = self.times_ns.last().copied().unwrap_or(0);
        // Intervals that one large object spans end when it began.
        self.times_ns.resize(interval + 1, before);
        self.times_ns[interval] = time_ns.max(before);
        let site = (site as usize).min(SITES - 1);
        if site >= self.sites.len() {
            self.sites.resize(site + 1, Site::default());
        }
        for changed in [&mut self.sites[site], &mut self.all] {
            changed.change(interval as u32, self.places, &to);
        }
        if self.last_frees.begin_after(self.all.live.bytes, self.clock_bytes) {
            self.places += 1;
            self.place_bytes = self.clock_bytes;
        }
    }

    /// Intervals become twice as long.
    fn halve(&mut self) {
        self.length *= 2;
        self.sites.iter_mut().chain([&mut self.all]).for_each(Site::halve);
        self.times_ns = self.times_ns.chunks(2).filter_map(|pair| pair.last().copied()).collect();
    }

    /// Sites with numbers below this may have changed.
    pub(super) fn sites(&self) -> u32 {
        self.sites.len() as u32
    }

    /// Intervals of the run: those that are over when the last frees begin.
    fn intervals(&self) -> usize {
        (self.place_bytes / self.length) as usize
    }

    /// What was live of a site before the last frees.
    pub(super) fn before_last_frees(&self, site: u32) -> Sum {
        self.sites.get(site as usize).map_or_else(Sum::default, |site| match site.place == self.places {
            true => site.before_last_frees,
            false => site.live,
        })
    }

    /// What all sites had before the last frees and have no more.
    pub(super) fn freed_last(&self) -> Sum {
        match self.all.place == self.places {
            true => self.all.before_last_frees.minus(self.all.live),
            false => Sum::default(),
        }
    }

    /// The clock and the time at the end of each part of the run; none where it is too short to have parts.
    pub(super) fn ends(&self) -> Option<Vec<(u64, u64)>> {
        let ends = (0..PARTS).map(|part| {
            let last = self.first_of(part + 1) - 1;
            ((last as u64 + 1) * self.length, self.times_ns[last])
        });
        (self.intervals() >= PARTS).then(|| ends.collect())
    }

    /// Adds the floor of a site in each part of the run.
    pub(super) fn add_floors(&self, site: u32, floors: &mut [u64; PARTS]) {
        if let Some(site) = self.sites.get(site as usize) {
            self.add_floors_of(site, floors);
        }
    }

    /// The floor of all sites together.
    pub(super) fn floors_of_all(&self) -> [u64; PARTS] {
        let mut floors = [0; PARTS];
        self.add_floors_of(&self.all, &mut floors);
        floors
    }

    fn add_floors_of(&self, site: &Site, floors: &mut [u64; PARTS]) {
        let (mut next, mut live) = (0, 0);
        for (part, sum) in floors.iter_mut().enumerate() {
            let end = self.first_of(part + 1) as u32;
            let mut floor = u64::MAX;
            // Without a change at its beginning, the part begins with what was live.
            let mut covered = self.first_of(part) as u32;
            while let Some(change) = site.changes.get(next).filter(|change| change.interval < end) {
                if change.interval > covered {
                    floor = floor.min(live);
                }
                floor = floor.min(change.floor);
                live = change.end;
                covered = change.interval + 1;
                next += 1;
            }
            if covered < end {
                floor = floor.min(live);
            }
            *sum = sum.saturating_add(floor);
        }
    }

    /// The first interval of a part.
    fn first_of(&self, part: usize) -> usize {
        part * self.intervals() / PARTS
    }
}

impl Site {
    fn change(&mut self, interval: u32, place: u64, to: &impl Fn(Sum) -> Sum) {
        if self.place != place {
            (self.place, self.before_last_frees) = (place, self.live);
        }
        let before = self.live.bytes;
        self.live = to(self.live);
        let live = self.live.bytes;
        match self.changes.last_mut().filter(|last| last.interval == interval) {
            Some(last) => (last.floor, last.end) = (last.floor.min(live), live),
            None => self.changes.push(Change { interval, floor: before.min(live), end: live }),
        }
    }

    fn halve(&mut self) {
        self.changes.iter_mut().for_each(|change| change.interval /= 2);
        self.changes.dedup_by(|later, kept| {
            let same = later.interval == kept.interval;
            if same {
                (kept.floor, kept.end) = (kept.floor.min(later.floor), later.end);
            }
            same
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(bytes: u64) -> Sum {
        Sum { objects: 1, bytes }
    }

    #[test]
    fn the_series_ends_where_the_last_frees_begin_and_keeps_what_each_site_had() {
        let mut series = LiveSeries::default();
        let mut clock = 0;
        for step in 0..1000 {
            clock += 100;
            series.add(1 + step as u32 % 2, one(100), clock, step);
        }
        let before = (series.ends(), series.floors_of_all());
        for step in 0..1000 {
            if step == 500 {
                // The program prints that it ends.
                clock += 500;
                series.add(3, one(500), clock, 1000 + step);
            }
            series.remove(1 + step as u32 % 2, one(100), clock, 1000 + step);
        }
        assert_eq!((series.ends(), series.floors_of_all()), before);
        let had = [1, 2, 3, 4].map(|site| series.before_last_frees(site).objects);
        assert_eq!(had, [500, 500, 0, 0]);
        assert_eq!(series.freed_last(), Sum { objects: 999, bytes: 99_500 });
    }

    #[test]
    fn floors_leave_out_what_comes_and_goes_however_long_the_run() {
        let mut series = LiveSeries::default();
        let mut clock = 0;
        for step in 0..100_000_u64 {
            clock += 100;
            series.add(1, one(100), clock, step);
            series.remove(1, one(100), clock, step);
            clock += 10;
            series.add(2, one(10), clock, step);
        }
        let mut floors = [0; PARTS];
        series.add_floors(1, &mut floors);
        assert_eq!(floors, [0; PARTS]);
        series.add_floors(2, &mut floors);
        assert!(floors.is_sorted() && floors[0] < 20_000, "{floors:?}");
        assert!((960_000..=1_000_000).contains(&floors[PARTS - 1]), "{floors:?}");
        let ends = series.ends().expect("parts");
        assert!(ends.is_sorted() && ends.len() == PARTS);
        assert!((99_000..100_000).contains(&ends[PARTS - 1].1), "{ends:?}");
        let all = series.floors_of_all();
        assert!(all[30] >= floors[30] && all[30] <= floors[30] + 100);
    }

    #[test]
    fn a_site_that_does_not_change_keeps_what_it_has_and_a_short_run_has_no_parts() {
        let mut series = LiveSeries::default();
        assert_eq!(series.ends(), None);
        series.add(3, one(50), 50, 0);
        assert_eq!(series.ends(), None);
        for clock in 1..1000 {
            series.add(0, Sum::default(), 50 + clock * 16, clock);
        }
        let mut floors = [0; PARTS];
        series.add_floors(3, &mut floors);
        assert_eq!((floors[0], floors[1], floors[PARTS - 1]), (0, 50, 50));
    }
}
