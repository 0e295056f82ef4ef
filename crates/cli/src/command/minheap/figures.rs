//! What `heaptoll minheap` found, as its JSON has it (docs/minheap.md).

use heaptoll_studies::minheap::{Answer, Mean, Overhead};
use serde::Serialize;

/// Everything.
#[derive(Debug, Serialize)]
pub struct Figures {
    /// False when it was interrupted.
    pub complete: bool,
    /// Smallest heaps may be this share too large.
    pub tolerance: f64,
    /// Runs at either side of an edge, and of each baseline.
    pub repeats: u32,
    /// Time limit of a run, s.
    pub timeout_s: f64,
    /// Programs, in the order asked for.
    pub programs: Vec<Program>,
    /// Geometric means over programs.
    pub means: Vec<MeanOver>,
}

/// One program.
#[derive(Debug, Serialize)]
pub struct Program {
    /// Name.
    pub program: String,
    /// Command line.
    pub command: Vec<String>,
    /// Whether its output is the same in each run, so that a right one can be told; if not, only the status counts.
    pub steady_output: bool,
    /// Searched.
    pub collectors: Vec<Collector>,
    /// Reported.
    pub baselines: Vec<Baseline>,
    /// Each smallest heap over each baseline.
    pub overheads: Vec<Over>,
}

/// A collector's smallest heap.
#[derive(Debug, Serialize)]
pub struct Collector {
    /// The stack, without the heap.
    pub stack: String,
    /// Pages that hold a live block, the most at once, in a run without a limit, bytes; `None` where it does not tell.
    pub unlimited_used_high_bytes: Option<u64>,
    /// What the search found; `None` where it could not begin.
    pub search: Option<Answer>,
    /// Runs that completed although a call had been refused: the program did with less.
    pub completed_although_refused: u32,
    /// Collections in the last run that completed in the smallest heap.
    pub collections: u64,
    /// Why the search could not begin.
    pub failure: Option<String>,
}

/// A footprint that mark-sweep over an allocator reports.
#[derive(Debug, Serialize)]
pub struct Baseline {
    /// The stack.
    pub stack: String,
    /// The allocator.
    pub allocator: String,
    /// Bytes allocated between collections.
    pub every: u64,
    /// Whether the program's own frees are heeded.
    pub frees_honoured: bool,
    /// Pages that hold a live block, the most at once, bytes, of each run that completed.
    pub used_high_bytes: Vec<u64>,
    /// Collections of the last of them.
    pub collections: u64,
    /// What became of runs that did not complete.
    pub failures: Vec<String>,
    /// Why none was made.
    pub refused: Option<String>,
}

/// A ratio.
#[derive(Debug, Serialize)]
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
#[derive(Debug, Serialize)]
pub struct MeanOver {
    /// The collector's stack.
    pub collector: String,
    /// The baseline's stack.
    pub baseline: String,
    /// Of the programs that both have.
    #[serde(flatten)]
    pub mean: Mean,
}

impl Collector {
    /// The smallest heap and the largest that failed, where the search found them.
    pub fn edge(&self) -> Option<(u64, u64)> {
        let answer = self.search.as_ref()?;
        Some((answer.heap?, answer.failed_at))
    }
}

impl Figures {
    /// Sets each smallest heap against each baseline, and takes the means over programs.
    pub fn compare(&mut self) {
        use heaptoll_studies::minheap::{geometric_mean, overheads};
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
        let mut pairs: Vec<(String, String)> = Vec::new();
        for over in self.programs.iter().flat_map(|program| &program.overheads) {
            let pair = (over.collector.clone(), over.baseline.clone());
            if !pairs.contains(&pair) {
                pairs.push(pair);
            }
        }
        let mean = |(collector, baseline): (String, String)| {
            let ratios: Vec<f64> = self
                .programs
                .iter()
                .flat_map(|program| &program.overheads)
                .filter(|over| over.collector == collector && over.baseline == baseline)
                .map(|over| over.overhead.ratio)
                .collect();
            Some(MeanOver { mean: geometric_mean(&ratios)?, collector, baseline })
        };
        self.means = pairs.into_iter().filter_map(mean).collect();
    }
}
