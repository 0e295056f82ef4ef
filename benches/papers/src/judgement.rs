//! Whether a manager's CPU time of cfrac is within the limit, and where it is not, whether its design is the reason: by
//! what was measured of that design, not by its name alone.

use heaptoll_statistics::Interval;

use crate::stand_ins::Design;

/// CPU time over glibc's that a manager may reach, single-threaded and with the lock taken.
pub const LIMIT: f64 = 1.25;
/// From so many blocks examined a malloc on, a search is long. One that ends at the first block takes no more than a
/// free list's head.
const LONG_SEARCH: f64 = 2.0;
/// From so many times the baseline's page faults on, memory is not used again.
const MANY_FAULTS: f64 = 5.0;

/// Measurements of a manager's design.
#[derive(Debug, Clone, Copy)]
pub struct Evidence {
    /// Its design.
    pub design: Design,
    /// Blocks examined a malloc.
    pub steps_per_malloc: Option<f64>,
    /// Page faults of a run, and the baseline's.
    pub faults: Option<(f64, f64)>,
}

impl Evidence {
    /// The judgement of a ratio above the limit.
    fn reason(&self) -> Judgement {
        match self.design {
            Design::Searches(_) if self.steps_per_malloc.is_some_and(|steps| steps >= LONG_SEARCH) => {
                Judgement::Search
            }
            Design::NeverReuses if self.faults.is_some_and(|(own, base)| own > MANY_FAULTS * base) => {
                Judgement::NoReuse
            }
            _ => Judgement::Miss,
        }
    }
}

/// How a ratio compares with the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judgement {
    /// The whole interval is within it.
    Pass,
    /// The ratio is within, the interval's end is not.
    Likely,
    /// Above, in a manager that is made to search, whose search was measured and is long.
    Search,
    /// Above, in a manager that is made never to use memory again, whose page faults were measured and are many.
    NoReuse,
    /// Above with the lock taken, within the limit without it, and for no such reason.
    MissByLock,
    /// Above, for another reason or none that was measured.
    Miss,
    /// Nothing to judge.
    NoFigure,
}

impl Judgement {
    /// In the order of the verdict.
    pub const ALL: [Judgement; 7] = [
        Judgement::Pass,
        Judgement::Likely,
        Judgement::Search,
        Judgement::NoReuse,
        Judgement::MissByLock,
        Judgement::Miss,
        Judgement::NoFigure,
    ];

    fn of(ratio: Option<Interval>, evidence: &Evidence) -> Judgement {
        match ratio {
            None => Judgement::NoFigure,
            Some(ratio) if ratio.high <= LIMIT => Judgement::Pass,
            Some(ratio) if ratio.ratio <= LIMIT => Judgement::Likely,
            Some(_) => evidence.reason(),
        }
    }

    /// Of the ratio single-threaded and the one with the lock taken, each with what was measured of it.
    pub fn of_both(ratios: [Option<Interval>; 2], evidence: [Evidence; 2]) -> [Judgement; 2] {
        let single = Judgement::of(ratios[0], &evidence[0]);
        let locked = Judgement::of(ratios[1], &evidence[1]);
        let by_lock = single.is_within() && locked == Judgement::Miss;
        [single, if by_lock { Judgement::MissByLock } else { locked }]
    }

    /// Within the limit.
    pub fn is_within(self) -> bool {
        matches!(self, Judgement::Pass | Judgement::Likely)
    }

    /// Above it for the reason that the manager was made for.
    pub fn is_by_design(self) -> bool {
        matches!(self, Judgement::Search | Judgement::NoReuse)
    }

    /// The text for tables.
    pub fn label(self) -> &'static str {
        match self {
            Judgement::Pass => "pass",
            Judgement::Likely => "pass (interval reaches above)",
            Judgement::Search => "above, by design: it searches",
            Judgement::NoReuse => "above, by design: it never uses memory again",
            Judgement::MissByLock => "miss, by the lock alone",
            Judgement::Miss => "miss",
            Judgement::NoFigure => "no figure",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(ratio: f64) -> Option<Interval> {
        Some(Interval { ratio, low: ratio - 0.05, high: ratio + 0.05, differs: true, pairs: 15 })
    }

    fn evidence(design: Design, steps: Option<f64>, faults: Option<(f64, f64)>) -> Evidence {
        Evidence { design, steps_per_malloc: steps, faults }
    }

    const SEARCHES: Design = Design::Searches("it examines blocks");

    #[test]
    fn the_whole_interval_must_be_within_the_limit() {
        let (plain, long) = (evidence(Design::Lists, None, None), evidence(SEARCHES, Some(9.0), None));
        for (ratio, evidence, wanted) in [
            (interval(1.0), plain, Judgement::Pass),
            (interval(1.2), plain, Judgement::Pass),
            (interval(1.22), plain, Judgement::Likely),
            (interval(1.26), plain, Judgement::Miss),
            (interval(1.26), long, Judgement::Search),
            (interval(1.1), long, Judgement::Pass),
            (None, long, Judgement::NoFigure),
        ] {
            assert_eq!(Judgement::of(ratio, &evidence), wanted, "{ratio:?}");
        }
    }

    #[test]
    fn a_design_excuses_only_by_what_was_measured_of_it() {
        for (design, steps, faults, wanted) in [
            (SEARCHES, Some(2.9), None, Judgement::Search),
            (SEARCHES, Some(1.2), None, Judgement::Miss),
            (SEARCHES, None, Some((9e5, 100.0)), Judgement::Miss),
            (Design::NeverReuses, None, Some((9e5, 100.0)), Judgement::NoReuse),
            (Design::NeverReuses, None, Some((120.0, 100.0)), Judgement::Miss),
            (Design::NeverReuses, Some(9.0), None, Judgement::Miss),
            (Design::Lists, Some(9.0), Some((9e5, 100.0)), Judgement::Miss),
        ] {
            let evidence = evidence(design, steps, faults);
            assert_eq!(Judgement::of(interval(1.4), &evidence), wanted, "{evidence:?}");
        }
    }

    #[test]
    fn the_lock_alone_is_no_excuse_but_a_search_is_one_under_the_lock_too() {
        let both = |single, locked, evidence| {
            Judgement::of_both([interval(single), interval(locked)], [evidence; 2])
        };
        let (plain, long) = (evidence(Design::Lists, None, None), evidence(SEARCHES, Some(2.9), None));
        assert_eq!(both(1.1, 1.4, plain), [Judgement::Pass, Judgement::MissByLock]);
        assert_eq!(both(1.1, 1.4, long), [Judgement::Pass, Judgement::Search]);
        assert_eq!(both(1.4, 1.4, plain), [Judgement::Miss; 2]);
        assert_eq!(both(1.4, 1.1, plain), [Judgement::Miss, Judgement::Pass]);
        let [single, locked] = both(1.1, 1.4, plain);
        assert!(single.is_within() && !locked.is_within() && !locked.is_by_design());
    }
}
