//! CPU time of a program under several managers: planned, interleaved and compared by `heaptoll_experiment`, like any
//! experiment, but under objects that were not requested by name, and without preflight.

use std::collections::BTreeMap;
use std::path::Path;

use heaptoll_catalog::Prepared;
use heaptoll_experiment::compare::{compare, judge_outputs};
use heaptoll_experiment::comparison::Metric;
use heaptoll_experiment::experiment::{self, StackInfo};
use heaptoll_experiment::observation::Observation;
use heaptoll_experiment::plan::Cell;
use heaptoll_experiment::runner::{Progress, RunContext};
use heaptoll_rig::Stack;
use heaptoll_statistics::Interval;

use crate::Error;
use crate::installation::{Installation, SelectedManager};

/// Untimed repetitions before the timed ones.
const WARMUP: u32 = 1;

/// An experiment's figures of a manager.
#[derive(Debug, Clone, Default)]
pub struct Measured {
    /// CPU over the baseline's.
    pub ratio: Option<Interval>,
    /// Median CPU seconds less start-up.
    pub cpu_s: Option<f64>,
    /// Median page faults of a run.
    pub faults: Option<f64>,
    /// What went wrong in some runs.
    pub marks: Vec<String>,
}

/// Prints progress to standard error.
#[derive(Default)]
struct Counter {
    done: usize,
}

impl Progress for Counter {
    fn begins(&mut self, _: &Cell, _: &StackInfo) {}

    fn ended(&mut self, _: &Cell, _: Option<&Observation>) {
        self.done += 1;
        if self.done.is_multiple_of(20) {
            eprintln!("{} runs", self.done);
        }
    }
}

/// Repetitions and seed.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Timed repetitions.
    pub repetitions: u32,
    /// Seed of every random choice.
    pub seed: u64,
    /// Time limit of a run, seconds.
    pub timeout_s: u64,
}

/// One experiment: the program under all managers, interleaved, with `sleeper` in front of each; ratios are to the
/// manager called `baseline`. By manager.
///
/// # Errors
/// What stops an experiment. A manager that fails has marks and no figures.
pub fn measure(
    installation: &Installation,
    program: &Prepared,
    managers: &[SelectedManager],
    baseline: &str,
    sleeper: Option<&Path>,
    settings: Settings,
) -> Result<BTreeMap<String, Measured>, Error> {
    let stacks: Vec<Stack> = managers
        .iter()
        .map(|manager| Stack {
            name: manager.name.clone(),
            preload: sleeper.into_iter().chain(manager.object.as_deref()).map(Path::to_path_buf).collect(),
            environment: manager.environment.clone(),
            reports_statistics: false,
        })
        .collect();
    let experiment_settings = experiment::Settings {
        repetitions: settings.repetitions,
        warmup: WARMUP,
        seed: settings.seed,
        timeout_s: settings.timeout_s as f64,
        ..experiment::Settings::default()
    };
    let context = RunContext {
        launcher: installation.places.launcher(),
        start_layer: installation.places.start_layer(),
        interrupt: installation.interrupt.clone(),
    };
    let mut progress = Counter::default();
    let mut experiment =
        heaptoll_rig::run(program, &stacks, Some(baseline), experiment_settings, &context, &mut progress)?;
    judge_outputs(&mut experiment);
    let comparison = compare(&experiment);
    Ok(comparison
        .tables
        .iter()
        .flat_map(|table| &table.rows)
        .map(|row| {
            let figure = row.figures.get(&Metric::Cpu);
            let measured = Measured {
                ratio: figure.and_then(|figure| figure.ratio),
                cpu_s: figure.map(|figure| figure.median),
                faults: (row.good > 0).then_some(row.minor_faults),
                marks: row.marks.clone(),
            };
            (row.stack.clone(), measured)
        })
        .collect())
}
