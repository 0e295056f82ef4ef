//! The ledger of a whole run: its moments, thinned as it grows, and when to take the next.

use serde::{Deserialize, Serialize};

use crate::moment::Moment;

/// Name of the trace's extra chunk that holds a [`Ledger`].
pub const EXTRA: &str = "ledger";

/// Moments of a run. The extra chunk "ledger" of a trace.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ledger {
    /// Manager under the program.
    pub manager: String,
    /// Whether it is a collector: then a free may have done nothing.
    pub collector: bool,
    /// Whether collections were forced to see what they reclaim.
    pub collected: bool,
    /// In order of time.
    pub moments: Vec<Moment>,
}

/// How many moments a run keeps, about: between this and twice as many.
const WANTED: usize = 40;

impl Ledger {
    /// Adds a moment. When there are too many, every second one goes, but never the first, the one with the largest
    /// resident set, the one with the most live bytes, and the last.
    pub fn push(&mut self, moment: Moment) {
        self.moments.push(moment);
        if self.moments.len() <= 2 * WANTED {
            return;
        }
        let last = self.moments.len() - 1;
        let kept = [self.peak(), self.fullest(), Some(0), Some(last)];
        let mut at = 0;
        self.moments.retain(|_| {
            let keep = at % 2 == 0 || kept.contains(&Some(at));
            at += 1;
            keep
        });
    }

    /// The moment with the largest resident set: the first of them.
    pub fn peak(&self) -> Option<usize> {
        first_most(&self.moments, |moment| moment.rss_bytes)
    }

    /// The moment with the most live bytes: the first of them.
    pub fn fullest(&self) -> Option<usize> {
        first_most(&self.moments, |moment| moment.live_bytes)
    }
}

fn first_most(moments: &[Moment], of: impl Fn(&Moment) -> u64) -> Option<usize> {
    let most = moments.iter().map(&of).max()?;
    moments.iter().position(|moment| of(moment) == most)
}

/// Looks may take one part of so many of the time: of a short run more, so that there is something to be seen.
const SHARE: u64 = 20;
const SHARE_AT_FIRST: u64 = 5;
/// Looks that count as the first.
const FIRST: usize = 16;
/// While the heap doubles from look to look they may take half of the time: it does not do so often, and the run may be
/// over before their part of it is large enough. On a busy machine a look takes as long as a short program.
const SHARE_OF_DOUBLINGS: u64 = 2;

/// Says when the next look is due: often at first and at new heights, and so that all looks together take at most a
/// twentieth of the time; a fifth while there are few, half while the heap doubles.
#[derive(Debug, Clone)]
pub struct Pace {
    interval_ns: u64,
    /// Looks since the interval was set, and in all.
    taken: usize,
    all: usize,
    last_ns: u64,
    took_ns: u64,
    most_live: u64,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace { interval_ns: 5_000_000, taken: 0, all: 0, last_ns: 0, took_ns: 0, most_live: 0 }
    }
}

impl Pace {
    /// Whether a look is due at `time_ns` (from the beginning) with so many live bytes. Cheap: ask at every tick.
    pub fn due(&self, time_ns: u64, live_bytes: u64) -> bool {
        let since = time_ns.saturating_sub(self.last_ns);
        let share = match self.all {
            // Whoever has looked at a heap without blocks has not seen it.
            _ if self.most_live == 0 && live_bytes > 0 => 0,
            _ if live_bytes / 2 > self.most_live => SHARE_OF_DOUBLINGS,
            ..FIRST => SHARE_AT_FIRST,
            _ => SHARE,
        };
        if self.all > 0 && since < self.took_ns.saturating_mul(share) {
            return false;
        }
        // A new height, by a sixteenth: the peak must not fall between two looks.
        let height = live_bytes > self.most_live + self.most_live / 16 && since >= self.interval_ns / 8;
        since >= self.interval_ns || height
    }

    /// A look was taken at `time_ns`, as said in `moment`.
    pub fn taken(&mut self, time_ns: u64, moment: &Moment) {
        (self.last_ns, self.took_ns) = (time_ns, moment.took_ns);
        self.most_live = self.most_live.max(moment.live_bytes);
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

    fn moment(time_ns: u64, rss_bytes: u64, live_bytes: u64) -> Moment {
        Moment { time_ns, rss_bytes, live_bytes, took_ns: 1_000_000, ..Moment::default() }
    }

    /// A run of so many ms, asked every ms, whose live bytes are what `live` says.
    fn run(ms: u64, live: impl Fn(u64) -> u64) -> Ledger {
        let (mut pace, mut ledger) = (Pace::default(), Ledger::default());
        for now in 0..ms {
            let (time_ns, live) = (now * 1_000_000, live(now));
            if pace.due(time_ns, live) {
                let moment = moment(time_ns, live + 1000, live);
                pace.taken(time_ns, &moment);
                ledger.push(moment);
            }
        }
        ledger
    }

    #[test]
    fn short_and_long_runs_have_about_as_many_moments_as_are_wanted() {
        for ms in [400, 2000, 20_000, 500_000] {
            let ledger = run(ms, |now| now % 1000);
            let many = ledger.moments.len();
            assert!((30..=2 * WANTED).contains(&many), "{many} moments of {ms} ms");
            let last = ledger.moments[many - 1].time_ns / 1_000_000;
            assert!(last + ms / 10 >= ms, "{last} of {ms}");
            assert!(ledger.moments.is_sorted_by_key(|moment| moment.time_ns));
        }
    }

    #[test]
    fn looks_take_a_twentieth_of_a_long_run_at_most() {
        let mut pace = Pace::default();
        let taken = (0..100_000_u64)
            .filter(|now| {
                // Always a new height.
                let is_due = pace.due(now * 1_000_000, now * now);
                if is_due {
                    pace.taken(now * 1_000_000, &moment(now * 1_000_000, 1, now * now));
                }
                is_due
            })
            .count();
        assert!((100..=100_000 / SHARE as usize).contains(&taken), "{taken}");
    }

    #[test]
    fn a_look_at_a_heap_without_blocks_does_not_put_off_the_first_that_sees_some() {
        let ms = |ms: u64| ms * 1_000_000;
        let mut pace = Pace::default();
        assert!(pace.due(ms(9), 0));
        // The machine is busy: the recorder did not run for long.
        pace.taken(ms(9), &Moment { took_ns: ms(80), ..moment(ms(9), 1 << 20, 0) });
        assert!(!pace.due(ms(90), 0));
        assert!(pace.due(ms(90), 100));
        pace.taken(ms(90), &Moment { took_ns: ms(80), ..moment(ms(90), 1 << 20, 100) });
        assert!(!pace.due(ms(170), 100));
        assert!(pace.due(ms(490), 100));
    }

    #[test]
    fn a_heap_that_has_doubled_is_looked_at_again_after_as_long_as_the_look_took() {
        let ms = |ms: u64| ms * 1_000_000;
        let mut pace = Pace::default();
        pace.taken(ms(5), &Moment { took_ns: ms(50), ..moment(ms(5), 1 << 20, 1000) });
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
            ledger.push(moment(at, rss, live));
        }
        let at = |found: Option<usize>| found.map(|at| ledger.moments[at].time_ns);
        assert_eq!((at(ledger.peak()), at(ledger.fullest())), (Some(77), Some(333)));
        assert_eq!(
            (ledger.moments[0].time_ns, ledger.moments.last().map(|last| last.time_ns)),
            (0, Some(9999))
        );
        assert!(ledger.moments.len() <= 2 * WANTED);
        assert_eq!(Ledger::default().peak(), None);
    }
}
