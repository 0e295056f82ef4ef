//! What to run under which managers, and how.

use std::path::PathBuf;

use heaptoll_experiment::clock;
use heaptoll_experiment::experiment::{Pairing, Protocol, REPETITIONS};

use super::vary::Vary;
use heaptoll_runs::preparation::baseline;
use heaptoll_runs::workload::Workload;

/// What to run, and how.
#[derive(Debug, Clone)]
pub struct RunRequest {
    /// The programs.
    pub workload: Workload,
    /// Managers, groups and stacks, by name or path; the modern ones without any.
    pub manager: Vec<String>,
    /// The manager that ratios are taken to; without one, the allocator that the program links, or else glibc.
    pub baseline: Option<String>,
    /// Heaps to run each collector in, as multiples of the smallest in which the program completes; none where only its
    /// own size of the heap counts.
    pub heaps: Option<Vec<f64>>,
    /// A setting at several values, each a stack for each named manager.
    pub vary: Option<Vary>,
    /// How runs are made.
    pub protocol: Protocol,
    /// Programs of one block in lockstep each: forms that are compared.
    pub together: Vec<Vec<String>>,
    /// Whether each program has all its runs, and shows its figures, before the next begins.
    pub by_program: bool,
    /// The file that keeps the rows; a new one in `$XDG_STATE_HOME/heaptoll` without one.
    pub db: Option<PathBuf>,
}

impl RunRequest {
    /// The defaults of `heaptoll run` for these programs and managers.
    pub fn of(workload: Workload, managers: &[&str]) -> RunRequest {
        RunRequest {
            workload,
            manager: managers.iter().map(|name| (*name).to_owned()).collect(),
            baseline: None,
            heaps: None,
            vary: None,
            protocol: Protocol {
                repetitions: REPETITIONS,
                warmup: 1,
                seed: clock::seed(),
                timeout_s: 600.0,
                pairing: Pairing::Lockstep,
                ..Protocol::default()
            },
            together: vec![],
            by_program: false,
            db: None,
        }
    }

    /// The manager that is proved first.
    pub fn baseline(&self) -> &str {
        self.baseline.as_deref().unwrap_or(baseline::DEFAULT)
    }
}
