//! What to run under which managers, and how.

use std::path::PathBuf;

use heaptoll_experiment::experiment::Pairing;

use super::thp::Thp;
use heaptoll_runs::preparation::baseline;
use heaptoll_runs::workload::Workload;

/// Timed repetitions by default.
pub const REPETITIONS: u32 = 10;

/// What to run, and how.
#[derive(Debug, Clone)]
pub struct Request {
    /// The programs.
    pub workload: Workload,
    /// Managers, groups and stacks, by name or path; the modern ones without any.
    pub manager: Vec<String>,
    /// The manager that ratios are taken to; without one, the allocator that the program links, or else glibc.
    pub baseline: Option<String>,
    /// Heaps to run each collector in, as multiples of the smallest in which the program completes; none where only its
    /// own size of the heap counts.
    pub heaps: Option<Vec<f64>>,
    /// Timed repetitions; [`REPETITIONS`] without a number.
    pub repetitions: Option<u32>,
    /// Half-width of CPU intervals that is enough, as a share.
    pub precision: Option<f64>,
    /// Time to measure for, s.
    pub budget_s: Option<f64>,
    /// Repetitions before the timed ones, not compared.
    pub warmup: u32,
    /// Seed of every random choice; from the clock without one.
    pub seed: Option<u64>,
    /// Time limit of an invocation, s.
    pub timeout_s: f64,
    /// Exit status of success.
    pub expect_status: i32,
    /// How runs are paired.
    pub pairing: Pairing,
    /// Time slice of programs in lockstep, s.
    pub slice_s: Option<f64>,
    /// Memory that runs at once may take together, bytes.
    pub at_once_bytes: Option<u64>,
    /// Programs of one block in lockstep each: forms that are compared.
    pub together: Vec<Vec<String>>,
    /// Whether each run has a copy of the current folder.
    pub working_copy: bool,
    /// Whether each program has all its runs, and shows its figures, before the next begins.
    pub by_program: bool,
    /// Whether traced runs follow.
    pub exact: bool,
    /// Huge pages; as the system has them without a value.
    pub thp: Option<Thp>,
    /// The file that keeps the rows; a new one in `$XDG_STATE_HOME/heaptoll` without one.
    pub db: Option<PathBuf>,
    /// The words of the command that began it; empty where none did.
    pub command: Vec<String>,
}

impl Request {
    /// The defaults of `heaptoll run` for these programs and managers.
    pub fn of(workload: Workload, managers: &[&str]) -> Request {
        Request {
            workload,
            manager: managers.iter().map(|name| (*name).to_owned()).collect(),
            baseline: None,
            heaps: None,
            repetitions: None,
            precision: None,
            budget_s: None,
            warmup: 1,
            seed: None,
            timeout_s: 600.0,
            expect_status: 0,
            pairing: Pairing::Lockstep,
            slice_s: None,
            at_once_bytes: None,
            together: vec![],
            working_copy: false,
            by_program: false,
            exact: false,
            thp: None,
            db: None,
            command: vec![],
        }
    }

    /// The manager that is proved first.
    pub fn baseline(&self) -> &str {
        self.baseline.as_deref().unwrap_or(baseline::DEFAULT)
    }
}
