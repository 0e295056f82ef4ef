//! The live bytes of each call site over a whole run whose length is not known beforehand.
//!
//! The clock, bytes allocated, is cut into intervals of equal length; of each a site keeps its least live bytes, its
//! *floor*, so that what comes and goes within an interval does not show. When there are too many intervals, neighbours
//! are merged and intervals become twice as long. A site keeps only intervals in which it changes.

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
    live: u64,
    changes: Vec<Change>,
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
}

impl Default for LiveSeries {
    fn default() -> LiveSeries {
        LiveSeries {
            sites: Vec::new(),
            all: Site::default(),
            length: FIRST,
            clock_bytes: 0,
            times_ns: Vec::new(),
        }
    }
}

impl LiveSeries {
    /// `bytes` more are live of a site; the clock is `clock_bytes`.
    pub fn add(&mut self, site: u32, bytes: u64, clock_bytes: u64, time_ns: u64) {
        self.change(site, clock_bytes, time_ns, |live| live.saturating_add(bytes));
    }

    /// `bytes` fewer are.
    pub fn remove(&mut self, site: u32, bytes: u64, clock_bytes: u64, time_ns: u64) {
        self.change(site, clock_bytes, time_ns, |live| live.saturating_sub(bytes));
    }

    fn change(&mut self, site: u32, clock_bytes: u64, time_ns: u64, to: impl Fn(u64) -> u64) {
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
        self.sites[site].change(interval as u32, &to);
        self.all.change(interval as u32, &to);
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

    /// The clock and the time at the end of each part of the run; none where it is too short to have parts.
    pub(super) fn ends(&self) -> Option<Vec<(u64, u64)>> {
        let ends = (0..PARTS).map(|part| {
            let last = self.first_of(part + 1) - 1;
            ((last as u64 + 1) * self.length, self.times_ns[last])
        });
        (self.times_ns.len() >= PARTS).then(|| ends.collect())
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
        part * self.times_ns.len() / PARTS
    }
}

impl Site {
    fn change(&mut self, interval: u32, to: &impl Fn(u64) -> u64) {
        let before = self.live;
        self.live = to(before);
        let live = self.live;
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

    #[test]
    fn floors_leave_out_what_comes_and_goes_however_long_the_run() {
        let mut series = LiveSeries::default();
        let mut clock = 0;
        for step in 0..100_000_u64 {
            clock += 100;
            series.add(1, 100, clock, step);
            series.remove(1, 100, clock, step);
            clock += 10;
            series.add(2, 10, clock, step);
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
        series.add(3, 50, 50, 0);
        assert_eq!(series.ends(), None);
        for clock in 1..1000 {
            series.add(0, 0, 50 + clock * 16, clock);
        }
        let mut floors = [0; PARTS];
        series.add_floors(3, &mut floors);
        assert_eq!((floors[0], floors[1], floors[PARTS - 1]), (0, 50, 50));
    }
}
