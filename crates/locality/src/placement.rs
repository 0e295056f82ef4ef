//! The cost of object placement to the program, separated from the cost of the manager's own references.
//!
//! A deterministic program makes the same references under every manager; only their addresses differ. So a second
//! simulation gets the program's references alone, and the misses of a run divide into three parts that sum to all:
//!
//! - those that the program has *alone*: the cost of the addresses of its objects, and nothing else. The kernel's
//!   accesses for its system calls belong to it: the address of a buffer decides those as well;
//! - *pollution*: additional ones, because the references of its allocator and collector share the cache. Negative if
//!   these load what the program needs next, as an allocator does that writes into the block which it returns;
//! - the manager's *own*.
//!
//! The difference of each part between two managers sums to the difference of all misses.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::split::Split;

/// Largest relative difference in the references of two runs that do the same work.
pub const SAME_WORK: f64 = 0.001;
/// Largest difference in references that is not other work: functions looked up at their first call, in more objects or
/// fewer.
const LOOKUP_REFERENCES: u64 = 25_000;

/// Misses of one run at one geometry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Misses {
    /// By accessor, all references in one cache.
    pub mixed: Split<u64>,
    /// With only the program simulated: its own references, and those of its system calls.
    pub alone: Split<u64>,
}

/// Misses by their cause, or a difference of two such values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Parts {
    /// The program's, from the addresses of its objects.
    pub placement: i64,
    /// The program's, from other content of the cache.
    pub pollution: i64,
    /// The allocator's own.
    pub allocator: i64,
    /// The collector's own, its sweep included.
    pub collector: i64,
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

impl Misses {
    /// The sum.
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
            collector: signed(self.mixed.collections()),
        }
    }
}

impl Parts {
    /// The excess of `self` over `baseline`.
    pub fn more_than(self, baseline: Parts) -> Parts {
        Parts {
            placement: self.placement - baseline.placement,
            pollution: self.pollution - baseline.pollution,
            allocator: self.allocator - baseline.allocator,
            collector: self.collector - baseline.collector,
        }
    }

    /// The sum.
    pub fn total(self) -> i64 {
        self.placement + self.pollution + self.allocator + self.collector
    }
}

/// Whether the program did other work in another run: the relative difference of its references, if it exceeds
/// [`SAME_WORK`] and [`LOOKUP_REFERENCES`].
pub fn other_work(baseline: u64, other: u64) -> Option<f64> {
    let most = baseline.max(other).max(1) as f64;
    let apart = (other as f64 - baseline as f64) / most;
    (apart.abs() > SAME_WORK && baseline.abs_diff(other) > LOOKUP_REFERENCES).then_some(apart)
}

#[cfg(test)]
mod tests {
    use heaptoll_reftrace::{Owner, Reference};
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
    fn each_cause_is_distinguished() {
        let machine: Machine = "512/8".parse().expect("a machine");
        let (program, allocator) = (Owner::Program, Owner::Allocator);
        // A puts eight objects on eight lines, which fit; its allocator touches nothing.
        let a: Vec<(Owner, u64)> = (0..4).flat_map(|_| (0..8).map(|line| (program, line))).collect();
        // B puts them on 16 lines (placement).
        let b: Vec<(Owner, u64)> = (0..2).flat_map(|_| (0..16).map(|line| (program, line))).collect();
        // C is like A, but its allocator walks eight other lines in each round (pollution, own).
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
        // An allocator that touches first what the program touches next takes the program's misses.
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
