//! Sums over root points. Each point has the weight of the bytes allocated since the one before it.

use super::figures::{
    Cause, CauseFigures, ConservatismFigures, InteriorFigures, InteriorRule, Level, PointFigures, UntilFree,
};
use super::point::{Kept, Point};

/// One amount, over the points so far.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    /// Bytes times weight.
    space: u128,
    peak_bytes: u64,
    peak_clock_bytes: u64,
    peak_live_bytes: u64,
}

impl Sum {
    fn add(&mut self, bytes: u64, now: Now) {
        self.space = self.space.saturating_add(u128::from(bytes) * u128::from(now.weight));
        if bytes > self.peak_bytes {
            (self.peak_bytes, self.peak_clock_bytes) = (bytes, now.clock_bytes);
            self.peak_live_bytes = now.live;
        }
    }

    fn level(&self, weight: u64, live: &Sum) -> Level {
        Level {
            mean_bytes: quotient(self.space, weight.into()),
            of_live: quotient(self.space, live.space),
            peak_bytes: self.peak_bytes,
            peak_clock_bytes: self.peak_clock_bytes,
            peak_live_bytes: self.peak_live_bytes,
        }
    }
}

/// 0 where nothing is divided by nothing.
fn quotient(of: u128, by: u128) -> f64 {
    if by == 0 { 0.0 } else { of as f64 / by as f64 }
}

#[derive(Debug, Clone, Copy)]
struct Now {
    weight: u64,
    clock_bytes: u64,
    live: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct KeptSum {
    kept: Sum,
    again: Sum,
    freed_later: u128,
    until_free: u128,
}

impl KeptSum {
    fn add(&mut self, kept: &Kept, now: Now) {
        self.kept.add(kept.bytes, now);
        self.again.add(kept.again, now);
        let freed_later = u128::from(kept.freed_later) * u128::from(now.weight);
        self.freed_later = self.freed_later.saturating_add(freed_later);
        self.until_free = self.until_free.saturating_add(kept.until_free.saturating_mul(now.weight.into()));
    }

    fn until_free(&self) -> UntilFree {
        UntilFree {
            mean_bytes: (self.freed_later > 0).then(|| quotient(self.until_free, self.freed_later)),
            never_freed: quotient(self.kept.space.saturating_sub(self.freed_later), self.kept.space),
        }
    }
}

/// All amounts.
#[derive(Debug, Default)]
pub(super) struct Sums {
    weight: u64,
    clock_bytes: u64,
    live: Sum,
    used: Sum,
    required: Sum,
    reachable: Sum,
    hidden: Sum,
    at_least: Sum,
    at_most: Sum,
    kept: [KeptSum; Cause::ALL.len()],
    interior_unused: [Sum; InteriorRule::ALL.len()],
    interior_used: [Sum; InteriorRule::ALL.len()],
    series: Vec<PointFigures>,
}

impl Sums {
    /// The clock of the last point.
    pub(super) fn clock_bytes(&self) -> u64 {
        self.clock_bytes
    }

    /// Adds a point.
    pub(super) fn add(&mut self, point: &Point, clock_bytes: u64) {
        let weight = clock_bytes.saturating_sub(self.clock_bytes);
        let now = Now { weight, clock_bytes, live: point.live };
        self.clock_bytes = self.clock_bytes.max(clock_bytes);
        self.weight += weight;
        let (at_least, at_most) = (point.at_least(), point.at_most());
        for (sum, bytes) in [
            (&mut self.live, point.live),
            (&mut self.used, point.used),
            (&mut self.required, point.required),
            (&mut self.reachable, point.reachable),
            (&mut self.hidden, point.hidden),
            (&mut self.at_least, at_least),
            (&mut self.at_most, at_most),
        ] {
            sum.add(bytes, now);
        }
        self.kept.iter_mut().zip(&point.kept).for_each(|(sum, kept)| sum.add(kept, now));
        for (at, interior) in point.interior.iter().enumerate() {
            self.interior_unused[at].add(interior.unused, now);
            self.interior_used[at].add(interior.used, now);
        }
        self.series.push(PointFigures {
            clock_bytes,
            live_bytes: point.live,
            used_bytes: point.used,
            required_bytes: point.required,
            reachable_bytes: point.reachable,
            at_least_bytes: at_least,
            at_most_bytes: at_most,
        });
    }

    /// What they sum up to.
    pub(super) fn figures(self) -> ConservatismFigures {
        let level = |sum: &Sum| sum.level(self.weight, &self.live);
        let cause = |(cause, sum): (Cause, &KeptSum)| CauseFigures {
            cause,
            kept: level(&sum.kept),
            again: level(&sum.again),
            until_free: sum.until_free(),
        };
        let interior = |(at, rule): (usize, InteriorRule)| InteriorFigures {
            rule,
            unused: level(&self.interior_unused[at]),
            used: level(&self.interior_used[at]),
        };
        ConservatismFigures {
            live: level(&self.live),
            used: level(&self.used),
            required: level(&self.required),
            reachable: level(&self.reachable),
            hidden: level(&self.hidden),
            at_least: level(&self.at_least),
            at_most: level(&self.at_most),
            causes: Cause::ALL.into_iter().zip(&self.kept).map(cause).collect(),
            interior: InteriorRule::ALL.into_iter().enumerate().map(interior).collect(),
            points: self.series,
            ..ConservatismFigures::default()
        }
    }
}
