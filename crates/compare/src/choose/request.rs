//! What to choose, and how.

use super::score::{Limits, Preference};
use crate::run;

/// Candidates, besides the baseline, that are measured afresh.
pub(super) const FINALISTS: usize = 2;
/// Repetitions of the fresh runs by default.
pub const REPETITIONS: u32 = 20;
/// A smaller saving is not worth a setting, by default.
pub const FLOOR: f64 = 0.02;

/// What to choose, and how.
#[derive(Debug, Clone)]
pub struct ChooseRequest {
    /// What every run has in common: programs, seed, limits. Managers are of each round; repetitions are of the fresh runs.
    pub run: run::RunRequest,
    /// Managers and stacks to choose from; the modern ones, with their settings, without any.
    pub manager: Vec<String>,
    /// Whether managers that were named are tried with settings, too.
    pub settings: bool,
    /// What is wanted.
    pub preference: Preference,
    /// Peak resident memory that a run may take, bytes.
    pub memory_limit_bytes: Option<u64>,
    /// The 99th percentile of requests that a server may have, ms.
    pub p99_limit_ms: Option<f64>,
    /// The least saving that makes a setting worth it, as a share of a figure.
    pub floor: f64,
    /// How long the servers of the finalists and the baseline are to run after that, seconds; not at all without it.
    pub soak_s: Option<f64>,
}

impl ChooseRequest {
    /// The baseline and these candidates.
    pub(super) fn runs_of(&self, names: &[String]) -> run::RunRequest {
        let baseline = self.run.baseline().to_owned();
        let manager = std::iter::once(baseline.clone()).chain(names.iter().cloned()).collect();
        run::RunRequest { manager, baseline: Some(baseline), ..self.run.clone() }
    }

    pub(super) fn limits(&self) -> Limits {
        Limits { memory_bytes: self.memory_limit_bytes, p99_ms: self.p99_limit_ms }
    }
}
