//! The figures of a gate, as in the JSON: what two builds of each program cost, and whether a limit was broken.

use heaptoll_experiment::experiment::Machine;
use heaptoll_statistics::Interval;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::differences::Differences;
use super::limits::Limit;
use super::metric::{Metric, Unit};
use super::sites::SiteDifferences;
use super::stack_pair::StackPair;

/// Everything.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figures {
    /// Whether all runs were made.
    pub complete: bool,
    /// Unix time of the beginning, seconds.
    pub created_unix_s: f64,
    /// The machine.
    pub machine: Machine,
    /// What this machine can see now: sentences on CPU time, tracer, other work.
    pub sight: Vec<String>,
    /// One each, in the order of the request.
    pub programs: Vec<Program>,
    /// Programs that could not be run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<Refused>,
    /// Of all programs of `programs` together.
    pub verdict: Verdict,
}

/// A program that could not be run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Refused {
    /// Its name.
    pub name: String,
    /// Why.
    pub why: String,
}

/// The verdict on one program or on all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Every limit holds.
    Within,
    /// No limit is seen to be broken, and of one at least it could not be decided.
    #[default]
    Undecided,
    /// A limit is broken, or the new build does not end as the base does.
    Broken,
}

/// One program.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// What it is compared with.
    pub base: Side,
    /// What is gated.
    pub new: Side,
    /// One each, the gated ones first.
    pub metrics: Vec<MetricFigures>,
    /// Allocation calls and bytes by size of the request.
    pub sizes: Vec<SizeFigures>,
    /// Whether both wrote the same.
    pub outputs: Outputs,
    /// How both builds are the same in all that may differ; none where they are not.
    #[serde(default)]
    pub unchanged: Option<String>,
    /// The way in which the new build fails and the base does not.
    pub failure: Option<String>,
    /// What the reader must know.
    pub notes: Vec<String>,
    /// Instructions by function; `None` where no traced runs of both were made.
    #[serde(default)]
    pub functions: Option<Differences>,
    /// Instructions of the libraries of C and C++ by the function that called them; `None` as of `functions`.
    #[serde(default)]
    pub library: Option<Differences>,
    /// Both, of every function; for the page.
    #[serde(skip)]
    pub function_stacks: Option<StackPair>,
    /// Memory by call site; `None` where no recordings of both were made.
    #[serde(default)]
    pub sites: Option<SiteDifferences>,
    /// The verdict on it.
    pub verdict: Verdict,
}

/// One of the two builds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Side {
    /// Its command, each word.
    pub command: Vec<String>,
    /// Folder in which it ran; `None` for the folder of the gate.
    pub folder: Option<String>,
    /// Hash of the commit that it was built of, where it was built of one.
    pub commit: Option<String>,
    /// Whether it has changes over that commit.
    pub dirty: bool,
    /// The manager; `None` where it runs with its own.
    pub manager: Option<String>,
}

/// One metric of one program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricFigures {
    /// Which.
    pub metric: Metric,
    /// The unit of `base` and `new`.
    pub unit: Unit,
    /// Of the base: a count, or the median of measured runs. `None` where there is none.
    pub base: Option<f64>,
    /// Of the new build.
    pub new: Option<f64>,
    /// The new build over the base.
    pub change: Change,
    /// The second count of the base, under other addresses, where it differs: the count varies by itself.
    pub base_again: Option<f64>,
    /// Its limit.
    pub limit: Option<Limit>,
    /// What the limit decides.
    pub verdict: MetricVerdict,
}

/// The new build's figure over the base's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Change {
    /// There is no ratio: a figure is missing, or that of the base is 0.
    None,
    /// Of counts.
    Exact {
        /// The ratio.
        ratio: f64,
    },
    /// Of measured runs.
    Measured(Interval),
}

impl Change {
    /// The ratio, where there is one.
    pub fn ratio(&self) -> Option<f64> {
        match self {
            Change::None => None,
            Change::Exact { ratio } => Some(*ratio),
            Change::Measured(interval) => Some(interval.ratio),
        }
    }
}

/// What a limit decides on one metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum MetricVerdict {
    /// The whole interval lies within the limit.
    Within,
    /// The whole interval lies beyond the limit.
    Broken,
    /// The interval holds the limit, or there is none.
    Undecided {
        /// Why, and what a decision would take.
        why: String,
    },
    /// It is shown and not gated.
    NotGated {
        /// Why.
        why: String,
    },
}

/// Requests of one size class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SizeFigures {
    /// The largest request of the class, bytes; `None` for the class of the largest.
    pub up_to: Option<u64>,
    /// Calls of the base.
    pub base_calls: u64,
    /// Calls of the new build.
    pub new_calls: u64,
    /// Bytes that the base requested.
    pub base_bytes: u64,
    /// Bytes that the new build requested.
    pub new_bytes: u64,
}

/// How the outputs of both compare.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outputs {
    /// The same bytes.
    Equal,
    /// They differ, and the base's do not vary by themselves.
    Differ,
    /// Runs of the base differ among each other.
    Vary,
    /// No run that could be compared.
    #[default]
    Unknown,
}
