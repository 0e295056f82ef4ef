//! When to take the next snapshot.

use crate::ledger::{STEP, WANTED};
use crate::snapshot::Snapshot;

/// What of a program's memory is cheap to know at any time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Level {
    /// Bytes requested in live blocks.
    pub live_bytes: u64,
    /// Resident set, bytes.
    pub rss_bytes: u64,
}

/// A rise by one part in this many is sampled: the program goes on until the recorder sees it.
const RISE: u64 = 32;

impl Level {
    /// Whether more is live or resident than at another, by this number of sampled steps.
    fn exceeds(self, other: Level, steps: u64) -> bool {
        let exceeds = |now: u64, before: u64| now > before.saturating_add(before / RISE * steps);
        exceeds(self.live_bytes, other.live_bytes) || exceeds(self.rss_bytes, other.rss_bytes)
    }

    /// The larger of each figure.
    pub fn max(self, other: Level) -> Level {
        Level {
            live_bytes: self.live_bytes.max(other.live_bytes),
            rss_bytes: self.rss_bytes.max(other.rss_bytes),
        }
    }
}

impl From<&Snapshot> for Level {
    fn from(snapshot: &Snapshot) -> Level {
        // The kernel has two figures for the resident set, which differ by what its counters lag.
        let rss_bytes = snapshot.rss_bytes.max(snapshot.vm_rss_bytes);
        Level { live_bytes: snapshot.live_bytes, rss_bytes }
    }
}

/// Samples may take 1 / `SHARE` of the time; of a short run, and at a new peak, more.
const SHARE: u64 = 20;
const SHARE_AT_FIRST: u64 = 5;
/// Until they have taken so much CPU time in all, samples of new peaks are taken at once: a program that fills its heap
/// faster than that is sampled may be past its peak before a share of its time is large enough. A second run with a stop
/// at the peak would cost about as much. Of CPU time, as on a busy machine a sample takes many times as long.
const AT_ONCE_NS: u64 = 10_000_000_000;
/// Samples that count as the first.
const FIRST: usize = 16;
/// After a rise of this number of steps one was skipped. The next must not be: it may take half of the time. So may one of a
/// program that is idle, which loses no time by it.
const SKIPPED: u64 = 2;
const SHARE_AFTER_SKIPPED: u64 = 2;

/// A program without a sample for this part of its time, as a divisor, has one sooner: how long it stays as it is decides
/// what its ledger begins with.
const LONG: u64 = 4;

/// A sample of next to no live blocks takes this part of one of many, as a divisor.
const LEAST_PART: u64 = 16;

/// Decides when the next sample is due: often at first, at each new peak, and when the program goes idle; so that all
/// samples together take at most a twentieth of the time, and more of it where the peak would be missed otherwise.
#[derive(Debug, Clone)]
pub struct Pace {
    interval_ns: u64,
    /// Samples since the interval was set, and in all.
    taken: usize,
    all: usize,
    last_ns: u64,
    took_ns: u64,
    /// CPU time of all samples.
    cpu_ns: u64,
    most: Level,
    last: Level,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace {
            interval_ns: 5_000_000,
            taken: 0,
            all: 0,
            last_ns: 0,
            took_ns: 0,
            cpu_ns: 0,
            most: Level::default(),
            last: Level::default(),
        }
    }
}

impl Pace {
    /// Whether a sample is due at `time_ns` (from the beginning) of a program that is at this level, and makes no call if
    /// it `is_idle`. Cheap enough for every tick.
    pub fn due(&self, time_ns: u64, level: Level, is_idle: bool) -> bool {
        let since = time_ns.saturating_sub(self.last_ns);
        // A sample of a heap without blocks shows nothing of it.
        if self.most.live_bytes == 0 && level.live_bytes > 0 {
            return true;
        }
        let rises = |steps| self.all > 0 && level.exceeds(self.most, steps);
        if !(since >= self.interval_ns || rises(1) || is_idle && self.differs(level)) {
            return false;
        }
        let share = match self.all {
            0 => 0,
            _ if rises(1) && self.cpu_ns < AT_ONCE_NS => 0,
            _ if is_idle || rises(SKIPPED) => SHARE_AFTER_SKIPPED,
            all if all < FIRST || rises(1) || since >= time_ns / LONG => SHARE_AT_FIRST,
            _ => SHARE,
        };
        since >= self.takes_ns(level).saturating_mul(share)
    }

    /// How long a sample would take now: it reads all live blocks, and of less memory there are fewer.
    fn takes_ns(&self, level: Level) -> u64 {
        let before = self.last.live_bytes.max(1);
        let now = level.live_bytes.clamp((before / LEAST_PART).max(1), before);
        (u128::from(self.took_ns) * u128::from(now) / u128::from(before)) as u64
    }

    /// Whether the samples do not show a program that is at this level now: it has more than any sample saw, or more or
    /// less than the last one by a twentieth of the most, or was never sampled.
    pub fn misses(&self, level: Level) -> bool {
        self.all == 0 || level.max(self.most) != self.most || self.differs(level)
    }

    fn differs(&self, level: Level) -> bool {
        let differs = |now: u64, before: u64, most: u64| now.abs_diff(before) > most / STEP;
        differs(level.live_bytes, self.last.live_bytes, self.most.live_bytes)
            || differs(level.rss_bytes, self.last.rss_bytes, self.most.rss_bytes)
    }

    /// A sample was taken at `time_ns`: the program was stopped for `took_ns`, and `cpu_ns` of that were work; `snapshot` is
    /// its result.
    pub fn taken(&mut self, time_ns: u64, (took_ns, cpu_ns): (u64, u64), snapshot: &Snapshot) {
        (self.last_ns, self.took_ns) = (time_ns, took_ns);
        self.cpu_ns = self.cpu_ns.saturating_add(cpu_ns);
        self.last = Level::from(snapshot);
        self.most = self.most.max(self.last);
        self.all += 1;
        self.taken += 1;
        if self.taken >= WANTED {
            self.taken = 0;
            self.interval_ns *= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::Ledger;

    const MS: u64 = 1_000_000;
    /// Of a run that has been going on for some time, ms.
    const BEGUN: u64 = 10_000;

    fn live(live_bytes: u64) -> Level {
        Level { live_bytes, rss_bytes: 1 << 20 }
    }

    fn snapshot(time_ns: u64, live_bytes: u64) -> Snapshot {
        Snapshot { time_ns, rss_bytes: 1 << 20, live_bytes, ..Snapshot::default() }
    }

    /// A pace that took a sample at a time, in ms, with this number of live bytes.
    fn taken(pace: &mut Pace, ms: u64, took_ms: u64, live_bytes: u64) {
        pace.taken(ms * MS, (took_ms * MS, took_ms * MS), &snapshot(ms * MS, live_bytes));
    }

    /// A run of `ms` ms, polled every ms, whose live bytes are `live` of the time; a sample takes `took_ms`, for which
    /// the program is stopped.
    fn run(ms: u64, took_ms: u64, live: impl Fn(u64) -> u64) -> Ledger {
        let (mut pace, mut ledger) = (Pace::default(), Ledger::default());
        let mut lost = 0;
        for now in 0..ms {
            let live_bytes = live(now);
            let level = Level { live_bytes, rss_bytes: live_bytes + (1 << 20) };
            let time_ns = (now + lost) * MS;
            if pace.due(time_ns, level, false) {
                let snapshot = Snapshot { rss_bytes: level.rss_bytes, ..snapshot(time_ns, live_bytes) };
                pace.taken(time_ns, (took_ms * MS, took_ms * MS), &snapshot);
                ledger.push(snapshot);
                lost += took_ms;
            }
        }
        ledger
    }

    /// Before, a sample of a full heap kept the next ones away for twenty times as long, and the plateau after it had none.
    #[test]
    fn what_stays_after_most_was_freed_is_sampled_though_a_sample_of_the_full_heap_took_long() {
        let mut pace = Pace::default();
        for number in 0..FIRST as u64 {
            pace.taken(number * MS, (100 * MS, 0), &snapshot(number * MS, 64 << 20));
        }
        let later = FIRST as u64 * MS + 200 * MS;
        assert!(!pace.due(later, live(64 << 20), false), "a twentieth of the time");
        assert!(pace.due(later, live(1 << 20), false));
    }

    #[test]
    fn short_and_long_runs_have_about_as_many_snapshots_as_are_wanted() {
        for ms in [400, 2000, 20_000, 500_000] {
            let ledger = run(ms, 1, |now| now % 1000);
            let many = ledger.snapshots.len();
            assert!((30..=2 * WANTED).contains(&many), "{many} snapshots of {ms} ms");
            let last = ledger.snapshots[many - 1].time_ns / MS;
            assert!(last + ms / 10 >= ms, "{last} of {ms}");
            assert!(ledger.snapshots.is_sorted_by_key(|snapshot| snapshot.time_ns));
        }
    }

    /// The ledger of 7 programs in 12 had 45 to 87 % of the peak: a sample took so long that none was due at the peak.
    /// Of a parser that had its peak and freed all in a tenth of a second, it had half.
    #[test]
    fn the_peak_is_known_to_a_twentieth_however_the_program_grows() {
        for (ms, took_ms) in [(100, 60), (200, 1), (2000, 2), (20_000, 20), (20_000, 2)] {
            let steadily = |now: u64| now * 1000;
            // By a tenth in each fiftieth of the run: most of it comes late.
            let ever_faster = |now: u64| (1.1_f64.powf((now * 50) as f64 / ms as f64) * 1e6) as u64;
            for live in [&steadily as &dyn Fn(u64) -> u64, &ever_faster] {
                for up in [ms / 2, ms * 9 / 10, ms] {
                    let ledger = run(ms, took_ms, |now| if now < up { live(now) } else { 1000 });
                    let seen = ledger.fullest().map(|at| ledger.snapshots[at].live_bytes).expect("samples");
                    // It is polled every ms.
                    let most = live(up - 2);
                    assert!(seen + seen / STEP >= most, "{seen} of {most}: {ms} {took_ms} {up}");
                }
            }
        }
    }

    #[test]
    fn samples_take_a_twentieth_of_a_long_run_at_most() {
        let mut pace = Pace::default();
        let taken = (0..100_000_u64)
            .filter(|now| {
                // Always a new peak.
                let is_due = pace.due(now * MS, live(now * now), false);
                if is_due {
                    pace.taken(now * MS, (MS, MS), &snapshot(now * MS, now * now));
                }
                is_due
            })
            .count();
        assert!((100..=100_000 / SHARE as usize).contains(&taken), "{taken}");
    }

    /// A service was quiet for two thirds of its run, and the last sample was of its beginning.
    #[test]
    fn a_program_without_a_sample_for_a_quarter_of_its_time_has_one() {
        let mut pace = Pace::default();
        (0..FIRST as u64).for_each(|at| taken(&mut pace, 1000 + at, 100, 1000));
        assert!(!pace.due(1320 * MS, live(1000), false), "a twentieth of the time");
        assert!(!pace.due(1353 * MS, live(1000), false) && pace.due(1600 * MS, live(1000), false));
    }

    #[test]
    fn the_first_samples_of_new_peaks_wait_for_no_share_of_the_time() {
        let mut pace = Pace::default();
        for at in 0..50 {
            assert!(pace.due(at * MS, live(1 << at), false), "{at}");
            taken(&mut pace, at, 200, 1 << at);
        }
        assert!(!pace.due(50 * MS, live(1 << 50), false), "they took ten seconds");
    }

    #[test]
    fn a_sample_of_a_heap_without_blocks_does_not_delay_the_first_with_some() {
        let mut pace = Pace::default();
        assert!(pace.due(9 * MS, live(0), false));
        // The machine is busy: the recorder did not run for long.
        taken(&mut pace, 9, 80, 0);
        assert!(!pace.due(90 * MS, live(0), false));
        assert!(pace.due(90 * MS, live(100), false));
        taken(&mut pace, 90, 80, 100);
        assert!(!pace.due(170 * MS, live(100), false));
        assert!(pace.due(490 * MS, live(100), false));
    }

    #[test]
    fn a_program_that_ends_otherwise_than_it_was_sampled_is_sampled_once_more() {
        let mut pace = Pace::default();
        assert!(pace.misses(live(0)), "never sampled");
        taken(&mut pace, 5, 1, 1000);
        assert!(pace.misses(live(1001)) && !pace.misses(live(1000)));
        // What it freed since may have left fragmentation.
        assert!(pace.misses(live(940)) && !pace.misses(live(950)));
        taken(&mut pace, 9, 1, 100);
        assert!(!pace.misses(live(100)) && !pace.misses(live(150)) && pace.misses(live(170)));
        // It has written to what it had allocated.
        assert!(pace.misses(Level { rss_bytes: (1 << 20) + 4096, ..live(100) }));
    }

    #[test]
    fn after_a_rise_was_skipped_the_next_one_waits_less() {
        let mut pace = Pace::default();
        (0..FIRST as u64).for_each(|at| taken(&mut pace, at, 1000, 1000));
        taken(&mut pace, BEGUN, 10, 1000);
        let after = |pace: &Pace, ms: u64, live_bytes| pace.due((BEGUN + ms) * MS, live(live_bytes), false);
        assert!(!after(&pace, 199, 1000) && after(&pace, 200, 1000));
        assert!(!after(&pace, 49, 1040) && after(&pace, 50, 1040));
        assert!(!after(&pace, 19, 1070) && after(&pace, 20, 1070));
    }

    /// `arena` stayed at 104 MiB for 2.5 s without a snapshot: the last one had taken as long as a loaded machine does.
    #[test]
    fn a_sample_that_waits_for_its_share_is_taken_when_the_program_goes_idle() {
        let mut pace = Pace::default();
        (0..FIRST as u64).for_each(|at| taken(&mut pace, BEGUN + at, 100, 1000));
        let at = (BEGUN + FIRST as u64 + 250) * MS;
        for level in [live(2000), live(500), Level { rss_bytes: 2 << 20, ..live(1000) }, live(1000)] {
            assert!(pace.due(at, level, true), "{level:?}");
        }
        assert!(!pace.due(at, live(500), false), "it is at work");
        taken(&mut pace, BEGUN + 300, 1, 500);
        assert!(!pace.due((BEGUN + 303) * MS, live(500), true), "nothing has changed");
    }
}
