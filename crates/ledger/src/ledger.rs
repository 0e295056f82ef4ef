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

/// Share of the time that looking may take.
const SHARE: u64 = 20;

/// Says when the next look is due: often at first and at new heights, and so that all looks together take at most a
/// twentieth of the time.
#[derive(Debug, Clone)]
pub struct Pace {
    interval_ns: u64,
    taken: usize,
    last_ns: u64,
    took_ns: u64,
    most_live: u64,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace { interval_ns: 5_000_000, taken: 0, last_ns: 0, took_ns: 0, most_live: 0 }
    }
}

impl Pace {
    /// Whether a look is due at `time_ns` (from the beginning) with so many live bytes. Cheap: ask at every tick.
    pub fn due(&self, time_ns: u64, live_bytes: u64) -> bool {
        let since = time_ns.saturating_sub(self.last_ns);
        if since < self.took_ns.saturating_mul(SHARE) {
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
        self.taken += 1;
        if self.taken >= WANTED {
            self.taken = 0;
            self.interval_ns *= 2;
        }
    }
}
