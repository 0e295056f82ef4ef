//! What the program's accesses miss where a collector puts its objects, and requests by their place between two
//! collections.
//!
//! Ratios are of one simulated run, which has no chance in it: the pairs of an interval are tenths of the run, each of as
//! many collections, so that what a request does besides is seen as chance.

use crate::replay_graph::mmtk::{ByAccessor, Caches, Replayed, Simulated, SimulatedRequest};
use heaptoll_locality::machine::Machine;
use heaptoll_statistics::{ALPHA, Interval};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::proximity::{Distances, Sample, portions, series};

/// Parts of a run that are compared with each other.
const PARTS: u32 = 10;
/// Parts of a cycle, in which the cost of an access is kept as a whole number.
const FINE: u64 = 1000;

/// What is simulated.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The caches.
    pub machine: Machine,
    /// Where they are from, in words.
    pub origin: &'static str,
    /// Collections on request over the run; none: only full heaps are collected.
    pub collections: Option<u32>,
}

impl Question {
    /// Bytes that are allocated between two collections on request, of so many in all; 0 where there are none.
    pub fn every_bytes(&self, all_bytes: u64) -> u64 {
        self.collections.map_or(0, |times| all_bytes / u64::from(times + 1) + 1)
    }
}

/// The simulated machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimulatedMachine {
    /// Its caches.
    pub machine: Machine,
    /// Where they are from.
    pub origin: String,
    /// Collections on request over the run, as requested.
    pub collections: Option<u32>,
}

/// What a collector's placement makes the program's accesses miss.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Misses {
    /// Loads and stores of the program.
    pub accesses: u64,
    /// Collections in the simulated run.
    pub collections: u64,
    /// The caches hold what collections touched.
    pub touched: Caches,
    /// Cycles of the program's accesses then: one each, and what they wait.
    pub touched_cycles: u64,
    /// The caches are empty after each collection.
    pub emptied: Caches,
    /// Cycles of the program's accesses then.
    pub emptied_cycles: u64,
    /// Requests.
    pub requests: Requests,
}

/// Requests of the simulated run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Requests {
    /// All that ended.
    pub all: u64,
    /// Those with a collection within: in no portion.
    pub interrupted: u64,
    /// Those that began before the first collection: in no portion.
    pub before_first: u64,
    /// Portions of those between two collections, by rank.
    pub portions: Vec<Portion>,
}

/// A portion of the requests between two collections: cycles per access over those of the middle, 20 to 80 %.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Portion {
    /// Which.
    pub name: String,
    /// Accesses from the collection to its requests, the median.
    pub distance_accesses: u64,
    /// Where the caches hold what collections touched.
    pub touched: Option<Interval>,
    /// Where the caches are empty after each collection.
    pub emptied: Option<Interval>,
}

/// The figures of a simulated run.
pub fn misses(run: &Replayed, machine: &Machine, seed: u64) -> Option<Misses> {
    let Simulated { touched, emptied, requests } = run.simulated.as_ref()?;
    Some(Misses {
        accesses: run.accesses,
        collections: run.collections.full + run.collections.nursery,
        touched: touched.clone(),
        touched_cycles: cycles(touched, machine),
        emptied: emptied.clone(),
        emptied_cycles: cycles(emptied, machine),
        requests: of_requests(requests, seed),
    })
}

fn cycles(caches: &Caches, machine: &Machine) -> u64 {
    let program = |counts: &ByAccessor| counts.program;
    let misses: Vec<u64> = caches.misses.iter().map(program).collect();
    caches.references.program + machine.stall_cycles(&misses) as u64
}

fn of_requests(requests: &[SimulatedRequest], seed: u64) -> Requests {
    let [touched, emptied] = [0, 1].map(|at| series(&parts(requests, at), u64::MAX));
    let shown = portions(&[&touched, &emptied], ALPHA, seed);
    let both = match &shown[..] {
        [touched, emptied] => touched.iter().zip(emptied).collect(),
        _ => Vec::new(),
    };
    let portion = |(touched, emptied): (&crate::proximity::Portion, &crate::proximity::Portion)| Portion {
        name: touched.name.clone(),
        distance_accesses: touched.distance_ns,
        touched: touched.mean.map(Interval::from),
        emptied: emptied.mean.map(Interval::from),
    };
    let count = |is: fn(&SimulatedRequest) -> bool| requests.iter().filter(|one| is(one)).count() as u64;
    Requests {
        all: requests.len() as u64,
        interrupted: count(|one| one.interrupted),
        before_first: count(|one| !one.interrupted && one.after == 0),
        portions: both.into_iter().map(portion).collect(),
    }
}

/// Requests by the part of the run, in the form in which those of timed runs are: in place of times they have cycles per
/// access, and accesses in place of distances in time.
fn parts(requests: &[SimulatedRequest], which: usize) -> Vec<Distances> {
    let collections = requests.iter().map(|one| one.after).max().unwrap_or(0);
    let mut parts = vec![Distances::default(); PARTS as usize];
    for one in requests.iter().filter(|one| one.after > 0 && one.accesses > 0 && !one.interrupted) {
        // Of the last cycle the end is not known.
        let gap_ns = (one.after < collections).then_some(1);
        let part = u64::from(one.after - 1) * u64::from(PARTS) / u64::from(collections);
        parts[part as usize].whole.push(Sample {
            distance_ns: one.since,
            time_ns: one.cycles[which].saturating_mul(FINE) / one.accesses,
            cpu_ns: None,
            gap_ns,
            run: 0,
            cycle: one.after,
        });
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(cost: impl Fn(u64) -> [u64; 2]) -> Vec<SimulatedRequest> {
        let request = |after: u32, place: u64| SimulatedRequest {
            after,
            interrupted: place == 99,
            since: 10 * place,
            accesses: 10,
            cycles: cost(place).map(|cycles| 10 * cycles),
        };
        (0..=100)
            .flat_map(|after| (0..100).map(move |place| (after, place)))
            .map(|(a, p)| request(a, p))
            .collect()
    }

    #[test]
    fn the_first_requests_after_collections_are_compared_with_those_in_the_middle() {
        let found = of_requests(&requests(|place| if place < 10 { [2, 6] } else { [2, 3] }), 1);
        assert_eq!((found.all, found.interrupted, found.before_first), (10_100, 101, 99));
        let portion = |name: &str| found.portions.iter().find(|one| one.name == name).expect(name);
        let ratio = |interval: Option<Interval>| interval.map(|one| (one.ratio * 100.0).round());
        let near = portion("first 10 %");
        assert_eq!((ratio(near.touched), ratio(near.emptied)), (Some(100.0), Some(200.0)));
        assert!(near.emptied.is_some_and(|one| one.differs && one.pairs == PARTS));
        assert_eq!(ratio(portion("last 20 %").emptied), Some(100.0));
        assert!((40..=50).contains(&near.distance_accesses), "{near:?}");
    }

    #[test]
    fn without_collections_there_are_no_portions_and_nothing_fails() {
        let none = of_requests(&[], 1);
        assert_eq!((none.all, none.portions.len()), (0, 0));
        let before: Vec<SimulatedRequest> =
            requests(|_| [1, 1]).into_iter().filter(|one| one.after == 0).collect();
        let found = of_requests(&before, 1);
        assert_eq!((found.all, found.portions.len()), (100, 0));
    }

    #[test]
    fn waits_are_those_of_the_level_that_serves() {
        let machine: Machine = "32K/8,1M/16".parse().expect("a machine");
        let of = |program| ByAccessor { program, ..ByAccessor::default() };
        let caches = Caches { references: of(100), misses: vec![of(10), of(4)], tlb_misses: vec![] };
        assert_eq!(cycles(&caches, &machine), 100 + 6 * 14 + 4 * 200);
    }

    #[test]
    fn collections_on_request_are_as_many_as_requested() {
        let question = Question { machine: Machine::usual(), origin: "", collections: Some(9) };
        assert_eq!(question.every_bytes(10_000), 1001);
        assert_eq!(Question { collections: None, ..question }.every_bytes(10_000), 0);
    }
}
