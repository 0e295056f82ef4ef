//! What `heaptoll proximity` found, as its JSON has it (docs/proximity.md).

use heaptoll_studies::proximity::{Grouped, Series, Stretch};
use serde::Serialize;

/// Everything.
#[derive(Debug, Serialize)]
pub struct Figures {
    /// False when it was interrupted.
    pub complete: bool,
    /// Runs of each scale that were asked for.
    pub runs: u32,
    /// Seed of the order.
    pub seed: u64,
    /// Programs, in the order asked for.
    pub programs: Vec<Program>,
}

/// One program.
#[derive(Debug, Serialize)]
pub struct Program {
    /// Name.
    pub program: String,
    /// Command line.
    pub command: Vec<String>,
    /// Bytes that it asks for in a run, by which periods were chosen.
    pub requested_bytes: u64,
    /// One a collector.
    pub stacks: Vec<Stack>,
}

/// One collector on a program.
#[derive(Debug, Serialize)]
pub struct Stack {
    /// As it was asked for, without the period.
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
#[derive(Debug, Serialize)]
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
    /// Requests that the file of events had no room for.
    pub lost: u64,
    /// Requests by distance.
    #[serde(flatten)]
    pub grouped: Grouped,
    /// What is near a collection and what is far against the middle, run by run.
    #[serde(skip)]
    pub series: Vec<Series>,
    /// The same with intervals that hold together over all collectors of the program.
    pub stretches: Vec<Stretch>,
    /// What became of runs that do not count.
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
