//! Programs under managers: planned, interleaved and compared by `heaptoll_experiment`, program by program.

use std::time::{SystemTime, UNIX_EPOCH};

use heaptoll_catalog::{Prepared, Size};
use heaptoll_experiment::compare::{compare, judge_outputs};
use heaptoll_experiment::comparison::{CollectionFigures, Metric, Row};
use heaptoll_experiment::experiment::{Experiment, Protocol, StackInfo};
use heaptoll_experiment::observation::Observation;
use heaptoll_experiment::plan::Cell;
use heaptoll_experiment::runner::Progress;
use heaptoll_report::format;
use heaptoll_statistics::Interval;
use serde::Serialize;

use crate::installation::{self, Installation};
use crate::{Error, Stack};

/// Repetitions, input size and seed.
#[derive(Debug, Clone, clap::Args)]
pub struct Effort {
    /// Timed repetitions, two or more; in each every manager runs once, in random order
    #[arg(short = 'n', long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(2..=1000))]
    pub repetitions: u32,
    /// Size of the programs' inputs
    #[arg(long, value_name = "SIZE", default_value = "demo", value_parser = clap::builder::PossibleValuesParser::new(["quick", "demo", "full"]))]
    pub size: String,
    /// Seconds after which a run is killed
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    pub timeout: u32,
    /// Seed of the order
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
}

/// A manager on a program.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measured {
    /// Stack name.
    pub manager: String,
    /// Good timed runs.
    pub runs: u32,
    /// Median CPU seconds less start-up.
    pub cpu_s: Option<f64>,
    /// Median elapsed seconds less start-up.
    pub wall_s: Option<f64>,
    /// CPU over the baseline's: mean of paired ratios.
    pub cpu: Option<Interval>,
    /// Elapsed time over the baseline's.
    pub wall: Option<Interval>,
    /// Median peak RSS, KiB.
    pub rss_kib: Option<f64>,
    /// Most anonymous resident memory at once in the watched run, KiB.
    pub anonymous_kib: Option<f64>,
    /// Its collector's figures, where it reports them.
    pub collections: Option<CollectionFigures>,
    /// What went wrong in some runs.
    pub marks: Vec<String>,
}

/// A program under several managers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProgramFigures {
    /// Name in the catalog.
    pub program: String,
    /// In the requested order, the baseline first.
    pub managers: Vec<Measured>,
}

impl ProgramFigures {
    /// A manager's figures.
    pub fn of(&self, manager: &str) -> Option<&Measured> {
        self.managers.iter().find(|one| one.manager == manager)
    }
}

/// Prints progress to standard error.
struct Counter<'a> {
    program: &'a str,
    done: usize,
}

impl Progress for Counter<'_> {
    fn begins(&mut self, _: &Cell, _: &StackInfo) {}

    fn ended(&mut self, _: &Cell, _: Option<&Observation>) {
        self.done += 1;
        if self.done.is_multiple_of(50) {
            eprintln!("{}: {} runs", self.program, self.done);
        }
    }
}

/// The stacks of managers by name, group or path, glibc in front of them; default managers that are not built here are
/// left out with a note on standard error.
///
/// # Errors
/// A requested manager is not known.
pub fn stacks(
    installation: &Installation,
    requested: &[String],
    default: &[&str],
) -> Result<Vec<Stack>, Error> {
    let mut names: Vec<String> = vec!["glibc".into()];
    if requested.is_empty() {
        for name in default {
            match installation.manager(name) {
                Ok(_) => names.push((*name).into()),
                Err(_) => eprintln!("{name} is not built here and left out"),
            }
        }
    } else {
        names.extend(installation.managers(requested, &[])?.into_iter().map(|manager| manager.name));
    }
    let mut seen: Vec<String> = vec![];
    names.retain(|name| {
        let new = !seen.contains(name);
        seen.push(name.clone());
        new
    });
    names.iter().map(|name| installation.stack(name)).collect()
}

impl Effort {
    /// A program of the catalog with its input.
    ///
    /// # Errors
    /// It is not in the catalog or not installed, or an input cannot be written.
    pub fn program(&self, installation: &Installation, name: &str) -> Result<Prepared, Error> {
        let size: Size = self.size.parse()?;
        installation.program(name, size)
    }

    /// Runs one program under the stacks, the first being the baseline.
    ///
    /// # Errors
    /// What stops an experiment; a stack that fails has marks and no figures.
    pub fn measure(
        &self,
        installation: &Installation,
        program: &Prepared,
        stacks: &[Stack],
    ) -> Result<ProgramFigures, Error> {
        eprintln!("{} under {}", program.name, count(stacks.len()));
        let protocol = Protocol {
            repetitions: self.repetitions,
            warmup: 1,
            seed: self.seed,
            timeout_s: self.timeout.into(),
            ..Protocol::default()
        };
        let mut progress = Counter { program: &program.name, done: 0 };
        let mut experiment = installation.run(program, stacks, protocol, &mut progress)?;
        judge_outputs(&mut experiment);
        let rows = compare(&experiment).tables.into_iter().flat_map(|table| table.rows);
        let rows: Vec<Row> = rows.collect();
        let managers = stacks
            .iter()
            .filter_map(|stack| {
                Some(measured(&experiment, stack, rows.iter().find(|r| r.stack == stack.name)?))
            })
            .collect();
        Ok(ProgramFigures { program: program.name.clone(), managers })
    }
}

fn count(stacks: usize) -> String {
    if stacks == 1 { "1 stack".into() } else { format!("{stacks} stacks") }
}

fn measured(experiment: &Experiment, stack: &Stack, row: &Row) -> Measured {
    let median = |metric| row.figures.get(&metric).map(|figure| figure.median);
    let ratio = |metric| row.figures.get(&metric).and_then(|figure| figure.ratio);
    let track = experiment.tracks.iter().find(|track| track.stack == stack.name);
    let mut marks = row.marks.clone();
    if stack.reports_statistics && row.good > 0 && row.collections.is_none() {
        marks.push("reported nothing: was it served?".into());
    }
    Measured {
        manager: stack.name.clone(),
        runs: row.good,
        cpu_s: median(Metric::Cpu),
        wall_s: median(Metric::Wall),
        cpu: ratio(Metric::Cpu),
        wall: ratio(Metric::Wall),
        rss_kib: median(Metric::PeakRss),
        anonymous_kib: track.map(|track| track.anonymous_peak_kib as f64).filter(|kib| *kib > 0.0),
        collections: row.collections,
        marks,
    }
}

/// The day, the machine and its load, in a line.
pub fn machine_line() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64());
    let load = heaptoll_experiment::machine::read().load[0];
    format!("{}, {}, load {load:.1}", format::date(now), installation::machine_line())
}
