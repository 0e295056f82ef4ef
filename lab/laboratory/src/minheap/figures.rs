//! The figures of `heaptoll lab minheap`, as in its JSON.

use heaptoll_experiment::experiment::ProgramInfo;
use heaptoll_units::each_once;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::overheads::{Mean, Overhead, overheads};
use super::published_heap::{SmallestHeap, smallest_heaps};
use heaptoll_compare::smallest_heap::Collector;

/// Everything.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct MinheapFigures {
    /// False when it was interrupted.
    pub complete: bool,
    /// Smallest heaps may be this share too large.
    pub tolerance: f64,
    /// Runs at either side of an edge, and of each baseline.
    pub repeats: u32,
    /// Time limit of a run, s.
    pub timeout_s: f64,
    /// Programs, in the requested order.
    pub programs: Vec<Program>,
    /// Geometric means over programs.
    pub means: Vec<MeanOver>,
    /// The paper's means with each of ours over the same allocator at the same period.
    pub published: Vec<PublishedPair>,
}

/// A published mean with one of ours.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct PublishedPair {
    /// The paper's.
    #[serde(flatten)]
    pub published: SmallestHeap,
    /// Ours.
    pub ours: MeanOver,
}

/// One program.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Program {
    /// Name.
    pub program: String,
    /// Command line.
    pub command: Vec<String>,
    /// Whether its output is the same in each run, so that a wrong one is recognised; if not, only the status counts.
    pub steady_output: bool,
    /// Searched.
    pub collectors: Vec<Collector>,
    /// Reported.
    pub baselines: Vec<Baseline>,
    /// Each smallest heap over each baseline.
    pub overheads: Vec<Over>,
}

impl Program {
    /// A program that is not measured yet.
    pub fn of(program: &ProgramInfo) -> Program {
        Program {
            program: program.name.clone(),
            command: program.command.clone(),
            steady_output: false,
            collectors: vec![],
            baselines: vec![],
            overheads: vec![],
        }
    }
}

/// A footprint that mark-sweep over an allocator reports.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Baseline {
    /// The stack.
    pub stack: String,
    /// The allocator.
    pub allocator: String,
    /// Bytes allocated between collections.
    pub every: u64,
    /// Whether the program's own frees are honoured.
    pub frees_honoured: bool,
    /// Pages that hold a live block, the most at once, bytes, of each run that completed.
    pub used_high_bytes: Vec<u64>,
    /// Collections of the last of them.
    pub collections: u64,
    /// Outcomes of the runs that did not complete.
    pub failures: Vec<String>,
    /// Why none was made.
    pub refused: Option<String>,
}

/// A ratio.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Over {
    /// The collector's stack.
    pub collector: String,
    /// The baseline's stack.
    pub baseline: String,
    /// Smallest heap over footprint.
    #[serde(flatten)]
    pub overhead: Overhead,
}

/// A geometric mean over programs.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct MeanOver {
    /// The collector's stack.
    pub collector: String,
    /// The baseline's stack.
    pub baseline: String,
    /// Of the programs that both have.
    #[serde(flatten)]
    pub mean: Mean,
}

impl MinheapFigures {
    /// Whether a search or a baseline has no answer.
    pub fn lacks_an_answer(&self) -> bool {
        let rows = || self.programs.iter().flat_map(|program| &program.collectors);
        let baselines = || self.programs.iter().flat_map(|program| &program.baselines);
        rows().any(|row| row.edge().is_none()) || baselines().any(|row| row.used_high_bytes.is_empty())
    }

    /// Sets each smallest heap against each baseline, and takes the means over programs.
    pub fn compare(&mut self) {
        for program in &mut self.programs {
            let over = |collector: &Collector, baseline: &Baseline| {
                let (heap, failed_at) = collector.edge()?;
                Some(Over {
                    collector: collector.stack.clone(),
                    baseline: baseline.stack.clone(),
                    overhead: overheads(heap, failed_at, &baseline.used_high_bytes)?,
                })
            };
            program.overheads = program
                .collectors
                .iter()
                .flat_map(|collector| {
                    program.baselines.iter().filter_map(move |baseline| over(collector, baseline))
                })
                .collect();
        }
        let overheads = self.programs.iter().flat_map(|program| &program.overheads);
        let pairs = each_once(overheads.map(|over| (over.collector.clone(), over.baseline.clone())));
        let mean = |(collector, baseline): (String, String)| {
            let ratios: Vec<f64> = self
                .programs
                .iter()
                .flat_map(|program| &program.overheads)
                .filter(|over| over.collector == collector && over.baseline == baseline)
                .map(|over| over.overhead.ratio)
                .collect();
            Some(MeanOver { mean: Mean::of(&ratios)?, collector, baseline })
        };
        self.means = pairs.into_iter().filter_map(mean).collect();
        self.published = smallest_heaps().flat_map(|published| self.published_pairs(&published)).collect();
    }

    /// Ours over the baselines that a published mean is over.
    fn published_pairs(&self, published: &SmallestHeap) -> Vec<PublishedPair> {
        let baselines = || self.programs.iter().flat_map(|program| &program.baselines);
        let same = |mean: &&MeanOver| {
            baselines().any(|baseline| {
                baseline.stack == mean.baseline
                    && baseline.every == published.every_bytes
                    && !baseline.frees_honoured
                    && published.is_over(&baseline.allocator)
            })
        };
        let ours = self.means.iter().filter(same).cloned();
        ours.map(|ours| PublishedPair { published: published.clone(), ours }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptoll_compare::smallest_heap::{Answer, End};

    #[test]
    fn the_papers_mean_is_paired_with_ours_over_the_same_baseline() {
        let baseline = |stack: &str, allocator: &str, every: u64, frees_honoured: bool| Baseline {
            stack: stack.into(),
            allocator: allocator.into(),
            every,
            frees_honoured,
            used_high_bytes: vec![4096],
            collections: 1,
            failures: vec![],
            refused: None,
        };
        let answer = Answer {
            end: End::Found,
            heap: Some(8192),
            failed_at: 4096,
            sometimes_from: Some(8192),
            failed_otherwise: vec![],
            tried: vec![],
        };
        let collector = Collector {
            stack: "tithe-collect".into(),
            unlimited_used_high_bytes: None,
            search: Some(answer),
            completed_although_refused: 0,
            collections: 1,
            failure: None,
        };
        let program = Program {
            program: "p".into(),
            command: vec![],
            steady_output: true,
            collectors: vec![collector],
            baselines: vec![
                baseline("a", "mimalloc3", 32 << 10, false),
                baseline("b", "mimalloc3", 32 << 10, true),
                baseline("c", "mimalloc3", 64 << 10, false),
                baseline("d", "glibc", 32 << 10, false),
            ],
            overheads: vec![],
        };
        let mut figures = MinheapFigures {
            complete: true,
            tolerance: 0.01,
            repeats: 1,
            timeout_s: 1.0,
            programs: vec![program],
            means: vec![],
            published: vec![],
        };
        figures.compare();
        let published_pairs: Vec<(f64, &str, f64)> = figures
            .published
            .iter()
            .map(|one| (one.published.percent, one.ours.baseline.as_str(), one.ours.mean.ratio))
            .collect();
        assert_eq!(published_pairs, [(11.0, "a", 2.0)]);
    }
}
