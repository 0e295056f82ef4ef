//! What the program suffers from where its objects were put, apart from what the manager's own references cost.
//!
//! A deterministic program makes the same references under every manager; only their addresses differ. So a second
//! simulation hears the program's references alone, and the misses of a run fall into three parts that sum to all:
//!
//! - those the program has *alone*: what the places of its objects cost, and nothing else. What the kernel touches for
//!   its system calls belongs to it: where a buffer lies decides that as well;
//! - *pollution*: those it has beside, because its allocator's and collector's references share the cache. Negative where
//!   they bring in what the program needs next, as an allocator does that writes into the block it gives;
//! - the manager's *own*.
//!
//! Between two managers each part has a difference, and these sum to the difference of all misses.

use serde::Serialize;

use crate::simulation::Split;

/// Programs whose references differ by more than this do not do the same work, relative.
pub const SAME_WORK: f64 = 0.001;
/// References that are no other work: functions looked up at their first call, in more objects or fewer.
const LOOKED_UP: u64 = 25_000;

/// Misses of one run at one geometry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Misses {
    /// By maker, all references in one cache.
    pub mixed: Split<u64>,
    /// When only the program is heard: its own references, and those of its system calls.
    pub alone: Split<u64>,
}

/// Misses by their cause, or a difference of two such.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Parts {
    /// The program's for the places of its objects.
    pub placement: i64,
    /// The program's for what else is in the cache.
    pub pollution: i64,
    /// The allocator's own.
    pub allocator: i64,
    /// The collector's own.
    pub collector: i64,
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

impl Misses {
    /// All.
    pub fn total(&self) -> u64 {
        self.mixed.total()
    }

    /// By cause; sums to all.
    pub fn parts(&self) -> Parts {
        let program = signed(self.mixed.program + self.mixed.system);
        let alone = signed(self.alone.total());
        Parts {
            placement: alone,
            pollution: program - alone,
            allocator: signed(self.mixed.allocator),
            collector: signed(self.mixed.collector),
        }
    }
}

impl Parts {
    /// What the manager `self` has more than `baseline`.
    pub fn more_than(self, baseline: Parts) -> Parts {
        Parts {
            placement: self.placement - baseline.placement,
            pollution: self.pollution - baseline.pollution,
            allocator: self.allocator - baseline.allocator,
            collector: self.collector - baseline.collector,
        }
    }

    /// All together.
    pub fn total(self) -> i64 {
        self.placement + self.pollution + self.allocator + self.collector
    }
}

/// Whether two runs made the program do the same: how far its references are apart, relative, when that is more than
/// [`SAME_WORK`] and [`LOOKED_UP`].
pub fn other_work(baseline: u64, other: u64) -> Option<f64> {
    let most = baseline.max(other).max(1) as f64;
    let apart = (other as f64 - baseline as f64) / most;
    (apart.abs() > SAME_WORK && baseline.abs_diff(other) > LOOKED_UP).then_some(apart)
}

#[cfg(test)]
mod tests {
    use heaptoll_reference::{Owner, Reference};
    use proptest::prelude::*;

    use super::*;
    use crate::hierarchy::{Hierarchy, all};
    use crate::machine::Machine;

    /// Misses of the first level, in the mix and alone.
    fn simulated(machine: &Machine, stream: &[(Owner, u64)]) -> Misses {
        let (mut mixed, mut alone) = (Hierarchy::new(machine), Hierarchy::new(machine));
        for (owner, line) in stream {
            let reference = [Reference::new(line * 64, 8, false)];
            mixed.references(*owner, &reference);
            if *owner == Owner::Program {
                alone.references(*owner, &reference);
            }
        }
        Misses { mixed: all(&mixed.misses()[0]), alone: all(&alone.misses()[0]) }
    }

    #[test]
    fn each_cause_is_told_from_the_others() {
        let machine: Machine = "512/8".parse().expect("a machine");
        let (program, allocator) = (Owner::Program, Owner::Allocator);
        // A puts eight objects on eight lines, which fit; its allocator touches none but one line of its own.
        let a: Vec<(Owner, u64)> = (0..4).flat_map(|_| (0..8).map(|line| (program, line))).collect();
        // B puts them on 16 lines (placement),
        let b: Vec<(Owner, u64)> = (0..2).flat_map(|_| (0..16).map(|line| (program, line))).collect();
        // C as A, but its allocator walks over eight others in each round (pollution, own).
        let rounds = |_| {
            let walk = (100..108).map(move |line| (allocator, line));
            (0..8).map(move |line| (program, line)).chain(walk)
        };
        let c: Vec<(Owner, u64)> = (0..4).flat_map(rounds).collect();
        let of = |stream: &[(Owner, u64)]| simulated(&machine, stream).parts();
        assert_eq!(of(&b).more_than(of(&a)), Parts { placement: 24, ..Parts::default() });
        assert_eq!(
            of(&c).more_than(of(&a)),
            Parts { placement: 0, pollution: 24, allocator: 32, collector: 0 }
        );
        // An allocator that touches first what the program touches next takes its misses.
        let d: Vec<(Owner, u64)> = (0..8).flat_map(|line| [(allocator, line), (program, line)]).collect();
        assert_eq!(of(&d), Parts { placement: 8, pollution: -8, allocator: 8, collector: 0 });
    }

    #[test]
    fn other_work_is_seen() {
        assert_eq!(other_work(100_000_000, 100_100_000), None);
        assert_eq!(other_work(150_000, 160_000), None, "a few functions looked up");
        assert_eq!(other_work(0, 0), None);
        assert!(other_work(100_000_000, 100_200_000).is_some_and(|apart| apart > 0.0015));
        assert!(other_work(1_000_000, 900_000).is_some_and(|apart| (apart + 0.1).abs() < 1e-9));
    }

    fn stream() -> impl Strategy<Value = Vec<(Owner, u64)>> {
        prop::collection::vec((prop::sample::select(Owner::ALL.to_vec()), 0..60u64), 0..800)
    }

    proptest! {
        #[test]
        fn the_parts_sum_to_the_whole(a in stream(), b in stream()) {
            let machine: Machine = "1K/2".parse().expect("a machine");
            let (a, b) = (simulated(&machine, &a), simulated(&machine, &b));
            prop_assert_eq!(a.parts().total(), a.total() as i64);
            let difference = b.parts().more_than(a.parts());
            prop_assert_eq!(difference.total(), b.total() as i64 - a.total() as i64);
        }
    }
}
