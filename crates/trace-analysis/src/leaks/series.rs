//! The live bytes of each call site over a whole run whose length is not known beforehand.
//!
//! Two clocks, bytes allocated and time, are each cut into intervals of equal length; of each a site keeps its least
//! live bytes, its *floor*, so that what comes and goes within an interval does not show. When there are too many
//! intervals, neighbours are merged and intervals become twice as long. A site keeps only intervals in which it
//! changes.
//!
//! The series ends where the last frees begin. What a site had there is kept until the next place where they may begin.

use heaptoll_callsites::Sum;
use heaptoll_trace::LastFrees;

use crate::site_sums::SITES;

/// Most intervals.
const INTERVALS: u64 = 256;
/// Length of the first intervals, by clock: bytes, ns.
const FIRST: [u64; 2] = [64, 1 << 16];
/// Parts of a run of which a floor is given.
pub(super) const PARTS: usize = 60;
/// In the last frees, live bytes fall by more than this for each byte that the program allocates: a shutdown may make
/// lines of what it frees.
const FREED_FOR_EACH: u64 = 1;
/// The last frees are at most this part of the run by either clock: what shrinks for longer has grown and shrunk.
const LAST: u64 = 3;

/// By what the progress of a run is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Clock {
    /// Bytes allocated.
    Bytes = 0,
    /// ns.
    Time = 1,
}

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
    /// By clock.
    changes: [Vec<Change>; 2],
    /// What was live at a place where the last frees may begin; of the latest, it has not changed since if it has another.
    before_last_frees: Sum,
    place: u64,
}

/// The intervals of a clock.
#[derive(Debug, Clone)]
struct Intervals {
    length: u64,
    /// By interval, the other clock at its end.
    others: Vec<u64>,
}

/// All sites.
#[derive(Debug, Clone)]
pub struct LiveSeries {
    sites: Vec<Site>,
    all: Site,
    /// By clock.
    intervals: [Intervals; 2],
    now: [u64; 2],
    last_frees: LastFrees,
    /// Places so far where they may begin, and the clocks at the latest: the time is that of the next change.
    places: u64,
    place: [u64; 2],
    is_at_place: bool,
    /// What was removed since the latest, without what is replaced.
    freed: Sum,
    is_replaced: bool,
}

impl Default for LiveSeries {
    fn default() -> LiveSeries {
        LiveSeries {
            sites: Vec::new(),
            all: Site::default(),
            intervals: FIRST.map(|length| Intervals { length, others: Vec::new() }),
            now: [0; 2],
            last_frees: LastFrees::new(FREED_FOR_EACH),
            places: 0,
            place: [0; 2],
            is_at_place: true,
            freed: Sum::default(),
            is_replaced: false,
        }
    }
}

impl LiveSeries {
    /// More is live of a site; the clocks are `clock_bytes` and `time_ns`, 0 without time.
    pub fn add(&mut self, site: u32, more: Sum, clock_bytes: u64, time_ns: u64) {
        self.change(site, [clock_bytes, time_ns], |live| live.plus(more));
        self.settle();
    }

    /// The same, of what takes the place of something that is removed next: meanwhile both are live, and no last frees
    /// begin.
    pub fn replaces(&mut self, site: u32, more: Sum, clock_bytes: u64, time_ns: u64) {
        self.change(site, [clock_bytes, time_ns], |live| live.plus(more));
        self.is_replaced = true;
    }

    /// Less is.
    pub fn remove(&mut self, site: u32, less: Sum, clock_bytes: u64, time_ns: u64) {
        self.change(site, [clock_bytes, time_ns], |live| live.minus(less));
        if !std::mem::take(&mut self.is_replaced) {
            self.freed = self.freed.plus(less);
        }
        self.settle();
    }

    /// The run ends.
    pub fn end(&mut self, time_ns: u64) {
        self.advance([self.now[0], time_ns]);
    }

    fn advance(&mut self, clocks: [u64; 2]) {
        for (now, clock) in self.now.iter_mut().zip(clocks) {
            *now = clock.max(*now);
        }
        let now = self.now;
        if self.is_at_place {
            self.place[Clock::Time as usize] = now[Clock::Time as usize];
        }
        for (clock, intervals) in self.intervals.iter_mut().enumerate() {
            while now[clock] / intervals.length >= INTERVALS {
                let sites = self.sites.iter_mut().chain([&mut self.all]);
                sites.for_each(|site| halve(&mut site.changes[clock]));
                intervals.halve();
            }
            let interval = (now[clock] / intervals.length) as usize;
            let before = intervals.others.last().copied().unwrap_or(0);
            // Intervals that one large object, or a pause, spans end when it began.
            intervals.others.resize(interval + 1, before);
            intervals.others[interval] = now[1 - clock].max(before);
        }
    }

    fn change(&mut self, site: u32, clocks: [u64; 2], to: impl Fn(Sum) -> Sum) {
        self.advance(clocks);
        let site = site.min(SITES - 1) as usize;
        if site >= self.sites.len() {
            self.sites.resize(site + 1, Site::default());
        }
        let intervals: [u32; 2] = std::array::from_fn(|clock| self.intervals[clock].others.len() as u32 - 1);
        for changed in [&mut self.sites[site], &mut self.all] {
            changed.change(intervals, self.places, &to);
        }
        self.is_at_place = false;
    }

    /// Looks whether the last frees begin here.
    fn settle(&mut self) {
        if self.last_frees.begin_after(self.all.live.bytes, self.now[Clock::Bytes as usize]) {
            self.places += 1;
            self.place = self.now;
            self.is_at_place = true;
            self.freed = Sum::default();
        }
    }

    /// Sites with numbers below this may have changed.
    pub(super) fn sites(&self) -> u32 {
        self.sites.len() as u32
    }

    /// Whether the series has time.
    pub(super) fn has_time(&self) -> bool {
        self.now[Clock::Time as usize] > 0
    }

    /// Whether it ends where the last frees begin, and not where the run does.
    fn has_last_frees(&self) -> bool {
        self.place
            .iter()
            .zip(self.now)
            .all(|(place, now)| place.saturating_mul(LAST) >= now.saturating_mul(LAST - 1))
    }

    /// The clocks at the end of the series.
    fn until(&self) -> [u64; 2] {
        if self.has_last_frees() { self.place } else { self.now }
    }

    /// ns from the beginning of the run to the end of the series.
    pub(super) fn time_ns(&self) -> u64 {
        self.until()[Clock::Time as usize]
    }

    /// Bytes allocated until the end of the series.
    pub(super) fn clock_bytes(&self) -> u64 {
        self.until()[Clock::Bytes as usize]
    }

    /// Intervals that are over at the end of the series.
    fn intervals(&self, clock: Clock) -> usize {
        (self.until()[clock as usize] / self.intervals[clock as usize].length) as usize
    }

    /// What was live of a site before the last frees.
    pub(super) fn before_last_frees(&self, site: u32) -> Sum {
        self.sites.get(site as usize).map_or_else(Sum::default, |site| {
            if site.place == self.places && self.has_last_frees() {
                site.before_last_frees
            } else {
                site.live
            }
        })
    }

    /// Of what was live of a site before the last frees, what was freed then.
    pub(super) fn freed_last_of(&self, site: u32) -> Sum {
        let live = self.sites.get(site as usize).map_or_else(Sum::default, |site| site.live);
        self.before_last_frees(site).minus(live)
    }

    /// What was freed from where the last frees begin.
    pub(super) fn freed_last(&self) -> Sum {
        if self.has_last_frees() { self.freed } else { Sum::default() }
    }

    /// A clock and the other one at the end of each part of the run; none where it is too short to have parts.
    pub(super) fn ends(&self, clock: Clock) -> Option<Vec<(u64, u64)>> {
        let (length, others) =
            (self.intervals[clock as usize].length, &self.intervals[clock as usize].others);
        let ends = (0..PARTS).map(|part| {
            let last = self.first_of(clock, part + 1) - 1;
            ((last as u64 + 1) * length, others[last])
        });
        (self.intervals(clock) >= PARTS).then(|| ends.collect())
    }

    /// Adds the floor of a site in each part of the run.
    pub(super) fn add_floors(&self, clock: Clock, site: u32, floors: &mut [u64; PARTS]) {
        if let Some(site) = self.sites.get(site as usize) {
            self.add_floors_of(clock, site, floors);
        }
    }

    /// The floor of all sites together.
    pub(super) fn floors_of_all(&self, clock: Clock) -> [u64; PARTS] {
        let mut floors = [0; PARTS];
        self.add_floors_of(clock, &self.all, &mut floors);
        floors
    }

    fn add_floors_of(&self, clock: Clock, site: &Site, floors: &mut [u64; PARTS]) {
        let changes = &site.changes[clock as usize];
        let (mut next, mut live) = (0, 0);
        for (part, sum) in floors.iter_mut().enumerate() {
            let end = self.first_of(clock, part + 1) as u32;
            let mut floor = u64::MAX;
            // Without a change at its beginning, the part begins with what was live.
            let mut covered = self.first_of(clock, part) as u32;
            while let Some(change) = changes.get(next).filter(|change| change.interval < end) {
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
    fn first_of(&self, clock: Clock, part: usize) -> usize {
        part * self.intervals(clock) / PARTS
    }
}

impl Intervals {
    /// They become twice as long.
    fn halve(&mut self) {
        self.length *= 2;
        self.others = self.others.chunks(2).filter_map(|pair| pair.last().copied()).collect();
    }
}

impl Site {
    fn change(&mut self, intervals: [u32; 2], place: u64, to: &impl Fn(Sum) -> Sum) {
        if self.place != place {
            (self.place, self.before_last_frees) = (place, self.live);
        }
        let before = self.live.bytes;
        self.live = to(self.live);
        let live = self.live.bytes;
        for (changes, interval) in self.changes.iter_mut().zip(intervals) {
            match changes.last_mut().filter(|last| last.interval == interval) {
                Some(last) => (last.floor, last.end) = (last.floor.min(live), live),
                None => changes.push(Change { interval, floor: before.min(live), end: live }),
            }
        }
    }
}

/// Two intervals become one.
fn halve(changes: &mut Vec<Change>) {
    changes.iter_mut().for_each(|change| change.interval /= 2);
    changes.dedup_by(|later, kept| {
        let same = later.interval == kept.interval;
        if same {
            (kept.floor, kept.end) = (kept.floor.min(later.floor), later.end);
        }
        same
    });
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
        let before = (series.ends(Clock::Bytes), series.floors_of_all(Clock::Bytes));
        for step in 0..1000 {
            if step == 500 {
                // The program prints that it ends.
                clock += 500;
                series.add(3, one(500), clock, 1000 + step / 4);
            }
            series.remove(1 + step as u32 % 2, one(100), clock, 1000 + step / 4);
        }
        assert_eq!((series.ends(Clock::Bytes), series.floors_of_all(Clock::Bytes)), before);
        let had = [1, 2, 3, 4].map(|site| series.before_last_frees(site).objects);
        assert_eq!(had, [500, 500, 0, 0]);
        // All of them, those that were made meanwhile included.
        assert_eq!(series.freed_last(), Sum { objects: 1000, bytes: 100_000 });
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
        series.add_floors(Clock::Bytes, 1, &mut floors);
        assert_eq!(floors, [0; PARTS]);
        series.add_floors(Clock::Bytes, 2, &mut floors);
        assert!(floors.is_sorted() && floors[0] < 20_000, "{floors:?}");
        assert!((960_000..=1_000_000).contains(&floors[PARTS - 1]), "{floors:?}");
        let ends = series.ends(Clock::Bytes).expect("parts");
        assert!(ends.is_sorted() && ends.len() == PARTS);
        assert!((99_000..100_000).contains(&ends[PARTS - 1].1), "{ends:?}");
        let all = series.floors_of_all(Clock::Bytes);
        assert!(all[30] >= floors[30] && all[30] <= floors[30] + 100);
    }

    #[test]
    fn a_site_that_does_not_change_keeps_what_it_has_and_a_short_run_has_no_parts() {
        let mut series = LiveSeries::default();
        assert_eq!(series.ends(Clock::Bytes), None);
        series.add(3, one(50), 50, 0);
        assert_eq!(series.ends(Clock::Bytes), None);
        for clock in 1..1000 {
            series.add(0, Sum::default(), 50 + clock * 16, clock);
        }
        let mut floors = [0; PARTS];
        series.add_floors(Clock::Bytes, 3, &mut floors);
        assert_eq!((floors[0], floors[1], floors[PARTS - 1]), (0, 50, 50));
    }

    #[test]
    fn last_frees_begin_where_the_program_makes_lines_of_what_it_frees_and_not_inside_a_realloc() {
        let grown = |lasts: u64| {
            let mut series = LiveSeries::default();
            for step in 1..=1000 {
                series.add(1, one(100), step * 100, step);
            }
            for step in 1..=1000 {
                series.add(2, one(20), 100_000 + step * 20, 1000 + step * lasts / 1000);
                series.remove(2, one(20), 100_000 + step * 20, 1000 + step * lasts / 1000);
                series.remove(1, one(100), 100_000 + step * 20, 1000 + step * lasts / 1000);
            }
            series
        };
        assert_eq!((grown(400).before_last_frees(1).objects, grown(400).time_ns()), (1000, 1000));
        // For so long it is no shutdown.
        assert_eq!((grown(1000).before_last_frees(1).objects, grown(1000).freed_last()), (0, Sum::default()));

        let mut series = LiveSeries::default();
        for step in 1..=100 {
            series.replaces(1, one(step * 100), step * (step + 1) * 50, 0);
            series.remove(1, one((step - 1) * 100), step * (step + 1) * 50, 0);
        }
        assert_eq!((series.before_last_frees(1).bytes, series.freed_last().bytes), (10_000, 0));
    }

    /// Before, a run ended with its last allocation, whatever the program did until it freed what it had.
    #[test]
    fn a_run_lasts_until_the_first_of_the_last_frees_or_the_end() {
        let mut series = LiveSeries::default();
        series.add(1, one(100), 100, 5);
        series.end(2000);
        assert_eq!(series.time_ns(), 2000);
        series.remove(1, one(100), 100, 3000);
        series.end(4000);
        assert_eq!(series.time_ns(), 3000);
    }
}
