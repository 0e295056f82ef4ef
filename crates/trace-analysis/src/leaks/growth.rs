//! Call sites whose live bytes rise over the whole run.
//!
//! The floors of the parts of the run are compared by fifths. They *rise* over it where the least of each fifth is
//! above that of the fifth before, the highest of the last fifth is above that of the fifth before by a fair share of
//! what it rose by until then, they rose in several parts, and the interval of their slope is above 0. So what only
//! rises at the start does not, nor does a cache that fills or is emptied, nor what a program builds in few level stages.
//!
//! A program that works in batches has waves, which hide what each batch keeps. Of seven waves and more the *troughs* are
//! compared: the least of each wave, or of each tenth of the run. They rise where each is above all before, the last by a
//! fair share. Troughs of no trend do so once in 5040 runs.
//!
//! A site grows where its floors rise in time. In parts of equal bytes, what a program allocates at its start hides
//! what comes later, and what it builds at its start seems to go on where it computes without allocating. But time has
//! idle hours, and rush hours. So a site grows as well where its floors rise in parts of equal bytes, if
//!
//! - the program worked for a second, which is no start-up, and
//! - in time, some of its rise is in the last fifth. Where the program allocates next to nothing there, it may have
//!   built what it needs, or may be idle: it is idle where it worked for ten seconds before.
//!
//! A program *works* for sixty times the median time that a part of equal bytes takes: pauses do not count. A run of
//! less than a second is its own start-up, and shows nothing. Older traces with pointers have the clock of bytes alone.

use heaptoll_statistics::{Trend, trend};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::series::{Clock, LiveSeries, PARTS};

/// Fifths of a run, and parts of one.
const FIFTHS: usize = 5;
const FIFTH: usize = PARTS / FIFTHS;
/// Fewest parts of the run in which a site that grows has risen.
const FEWEST_RISES: usize = 10;
/// Fewest waves of a run, fewest falls where there may be more than are seen, and most troughs.
const FEWEST_WAVES: usize = 7;
const FEWEST_FALLS: usize = 3;
const TROUGHS: usize = 10;
/// Most steps of stairs, which have three of four parts of a rise.
const STAIRS: usize = 5;
const MOST: u64 = 3;
const OF_MOST: u64 = 4;
/// The share of a run at which its last fifth begins.
const LAST_FIFTH_AT: f64 = 1.0 - 1.0 / FIFTHS as f64;
/// The last fifth has at least one part in this number of the mean rise of the three fifths before.
const LAST_FIFTH: u64 = 4;
/// Next to nothing: less than one part in this number.
const NEXT_TO_NOTHING: u64 = PARTS as u64;
/// Shortest run that shows growth, and shortest work after which a program without work is idle.
pub const SHORTEST_NS: u64 = 1_000_000_000;
const WORK_BEFORE_IDLE_NS: u64 = 10 * SHORTEST_NS;

/// A slope with its interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Slope {
    /// The median of the slopes between all pairs of parts of the run.
    pub value: f64,
    /// Lower end of its interval, 95 %.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// How live bytes rise.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rise {
    /// Live bytes a MiB allocated by the whole program.
    pub per_mib: Slope,
    /// Live bytes a second; none where the trace has no time.
    pub per_s: Option<Slope>,
    /// Whether the parts of the run have equal time, and not equal bytes allocated.
    pub in_time: bool,
    /// By how much the least live bytes of each fifth of the run are above those of the fifth before.
    pub fifths_bytes: Vec<i64>,
    /// The least live bytes in each of 60 parts of the run.
    pub floors_bytes: Vec<u64>,
}

/// The floors of one or more sites, by clock.
#[derive(Debug, Clone, Copy)]
pub(super) struct Floors {
    pub(super) by_bytes: [u64; PARTS],
    /// All 0 where there is no time.
    pub(super) in_time: [u64; PARTS],
}

/// The parts of a run, and how the program worked in it.
pub(super) struct Run {
    /// The clock and the time at the end of each part of equal bytes, and of equal time.
    ends_by_bytes: Vec<(u64, u64)>,
    ends_in_time: Vec<(u64, u64)>,
    /// Both clocks at the end of the run.
    clock_bytes: u64,
    time_ns: u64,
    work_ns: u64,
    /// The program allocates next to nothing in the last fifth of the time.
    is_still_at_end: bool,
}

impl Run {
    /// None where it is too short to have parts, or to show growth.
    pub(super) fn new(series: &LiveSeries) -> Option<Run> {
        let ends_by_bytes = series.ends(Clock::Bytes)?;
        let in_time = series.ends(Clock::Time).unwrap_or_default();
        if series.has_time() && (series.time_ns() < SHORTEST_NS || in_time.is_empty()) {
            return None;
        }
        let times = [0].into_iter().chain(ends_by_bytes.iter().map(|(_, time)| *time));
        let mut lengths: Vec<u64> =
            times.zip(&ends_by_bytes).map(|(begin, (_, end))| end.saturating_sub(begin)).collect();
        lengths.sort_unstable();
        let all = series.clock_bytes();
        let before = in_time.get(PARTS - FIFTH - 1).map_or(0, |(_, clock)| *clock);
        Some(Run {
            clock_bytes: all,
            time_ns: series.time_ns(),
            work_ns: lengths[PARTS / 2] * PARTS as u64,
            is_still_at_end: all.saturating_sub(before) <= all / NEXT_TO_NOTHING,
            ends_by_bytes,
            ends_in_time: in_time.into_iter().map(|(time, clock)| (clock, time)).collect(),
        })
    }

    fn has_time(&self) -> bool {
        !self.ends_in_time.is_empty()
    }

    /// Whether floors rise over the whole run, and by which clock; their interval is still to be seen.
    pub(super) fn may_grow(&self, floors: &Floors) -> Option<Clock> {
        if self.has_time() && rises(&floors.in_time) {
            return Some(Clock::Time);
        }
        let counts = !self.has_time() || self.work_ns >= SHORTEST_NS && self.goes_on(&floors.by_bytes);
        (counts && rises(&floors.by_bytes)).then_some(Clock::Bytes)
    }

    /// Whether, in time, a rise goes on to the end, or until the program is idle.
    fn goes_on(&self, by_bytes: &[u64; PARTS]) -> bool {
        self.over_at(by_bytes) >= LAST_FIFTH_AT || self.is_still_at_end && self.work_ns >= WORK_BEFORE_IDLE_NS
    }

    /// The share of the time at which a rise is over.
    fn over_at(&self, by_bytes: &[u64; PARTS]) -> f64 {
        let before = over_at(by_bytes).checked_sub(1);
        before.map_or(0.0, |part| self.ends_by_bytes[part].1 as f64 / self.time_ns as f64)
    }

    /// Of floors that rise in parts of equal bytes and do not grow, the share of the time at which their rise is over.
    pub(super) fn filled_at(&self, floors: &Floors) -> Option<f64> {
        let over_at = self.over_at(&floors.by_bytes);
        (self.has_time() && over_at < LAST_FIFTH_AT && rises(&floors.by_bytes)).then_some(over_at)
    }

    /// How floors rise by a clock; none where the interval is not above 0.
    pub(super) fn rise(&self, floors: &Floors, clock: Clock) -> Option<Rise> {
        const MIB: f64 = 1_048_576.0;
        let seconds = |ns: u64| ns as f64 / 1e9;
        let in_time = clock == Clock::Time;
        let (ends, floors) = match clock {
            Clock::Bytes => (&self.ends_by_bytes, &floors.by_bytes),
            Clock::Time => (&self.ends_in_time, &floors.in_time),
        };
        let at = |end: &(u64, u64)| if in_time { seconds(end.1) } else { end.0 as f64 / MIB };
        let of = |floors: &[u64; PARTS]| {
            let points = ends.iter().map(at).zip(floors.map(|floor| floor as f64));
            trend(&points.collect::<Vec<_>>()).filter(|trend| trend.low > 0.0)
        };
        let beneath_waves = || troughs(floors).and_then(|_| of(&least_from_here(floors)));
        let Trend { slope, low, high } = of(floors).or_else(beneath_waves)?;
        // The other slope by the mean rate of the run, and not by slopes over the other clock: parts of equal bytes
        // have next to no time in bursts, and all of an idle hour is in one.
        let mib_per_s = self.clock_bytes as f64 / MIB / seconds(self.time_ns);
        let times = |factor: f64| Slope { value: slope * factor, low: low * factor, high: high * factor };
        let per_s =
            (self.has_time() && mib_per_s.is_finite()).then(|| times(if in_time { 1.0 } else { mib_per_s }));
        let per_mib = times(if in_time { 1.0 / mib_per_s } else { 1.0 });
        Some(Rise { per_mib, per_s, in_time, fifths_bytes: fifths(floors), floors_bytes: floors.to_vec() })
    }
}

/// By how much each fifth's floor is above that of the fifth before.
fn fifths(floors: &[u64; PARTS]) -> Vec<i64> {
    let least = floors.chunks(FIFTH).map(|part| part.iter().copied().min().unwrap_or(0));
    let mut before = 0;
    least.map(|floor| (floor as i64).saturating_sub(std::mem::replace(&mut before, floor as i64))).collect()
}

/// Whether floors rise over the whole run, or the troughs of its waves.
fn rises(floors: &[u64; PARTS]) -> bool {
    fifths_rise(floors) && !are_stairs(floors) || troughs(floors).is_some()
}

/// Whether floors rise in stairs: most of what they rise by after the first fifth comes in a few steps, which have a
/// fifth of the parts at most. At a step all floors after it are above all before it. A rise to the very end is none.
fn are_stairs(floors: &[u64; PARTS]) -> bool {
    let least = least_from_here(floors);
    let most = MOST * (least[PARTS - 1] - least[FIFTH]) / OF_MOST;
    let height = |part: usize| least[part].saturating_sub(floors[..part].iter().copied().max().unwrap_or(0));
    let mut steps: Vec<(u64, usize)> = (FIFTH..PARTS).map(|part| (height(part), part)).collect();
    steps.sort_unstable_by(|one, other| other.cmp(one));
    let mut sum = 0;
    let mut parts: Vec<usize> = Vec::new();
    for (height, part) in steps.into_iter().take(FIFTH).take_while(|(height, _)| *height > 0) {
        if sum < most {
            parts.push(part);
        }
        sum += height;
    }
    parts.sort_unstable();
    let number = parts.chunk_by(|one, other| one + 1 == *other).count();
    sum >= most && (1..=STAIRS).contains(&number) && !parts.contains(&(PARTS - 1))
}

/// The parts with the troughs of a run of waves: the least of each tenth of the run, or of each wave where those are as
/// few. The first that rise, if any do.
pub(super) fn troughs(floors: &[u64; PARTS]) -> Option<Vec<usize>> {
    let range = floors.iter().max()? - floors.iter().min()?;
    let falls = |by: u64| floors.windows(2).filter(move |pair| pair[0].saturating_sub(pair[1]) > by).count();
    let tenths: Vec<Vec<usize>> =
        (0..PARTS).collect::<Vec<_>>().chunks(PARTS / TROUGHS).map(<[usize]>::to_vec).collect();
    let waves = waves(floors, range / TROUGHS as u64);
    let many = (falls(range / PARTS as u64) >= FEWEST_FALLS).then_some(tenths);
    let few = (FEWEST_WAVES..=TROUGHS).contains(&waves.len()).then_some(waves);
    let least = |parts: &Vec<usize>| parts.iter().copied().min_by_key(|part| floors[*part]);
    let found = many.into_iter().chain(few).map(|groups| groups.iter().filter_map(least).collect::<Vec<_>>());
    found.into_iter().find(|troughs| troughs_rise(floors, troughs))
}

/// The parts of each wave, from its fall by more than so much to the next one's.
fn waves(floors: &[u64; PARTS], amplitude: u64) -> Vec<Vec<usize>> {
    let (mut waves, mut highest, mut lowest, mut falls) = (Vec::<Vec<usize>>::new(), 0, 0, false);
    for (part, floor) in floors.iter().copied().enumerate() {
        (highest, lowest) = (floor.max(highest), floor.min(lowest));
        if !falls && highest - floor > amplitude {
            waves.push(Vec::new());
            (falls, lowest) = (true, floor);
        } else if falls && floor - lowest > amplitude {
            (falls, highest) = (false, floor);
        }
        if let Some(wave) = waves.last_mut() {
            wave.push(part);
        }
    }
    waves
}

fn troughs_rise(floors: &[u64; PARTS], troughs: &[usize]) -> bool {
    let mut rises = troughs.windows(2).map(|pair| floors[pair[1]].saturating_sub(floors[pair[0]]));
    let last = rises.clone().next_back().unwrap_or(0);
    let mean = rises.clone().sum::<u64>() / (troughs.len() as u64 - 1);
    rises.all(|rise| rise > 0) && last > mean / LAST_FIFTH
}

fn fifths_rise(floors: &[u64; PARTS]) -> bool {
    let rises = floors.windows(2).filter(|pair| pair[1] > pair[0]).count();
    let highest: Vec<u64> =
        floors.chunks(FIFTH).map(|part| part.iter().copied().max().unwrap_or(0)).collect();
    let [first, .., before, last] = highest[..] else { return false };
    let mean = before.saturating_sub(first) / (FIFTHS as u64 - 2);
    rises >= FEWEST_RISES
        && fifths(floors)[1..].iter().all(|rise| *rise > 0)
        && last.saturating_sub(before) > mean / LAST_FIFTH
}

/// To what floors do not fall below again.
fn least_from_here(floors: &[u64; PARTS]) -> [u64; PARTS] {
    let mut least = *floors;
    for part in (0..PARTS - 1).rev() {
        least[part] = least[part].min(least[part + 1]);
    }
    least
}

/// The part before which a rise is over: to what floors do not fall below again, next to nothing is added later.
fn over_at(floors: &[u64; PARTS]) -> usize {
    let least = least_from_here(floors);
    let (first, last) = (least[0], least[PARTS - 1]);
    least.iter().position(|floor| *floor >= last - (last - first) / NEXT_TO_NOTHING).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptoll_callsites::Sum;

    const MS: u64 = 1_000_000;

    /// A run of one site, which is made of steps: each lasts so many ms, allocates so many bytes, and has this change
    /// of what is live.
    fn run_of(steps: impl IntoIterator<Item = (u64, u64, i64)>) -> LiveSeries {
        let (mut series, mut clock, mut time) = (LiveSeries::default(), 0, 0);
        let bytes = |bytes| Sum { objects: 1, bytes };
        for (ms, allocated, change) in steps {
            time += ms * MS;
            clock += allocated;
            series.add(1, bytes(allocated), clock, time);
            let left = (allocated as i64 - change).unsigned_abs();
            series.remove(1, bytes(left), clock, time);
        }
        series.end(time);
        series
    }

    fn judged(series: &LiveSeries) -> (Option<Rise>, Option<f64>) {
        let run = Run::new(series).expect("long enough");
        let floors = Floors {
            by_bytes: series.floors_of_all(Clock::Bytes),
            in_time: series.floors_of_all(Clock::Time),
        };
        match run.may_grow(&floors) {
            Some(clock) => (run.rise(&floors, clock), None),
            None => (None, run.filled_at(&floors)),
        }
    }

    fn grows(steps: impl IntoIterator<Item = (u64, u64, i64)>) -> bool {
        judged(&run_of(steps)).0.is_some()
    }

    /// The same step, this number of times.
    fn times(number: usize, step: (u64, u64, i64)) -> impl Iterator<Item = (u64, u64, i64)> + Clone {
        std::iter::repeat_n(step, number)
    }

    /// No allocation for this time, ms.
    fn idle(ms: u64) -> impl Iterator<Item = (u64, u64, i64)> {
        times(1, (ms, 0, 0))
    }

    #[test]
    fn a_steady_rise_has_its_slope_by_both_clocks() {
        let (rise, _) = judged(&run_of(times(2000, (1, 1024, 64))));
        let rise = rise.expect("it grows");
        assert!(rise.in_time);
        let is_near = |slope: Slope, value: f64| {
            slope.low >= 0.97 * value && slope.high <= 1.03 * value && slope.low <= slope.high
        };
        assert!(is_near(rise.per_mib, 65_536.0), "{rise:?}");
        assert!(rise.per_s.is_some_and(|slope| is_near(slope, 64_000.0)), "{rise:?}");
        assert!(rise.fifths_bytes[1..].iter().all(|rise| (24_000..28_000).contains(rise)), "{rise:?}");
    }

    /// Before, much that was allocated at the start hid what grew later.
    #[test]
    fn growth_after_a_start_that_allocates_much_shows_in_time() {
        assert!(grows(times(1, (50, 100_000_000, 0)).chain(times(1500, (1, 5000, 1000)))));
        assert!(grows(times(100, (1, 1_000_000, 1_000_000)).chain(times(1500, (1, 5000, 1000)))));
    }

    /// Before, a structure that is built at the start grew: no byte is allocated after it.
    #[test]
    fn what_is_built_at_the_start_does_not_grow_though_nothing_is_allocated_later() {
        let build = || times(1000, (1, 1000, 900));
        for later in [idle(9000).collect::<Vec<_>>(), times(9000, (1, 10, 0)).collect()] {
            let (rise, filled) = judged(&run_of(build().chain(later)));
            assert_eq!(rise, None);
            assert!(filled.is_some_and(|until| (0.08..0.11).contains(&until)), "{filled:?}");
        }
        // In two steps, between which it computes.
        assert!(!grows(times(100, (1, 1000, 900)).chain(idle(2000)).chain(times(100, (1, 1000, 900)))));
    }

    /// Growth a second is that of the whole run with its idle times.
    #[test]
    fn a_server_grows_though_it_is_idle_for_an_hour_before_amid_or_after_its_work() {
        let (hour, work) = (3_600_000, || times(6000, (2, 1024, 64)));
        let runs: [(&str, Vec<_>); 3] = [
            ("before", idle(hour).chain(work()).collect()),
            ("amid", work().chain(idle(hour)).chain(work()).collect()),
            ("after", work().chain(idle(hour)).collect()),
        ];
        for (which, steps) in runs {
            let seconds = steps.iter().map(|step| step.0).sum::<u64>() as f64 / 1000.0;
            let gained = steps.iter().map(|step| step.2).sum::<i64>() as f64;
            let rise = judged(&run_of(steps)).0.unwrap_or_else(|| panic!("{which}"));
            let per_s = rise.per_s.expect("it has time").value;
            assert!(!rise.in_time && (per_s * seconds / gained - 1.0).abs() < 0.05, "{which}: {per_s}");
        }
        let rush = |times_of: usize| times(times_of, (2, 1024, 64)).chain(idle(60_000));
        assert!(grows((0..20).flat_map(|at| rush(if at < 10 { 500 } else { 125 }))), "traffic that ebbs");
    }

    #[test]
    fn what_rises_at_the_start_comes_and_goes_or_rises_in_few_steps_does_not_grow() {
        let step = |change: i64| (2, 1000, change);
        let of = |change: &dyn Fn(i64) -> i64| grows((0..3000).map(|at| step(change(at))));
        assert!(!of(&|at| if at < 1000 { 500 } else { 0 }), "start-up");
        assert!(!of(&|at| if at % 300 < 150 { 500 } else { -500 }), "a cache that is emptied");
        assert!(!of(&|at| if at % 600 == 0 { 1000 } else { 0 }), "five objects");
        assert!(!of(&|at| if at < 2400 { 500 } else { 0 }), "until four fifths");
        assert!(
            !of(&|at| (1000.0 * (at as f64 / -400.0).exp()) as i64),
            "a cache that fills ever more slowly"
        );
        assert!(!of(&|_| 0));
        assert!(of(&|at| (1000.0 / (1.0 + at as f64 / 100.0)) as i64), "as a logarithm");
        assert!(of(&|at| if at % 300 < 150 { 500 } else { -400 }), "what is left of a cache that is emptied");
    }

    /// Before, what a compiler builds in three stages grew.
    #[test]
    fn what_is_built_in_few_stages_does_not_grow() {
        // Each stage fills its set in `filled_in` ms, and replaces its objects until the next.
        let stages = |number: usize, filled_in: usize| {
            let length = 6000 / number;
            let fill =
                move || times(filled_in, (1, 4_000_000 / filled_in as u64, 2_000_000 / filled_in as i64));
            let replace = move || (0..length - filled_in).map(|at| (1, 2000, [300, -300][at % 2]));
            grows((0..number).flat_map(|_| fill().chain(replace())))
        };
        for number in 2..7 {
            assert!(!stages(number, 1) && !stages(number, 120), "{number} stages");
        }
        for (number, filled_in) in [(12, 1), (12, 120), (30, 30)] {
            assert!(stages(number, filled_in), "at each of {number} jobs in {filled_in} ms");
        }
        assert!(grows((0..3000).map(|at| (2, 100_000, (1.002_f64.powi(at) * 10.0) as i64))), "ever faster");
    }

    /// Before, what a job keeps of the objects of one site was hidden by those that it frees.
    #[test]
    fn what_each_batch_keeps_grows_beneath_the_waves() {
        // Each job makes a thousand objects, and then frees all but so many.
        let batch = |jobs: usize, kept: i64, pause: u64| {
            let up = || times(100, (1, 10_000, 10_000));
            let down = || times(100, (1, 0, -10_000)).chain(times(1, (1, 1000 * kept as u64, 1000 * kept)));
            let jobs = (0..jobs).flat_map(|_| up().chain(down()).chain(idle(pause))).collect::<Vec<_>>();
            grows(jobs)
        };
        for jobs in [8, 10, 15, 20, 24, 60, 100, 200] {
            assert!(batch(jobs, 50, 0), "{jobs} jobs");
            assert!(batch(jobs, 1, 60), "{jobs} jobs that keep little");
            assert!(!batch(jobs, 0, 0), "{jobs} jobs that keep nothing");
        }
    }

    /// Each has another amplitude, and none keeps anything.
    #[test]
    fn waves_of_changing_height_do_not_grow() {
        let mut state = 7_u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as i64
        };
        for waves in [7, 12, 20, 60, 150] {
            for _ in 0..40 {
                let mut base = 0;
                let steps: Vec<_> = (0..waves)
                    .flat_map(|_| {
                        let (height, next) = (random() % 1000 + 100, 500_000 + random() % 1000);
                        let change = std::mem::replace(&mut base, next);
                        let to_base = times(1, (1, 600_000, next - change));
                        times(20, (5, 2000, height)).chain(times(20, (5, 0, -height))).chain(to_base)
                    })
                    .collect();
                assert!(!grows(steps), "{waves} waves");
            }
        }
    }

    #[test]
    fn a_run_of_less_than_a_second_is_too_short() {
        assert!(Run::new(&run_of(times(990, (1, 1024, 64)))).is_none());
        assert!(Run::new(&run_of(times(1010, (1, 1024, 64)))).is_some());
        // Without time bytes are all there is.
        assert!(grows(times(1000, (0, 1024, 64))));
    }
}
