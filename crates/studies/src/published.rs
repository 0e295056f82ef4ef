//! What Sareen and Blackburn (2022) report of smallest heaps, of collections' frequency, of what is near a collection
//! and of delays, for comparison with what is measured here: `studies/published`, which becomes part of the program, so
//! that an installed heaptoll has it too.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const DELAY: &str = include_str!("../../../studies/published/sareen2022-delay.csv");
const FREQUENCY: &str = include_str!("../../../studies/published/sareen2022-frequency.csv");
const MINHEAP: &str = include_str!("../../../studies/published/sareen2022-minheap.csv");
const PROXIMITY: &str = include_str!("../../../studies/published/sareen2022-proximity.csv");

/// What a published overhead is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Time over that with a quarantine of one byte.
    Time,
    /// Maximum resident memory over that with a quarantine of one byte.
    Space,
    /// Time with a quarantine of one byte over that without a quarantine.
    LayerTime,
}

/// A published overhead of a quarantine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Overhead {
    /// `SPEC CPU2006` or `mimalloc-bench`.
    pub suite: String,
    /// Program; `None` for the suite's mean.
    pub program: Option<String>,
    /// The manager, by the paper's name.
    pub manager: String,
    /// Bytes of the quarantine.
    pub size_bytes: u64,
    /// What of.
    pub quantity: Quantity,
    /// Percent.
    pub percent: f64,
}

impl Overhead {
    /// As a ratio.
    pub fn ratio(&self) -> f64 {
        1.0 + self.percent / 100.0
    }

    /// Whether a manager of ours is, in some version, the one that this was measured with.
    pub fn is_of(&self, manager: &str) -> bool {
        is_papers(&self.manager, manager)
    }
}

/// Whether a manager of ours is some version of the paper's.
fn is_papers(papers: &str, ours: &str) -> bool {
    let base = ours.split(',').next().unwrap_or(ours);
    let name =
        base.strip_prefix("debian-").unwrap_or(base).trim_end_matches(|last: char| last.is_ascii_digit());
    // gperftools is what became of the first TCMalloc; today's is another program.
    name.eq_ignore_ascii_case(papers)
}

fn overhead(line: &str) -> Option<Overhead> {
    let [suite, program, manager, size, quantity, percent] = line.split(',').collect::<Vec<_>>()[..] else {
        return None;
    };
    Some(Overhead {
        suite: suite.to_owned(),
        program: (program != "mean").then(|| program.to_owned()),
        manager: manager.to_owned(),
        size_bytes: size.parse().ok()?,
        quantity: match quantity {
            "time" => Quantity::Time,
            "space" => Quantity::Space,
            "layer_time" => Quantity::LayerTime,
            _ => return None,
        },
        percent: percent.parse().ok()?,
    })
}

/// Every published overhead of a quarantine.
pub fn overheads() -> impl Iterator<Item = Overhead> {
    DELAY.lines().skip(1).filter_map(overhead)
}

/// How many programs of the paper gained from a longer period.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gain {
    /// The manager, by the paper's name.
    pub manager: String,
    /// Period, bytes allocated.
    pub every_bytes: u64,
    /// The period it is compared with.
    pub over_every_bytes: u64,
    /// A gain counts beyond this many percent.
    pub beyond_percent: f64,
    /// Programs that gained.
    pub programs: u32,
}

/// What the paper reports of periods.
pub fn gains() -> impl Iterator<Item = Gain> {
    FREQUENCY.lines().skip(1).filter_map(|line| {
        let [_, manager, every, over, beyond, programs] = line.split(',').collect::<Vec<_>>()[..] else {
            return None;
        };
        Some(Gain {
            manager: manager.to_owned(),
            every_bytes: every.parse().ok()?,
            over_every_bytes: over.parse().ok()?,
            beyond_percent: beyond.parse().ok()?,
            programs: programs.parse().ok()?,
        })
    })
}

/// How much more heap than the footprint of explicit management a collector needs: geometric means over DaCapo.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SmallestHeap {
    /// The collector, by the paper's name.
    pub collector: String,
    /// The allocator under the mark-sweep that stands for explicit management.
    pub allocator: String,
    /// Its period, bytes allocated.
    pub every_bytes: u64,
    /// Percent over the footprint.
    pub percent: f64,
}

impl SmallestHeap {
    /// As a ratio.
    pub fn ratio(&self) -> f64 {
        1.0 + self.percent / 100.0
    }

    /// Whether an allocator of ours is, in some version, the one of the baseline.
    pub fn is_over(&self, allocator: &str) -> bool {
        is_papers(&self.allocator, allocator)
    }
}

/// What the paper reports of smallest heaps as numbers (the copying collectors are in figures only).
pub fn smallest_heaps() -> impl Iterator<Item = SmallestHeap> {
    MINHEAP.lines().skip(1).filter_map(|line| {
        let [collector, allocator, every, percent] = line.split(',').collect::<Vec<_>>()[..] else {
            return None;
        };
        let (every_bytes, percent) = (every.parse().ok()?, percent.parse().ok()?);
        let (collector, allocator) = (collector.to_owned(), allocator.to_owned());
        Some(SmallestHeap { collector, allocator, every_bytes, percent })
    })
}

/// By how much requests differ for their distance to a collection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Nearness {
    /// Under which collectors.
    pub collectors: String,
    /// On which of the paper's machines.
    pub machine: String,
    /// Collections a run; `None` where the text states it of all.
    pub collections: Option<u64>,
    /// Which requests: `first 10 %`, or `any`.
    pub requests: String,
    /// Longer by this many percent, the least.
    pub low_percent: f64,
    /// The most.
    pub high_percent: f64,
    /// How long after a collection, µs, where the text states it.
    pub lasts_us: Option<u64>,
}

/// What the paper reports of requests near a collection.
pub fn nearness() -> impl Iterator<Item = Nearness> {
    PROXIMITY.lines().skip(1).filter_map(|line| {
        let [collectors, machine, collections, requests, low, high, lasts] =
            line.split(',').collect::<Vec<_>>()[..]
        else {
            return None;
        };
        Some(Nearness {
            collectors: collectors.to_owned(),
            machine: machine.to_owned(),
            collections: collections.parse().ok(),
            requests: requests.to_owned(),
            low_percent: low.parse().ok()?,
            high_percent: high.parse().ok()?,
            lasts_us: lasts.parse().ok(),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_tables_is_read() {
        assert_eq!(overheads().count(), DELAY.lines().count() - 1);
        assert_eq!(gains().count(), FREQUENCY.lines().count() - 1);
        assert_eq!(smallest_heaps().count(), MINHEAP.lines().count() - 1);
        assert_eq!(nearness().count(), PROXIMITY.lines().count() - 1);
    }

    #[test]
    fn a_collector_needs_more_over_the_allocator_that_needs_less() {
        let of = |allocator: &str| {
            smallest_heaps().find(|one| one.is_over(allocator)).map(|one| one.ratio()).expect(allocator)
        };
        assert!(of("tcmalloc") > of("mimalloc3"));
        assert!(nearness().all(|one| one.low_percent < one.high_percent));
    }

    #[test]
    fn the_paper_found_tcmalloc_the_most_sensitive() {
        let mean = |manager: &str| {
            overheads()
                .find(|one| {
                    one.manager == manager
                        && one.program.is_none()
                        && one.suite == "mimalloc-bench"
                        && one.quantity == Quantity::Time
                })
                .map(|one| one.percent)
        };
        assert!(mean("TCMalloc") > mean("snmalloc") && mean("snmalloc") > mean("mimalloc"));
    }

    #[test]
    fn versions_of_a_manager_are_the_papers() {
        let one = |name: &str| overheads().find(|one| one.manager == name).expect("it is there");
        assert!(one("mimalloc").is_of("mimalloc3") && one("mimalloc").is_of("debian-mimalloc2"));
        assert!(one("TCMalloc").is_of("tcmalloc") && !one("TCMalloc").is_of("debian-gperftools"));
        assert!(!one("snmalloc").is_of("mimalloc3"));
    }
}
