//! The ledger of a whole run: its snapshots, thinned as it grows, and when to take the next.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::snapshot::Snapshot;

/// Name of the trace's extra chunk that holds a [`Ledger`].
pub const EXTRA: &str = "ledger";

/// Snapshots of a run. The extra chunk "ledger" of a trace.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Ledger {
    /// Manager under the program.
    pub manager: String,
    /// Whether it is a collector: then a free may have done nothing.
    pub collector: bool,
    /// Whether collections were forced to see what they reclaim.
    pub collected: bool,
    /// In order of time.
    #[serde(rename = "moments")]
    pub snapshots: Vec<Snapshot>,
}

/// Number of snapshots that a run keeps, about: between this and twice as many.
const WANTED: usize = 40;

impl Ledger {
    /// Adds a snapshot. When there are too many, every second one is dropped, but never the first, the one with the
    /// largest resident set, the one with the most live bytes, the one with the most external fragmentation, and the
    /// last. A picture takes the place of that before.
    pub fn push(&mut self, snapshot: Snapshot) {
        if snapshot.picture.is_some() {
            self.snapshots.iter_mut().for_each(|before| before.picture = None);
        }
        self.snapshots.push(snapshot);
        if self.snapshots.len() <= 2 * WANTED {
            return;
        }
        let last = self.snapshots.len() - 1;
        let kept = [self.peak(), self.fullest(), self.most_pinned(), Some(0), Some(last)];
        let mut at = 0;
        self.snapshots.retain(|_| {
            let keep = at % 2 == 0 || kept.contains(&Some(at));
            at += 1;
            keep
        });
    }

    /// Index of the snapshot with the largest resident set, the first of them.
    pub fn peak(&self) -> Option<usize> {
        first_most(&self.snapshots, |snapshot| snapshot.rss_bytes)
    }

    /// Index of the snapshot with the most live bytes, the first of them.
    pub fn fullest(&self) -> Option<usize> {
        first_most(&self.snapshots, |snapshot| snapshot.live_bytes)
    }

    /// Index of the snapshot with the most external fragmentation on pages whose holders are known, the first of them.
    pub fn most_pinned(&self) -> Option<usize> {
        first_most(&self.snapshots, |snapshot| snapshot.pins.as_ref().map_or(0, |pins| pins.bytes))
    }
}

fn first_most(snapshots: &[Snapshot], of: impl Fn(&Snapshot) -> u64) -> Option<usize> {
    let most = snapshots.iter().map(&of).max()?;
    snapshots.iter().position(|snapshot| of(snapshot) == most)
}

/// Samples may take 1 / `SHARE` of the time; of a short run more, so that there is something to show.
const SHARE: u64 = 20;
const SHARE_AT_FIRST: u64 = 5;
/// Samples that count as the first.
const FIRST: usize = 16;
/// While the heap doubles from sample to sample they may take half of the time: it does not double often, and the run
/// may be over before their part of it is large enough. On a busy machine a sample takes as long as a short program.
const SHARE_OF_DOUBLINGS: u64 = 2;

/// Decides when the next sample is due: often at first and at new peaks, and so that all samples together take at most
/// a twentieth of the time; a fifth while there are few, half while the heap doubles.
#[derive(Debug, Clone)]
pub struct Pace {
    interval_ns: u64,
    /// Samples since the interval was set, and in all.
    taken: usize,
    all: usize,
    last_ns: u64,
    took_ns: u64,
    most_live: u64,
    last_live: u64,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace { interval_ns: 5_000_000, taken: 0, all: 0, last_ns: 0, took_ns: 0, most_live: 0, last_live: 0 }
    }
}

impl Pace {
    /// Whether a sample is due at `time_ns` (from the beginning) with this many live bytes. Cheap enough for every
    /// tick.
    pub fn due(&self, time_ns: u64, live_bytes: u64) -> bool {
        let since = time_ns.saturating_sub(self.last_ns);
        let share = match self.all {
            // A sample of a heap without blocks shows nothing of it.
            _ if self.most_live == 0 && live_bytes > 0 => 0,
            _ if live_bytes / 2 > self.most_live => SHARE_OF_DOUBLINGS,
            ..FIRST => SHARE_AT_FIRST,
            _ => SHARE,
        };
        if self.all > 0 && since < self.took_ns.saturating_mul(share) {
            return false;
        }
        // A new peak, by a sixteenth: the highest must not fall between two samples.
        let is_peak = live_bytes > self.most_live + self.most_live / 16 && since >= self.interval_ns / 8;
        since >= self.interval_ns || is_peak
    }

    /// Whether the samples do not show how a program ends that has this many live bytes then: it has more than any
    /// sample saw, or has freed or allocated a sixteenth of that since the last one, or was never sampled.
    pub fn misses(&self, live_bytes: u64) -> bool {
        self.all == 0
            || live_bytes > self.most_live
            || live_bytes.abs_diff(self.last_live) > self.most_live / 16
    }

    /// A sample was taken at `time_ns`; `snapshot` is its result.
    pub fn taken(&mut self, time_ns: u64, snapshot: &Snapshot) {
        (self.last_ns, self.took_ns) = (time_ns, snapshot.took_ns);
        self.most_live = self.most_live.max(snapshot.live_bytes);
        self.last_live = snapshot.live_bytes;
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
    use crate::line::How;
    use crate::picture::Picture;
    use crate::pins::Pins;

    fn snapshot(time_ns: u64, rss_bytes: u64, live_bytes: u64) -> Snapshot {
        Snapshot { time_ns, rss_bytes, live_bytes, took_ns: 1_000_000, ..Snapshot::default() }
    }

    /// A run of `ms` ms, polled every ms, whose live bytes are `live` of the time.
    fn run(ms: u64, live: impl Fn(u64) -> u64) -> Ledger {
        let (mut pace, mut ledger) = (Pace::default(), Ledger::default());
        for now in 0..ms {
            let (time_ns, live) = (now * 1_000_000, live(now));
            if pace.due(time_ns, live) {
                let snapshot = snapshot(time_ns, live + 1000, live);
                pace.taken(time_ns, &snapshot);
                ledger.push(snapshot);
            }
        }
        ledger
    }

    #[test]
    fn short_and_long_runs_have_about_as_many_snapshots_as_are_wanted() {
        for ms in [400, 2000, 20_000, 500_000] {
            let ledger = run(ms, |now| now % 1000);
            let many = ledger.snapshots.len();
            assert!((30..=2 * WANTED).contains(&many), "{many} snapshots of {ms} ms");
            let last = ledger.snapshots[many - 1].time_ns / 1_000_000;
            assert!(last + ms / 10 >= ms, "{last} of {ms}");
            assert!(ledger.snapshots.is_sorted_by_key(|snapshot| snapshot.time_ns));
        }
    }

    #[test]
    fn samples_take_a_twentieth_of_a_long_run_at_most() {
        let mut pace = Pace::default();
        let taken = (0..100_000_u64)
            .filter(|now| {
                // Always a new peak.
                let is_due = pace.due(now * 1_000_000, now * now);
                if is_due {
                    pace.taken(now * 1_000_000, &snapshot(now * 1_000_000, 1, now * now));
                }
                is_due
            })
            .count();
        assert!((100..=100_000 / SHARE as usize).contains(&taken), "{taken}");
    }

    #[test]
    fn a_sample_of_a_heap_without_blocks_does_not_delay_the_first_with_some() {
        let ms = |ms: u64| ms * 1_000_000;
        let mut pace = Pace::default();
        assert!(pace.due(ms(9), 0));
        // The machine is busy: the recorder did not run for long.
        pace.taken(ms(9), &Snapshot { took_ns: ms(80), ..snapshot(ms(9), 1 << 20, 0) });
        assert!(!pace.due(ms(90), 0));
        assert!(pace.due(ms(90), 100));
        pace.taken(ms(90), &Snapshot { took_ns: ms(80), ..snapshot(ms(90), 1 << 20, 100) });
        assert!(!pace.due(ms(170), 100));
        assert!(pace.due(ms(490), 100));
    }

    #[test]
    fn a_program_that_ends_otherwise_than_it_was_sampled_is_sampled_once_more() {
        let mut pace = Pace::default();
        assert!(pace.misses(0), "never sampled");
        pace.taken(5_000_000, &snapshot(5_000_000, 1 << 20, 1000));
        assert!(pace.misses(1001) && !pace.misses(1000));
        // What it freed since may have left fragmentation.
        assert!(pace.misses(930) && !pace.misses(940));
        pace.taken(9_000_000, &snapshot(9_000_000, 1 << 20, 100));
        assert!(!pace.misses(100) && !pace.misses(150) && pace.misses(170));
    }

    #[test]
    fn a_heap_that_has_doubled_is_sampled_again_after_as_long_as_the_sample_took() {
        let ms = |ms: u64| ms * 1_000_000;
        let mut pace = Pace::default();
        pace.taken(ms(5), &Snapshot { took_ns: ms(50), ..snapshot(ms(5), 1 << 20, 1000) });
        assert!(!pace.due(ms(104), 3000));
        assert!(pace.due(ms(105), 3000));
        assert!(!pace.due(ms(105), 2000), "not more than doubled");
        assert!(pace.due(ms(255), 2000));
    }

    #[test]
    fn a_peak_stays_however_many_come_after_it() {
        let mut ledger = Ledger::default();
        for at in 0..10_000 {
            let rss = if at == 77 { 1 << 30 } else { at };
            let live = if at == 333 { 1 << 29 } else { at };
            ledger.push(snapshot(at, rss, live));
        }
        let at = |found: Option<usize>| found.map(|at| ledger.snapshots[at].time_ns);
        assert_eq!((at(ledger.peak()), at(ledger.fullest())), (Some(77), Some(333)));
        assert_eq!(
            (ledger.snapshots[0].time_ns, ledger.snapshots.last().map(|last| last.time_ns)),
            (0, Some(9999))
        );
        assert!(ledger.snapshots.len() <= 2 * WANTED);
        assert_eq!(Ledger::default().peak(), None);
    }

    #[test]
    fn the_worst_fragmentation_stays_and_has_the_only_picture() {
        let mut ledger = Ledger::default();
        for at in 0..1000 {
            let is_worst = at <= 77;
            let pins = Some(Pins { bytes: if is_worst { 100 + at } else { 1 }, ..Pins::default() });
            let picture = is_worst.then(Picture::default);
            ledger.push(Snapshot { pins, picture, ..snapshot(at, at, at) });
        }
        let worst = ledger.most_pinned().expect("there are snapshots");
        assert_eq!(ledger.snapshots[worst].time_ns, 77);
        let pictures = ledger.snapshots.iter().filter(|snapshot| snapshot.picture.is_some());
        assert_eq!(pictures.map(|snapshot| snapshot.time_ns).collect::<Vec<u64>>(), [77]);
    }

    #[test]
    fn the_keys_of_stored_ledgers_stay() {
        let line = r#"{"term":"live","resident":7,"swapped":0,"absent":0,"how":"told"}"#;
        let stored = format!(r#"{{"moments":[{{"heap_places":3,"lines":[{line}]}}]}}"#);
        let ledger: Ledger = serde_json::from_str(&stored).expect("it parses");
        let snapshot = &ledger.snapshots[0];
        assert_eq!((snapshot.heap_ranges, snapshot.lines[0].how), (3, How::Reported));
        let again = serde_json::to_value(&ledger).expect("it is JSON");
        let snapshot = &again["moments"][0];
        assert_eq!((&snapshot["heap_places"], &snapshot["lines"][0]["how"]), (&3.into(), &"told".into()));
    }
}
