//! The figures of `heaptoll lab proximity`, as in its JSON.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::groups::Grouped;
use super::portions::{Portion, Ratio, Series};
use super::published_nearness::{Nearness, nearness};

/// Everything.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ProximityFigures {
    /// False when it was interrupted.
    pub complete: bool,
    /// Requested runs of each scale.
    pub runs: u32,
    /// Seed of the order.
    pub seed: u64,
    /// Programs, in the requested order.
    pub programs: Vec<Program>,
    /// The paper's figures, with ours.
    pub published: Vec<PublishedPair>,
}

/// What the names of Java's collectors begin with: they all allocate by bumping a pointer, and only the paper's that do
/// so as well are set against them.
const JAVA: &str = "jvm-";
/// These, in the paper's table.
const BUMP: &str = "bump allocators";

/// A published change with one of ours.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct PublishedPair {
    /// The paper's.
    #[serde(flatten)]
    pub published: Nearness,
    /// Program here.
    pub program: String,
    /// Collector here.
    pub stack: String,
    /// Its number of collections and its range of distances.
    pub ours_of: String,
    /// Mean time over the middle's.
    pub ours: Ratio,
    /// Mean processor time over the middle's, where it was recorded.
    #[serde(default)]
    pub ours_cpu: Option<Ratio>,
}

impl ProximityFigures {
    /// Pairs the paper's changes with ours: where it names the requests, those; where it gives the largest change, the
    /// largest here that is claimed.
    pub fn compare(&mut self) {
        let mut all = Vec::new();
        for published in nearness() {
            for program in &self.programs {
                let comparable =
                    |stack: &&Stack| !stack.stack.starts_with(JAVA) || published.collectors == BUMP;
                let of = program.stacks.iter().filter(comparable).filter_map(|stack| {
                    let (ours_of, ours, ours_cpu) = stack.published_match(&published)?;
                    let (program, stack) = (program.program.clone(), stack.stack.clone());
                    Some(PublishedPair {
                        published: published.clone(),
                        program,
                        stack,
                        ours_of,
                        ours,
                        ours_cpu,
                    })
                });
                all.extend(of);
            }
        }
        self.published = all;
    }
}

impl Stack {
    fn published_match(&self, published: &Nearness) -> Option<(String, Ratio, Option<Ratio>)> {
        let means = self
            .scales
            .iter()
            .filter(|scale| published.collections.is_none_or(|aimed_at| aimed_at == scale.aimed_at))
            .flat_map(|scale| scale.stretches.iter().map(move |range| (scale, range)))
            .filter_map(|(scale, range)| {
                Some((format!("{}, {} collections", range.name, scale.aimed_at), range, range.mean?))
            });
        let found = match published.requests.as_str() {
            "any" => means
                .filter(|(_, _, mean)| mean.differs)
                .max_by(|(_, _, one), (_, _, other)| one.ratio.ln().abs().total_cmp(&other.ratio.ln().abs())),
            name => means.into_iter().find(|(_, range, _)| range.name == name),
        };
        found.map(|(of, range, mean)| (of, mean, range.cpu_mean))
    }
}

/// One program.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Program {
    /// Name.
    pub program: String,
    /// Command line.
    pub command: Vec<String>,
    /// Bytes that it requests in a run, by which periods were chosen.
    pub requested_bytes: u64,
    /// One a collector.
    pub stacks: Vec<Stack>,
}

/// One collector on a program.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Stack {
    /// As it was requested, without the period.
    pub stack: String,
    /// By the number of collections aimed at, fewest first.
    pub scales: Vec<Scale>,
    /// Mean of the fastest group of all scales, ns: what charts are normalised to.
    pub fastest_mean_ns: Option<f64>,
    /// The same of medians.
    pub fastest_median_ns: Option<f64>,
    /// Why it was not run.
    pub refused: Option<String>,
}

/// One period.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Scale {
    /// Collections a run that were aimed at.
    pub aimed_at: u64,
    /// Bytes allocated between collections.
    pub every: u64,
    /// Collections of each run that counts.
    pub collections: Vec<u64>,
    /// Pauses of all these runs, ns.
    pub pause_ns: u64,
    /// Requests that no collection interrupted.
    pub requests: u64,
    /// Requests that one did, or that began while it was under way.
    pub interrupted: u64,
    /// Requests before the first collection of their run.
    pub before_first: u64,
    /// Requests that the file of events had no space for.
    pub lost: u64,
    /// Requests by distance.
    #[serde(flatten)]
    pub grouped: Grouped,
    /// Requests near a collection and far from one against the middle, run by run.
    #[serde(skip)]
    pub series: Vec<Series>,
    /// The same with intervals that hold together over all collectors of the program.
    pub stretches: Vec<Portion>,
    /// Outcomes of the runs that are not counted.
    pub failures: Vec<String>,
}

impl Scale {
    /// One without runs yet.
    pub fn new(aimed_at: u64, every: u64) -> Scale {
        Scale {
            aimed_at,
            every,
            collections: vec![],
            pause_ns: 0,
            requests: 0,
            interrupted: 0,
            before_first: 0,
            lost: 0,
            grouped: Grouped::default(),
            series: vec![],
            stretches: vec![],
            failures: vec![],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_changes_are_paired_with_ours() {
        let ratio = |ratio: f64, differs: bool| Ratio { ratio, low: ratio, high: ratio, differs, runs: 6 };
        let scale = |aimed_at: u64, first: Ratio, last: Ratio| {
            let range = |name: &str, mean: Ratio| Portion {
                name: name.into(),
                distance_ns: 1,
                mean: Some(mean),
                median: None,
                cpu_mean: None,
                cpu_median: None,
            };
            let stretches = vec![range("first 10 %", first), range("last 20 %", last)];
            Scale { stretches, ..Scale::new(aimed_at, 1) }
        };
        let stack = |name: &str| Stack {
            stack: name.into(),
            scales: vec![
                scale(100, ratio(1.02, false), ratio(0.7, true)),
                scale(1000, ratio(1.3, true), ratio(3.0, false)),
            ],
            fastest_mean_ns: None,
            fastest_median_ns: None,
            refused: None,
        };
        let program = Program {
            program: "p".into(),
            command: vec![],
            requested_bytes: 1,
            stacks: vec![stack("sweep/glibc")],
        };
        let mut figures =
            ProximityFigures { complete: true, runs: 6, seed: 1, programs: vec![program], published: vec![] };
        figures.compare();
        let published_match: Vec<(&str, f64)> =
            figures.published.iter().map(|one| (one.ours_of.as_str(), one.ours.ratio)).collect();
        // The largest is taken among claimed changes only.
        assert_eq!(
            published_match,
            [("first 10 %, 1000 collections", 1.3), ("last 20 %, 100 collections", 0.7)]
        );
        figures.programs[0].stacks = vec![stack("jvm-g1")];
        figures.compare();
        assert!(
            figures.published.iter().all(|one| one.published.collectors == BUMP),
            "mark-sweep over malloc is not"
        );
        assert_eq!(figures.published.len(), 1);
    }
}
