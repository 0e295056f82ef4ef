//! The figures of `heaptoll lab frequency`: ratios of the mutator's time over the period.

use heaptoll_statistics::Interval;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::period::{Period, Question};

/// The figures of one stack on one program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Setting {
    /// Its period.
    pub period: Period,
    /// Good runs.
    pub good: u32,
    /// Medians; `None` without a good run whose collections were reported.
    pub medians: Option<Medians>,
}

/// Medians of one stack.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Medians {
    /// Collections of a run.
    pub collections: f64,
    /// Elapsed, s, less start-up.
    pub wall_s: f64,
    /// Pauses, s.
    pub pauses_s: f64,
    /// Elapsed less pauses, s.
    pub mutator_wall_s: Option<f64>,
    /// CPU less the collector's, s, where it reports that.
    pub mutator_cpu_s: Option<f64>,
    /// Peak resident memory, KiB.
    pub peak_rss_kib: f64,
}

/// A ratio of the mutator's time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ratio {
    /// Which of the experiments.
    pub question: Question,
    /// The period.
    pub period: Period,
    /// The period it is compared with.
    pub over: Period,
    /// Elapsed time less pauses.
    pub mutator_wall: Option<Interval>,
    /// CPU less the collector's.
    pub mutator_cpu: Option<Interval>,
    /// Elapsed time with pauses.
    pub wall: Option<Interval>,
    /// Peak resident memory.
    pub peak_rss: Option<Interval>,
}

impl Ratio {
    /// The ratio by which a result is claimed: of CPU where the collector reports its own, else of elapsed time.
    pub fn of_mutator(&self) -> Option<Interval> {
        self.mutator_cpu.or(self.mutator_wall)
    }
}

/// One program under one collector.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Study {
    /// Program.
    pub program: String,
    /// The collector: a stack less what is varied.
    pub collector: String,
    /// By period.
    pub settings: Vec<Setting>,
    /// By question, then period. All of one program hold together.
    pub ratios: Vec<Ratio>,
    /// Whether it collects often enough for a result; only then is it in the means.
    pub often_enough: bool,
}

impl Study {
    /// Whether it collects often enough, but not in enough pairs of runs to claim anything.
    pub fn has_too_few_runs(&self) -> bool {
        let few = |ratio: &Ratio| ratio.mutator_wall.is_none_or(|interval| !interval.has_enough_pairs());
        self.often_enough && self.ratios.iter().any(few)
    }
}

/// Geometric means over programs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Mean {
    /// The collector.
    pub collector: String,
    /// Programs in it.
    pub programs: u32,
    /// The ratio. Its intervals are over repetitions: of these programs only.
    #[serde(flatten)]
    pub ratio: Ratio,
    /// Of the mutator's time (CPU where the collector reports its own, else elapsed), with an interval over programs
    /// (Student's t on their logarithms, by itself): what other programs of this kind would show. `pairs` is the
    /// number of programs; null below three.
    #[serde(default)]
    pub between_programs: Option<Interval>,
}

/// The whole study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Frequency {
    /// In the order requested.
    pub collectors: Vec<String>,
    /// By program, then collector.
    pub programs: Vec<Study>,
    /// Where at least two programs collect often enough. All hold together.
    pub means: Vec<Mean>,
}
