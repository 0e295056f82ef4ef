//! Facts: what a command that compares managers found, whatever it measured. Studies read them, and know no command.

mod known;
mod metric;
mod place;
#[cfg(feature = "testing")]
pub mod testing;

use heaptoll_statistics::{FEWEST_PAIRS, Interval};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use known::{Basis, FINITE, Known, WIDEST};
pub use metric::{Metric, metrics};
pub use place::Place;

/// One thing that was measured.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Fact {
    /// Program, with its variant: `cfrac:gc`.
    pub program: String,
    /// Manager, as the command or the step of a study names it.
    pub manager: String,
    /// Metric.
    pub metric: String,
    /// Place of a metric that has many.
    pub at: Option<f64>,
    /// Value.
    pub value: Value,
}

/// What is known of a value.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Value {
    /// By repetition; none where a run failed. Two values of one result are paired within a repetition.
    Samples(Vec<Option<f64>>),
    /// Counted, and the same on each run.
    Exact(f64),
    /// With an interval that the command made (95 %, family-wise in its table).
    Estimate {
        /// Value.
        value: f64,
        /// Lower end.
        low: f64,
        /// Upper end.
        high: f64,
    },
    /// One figure without an interval; nothing can be claimed from it.
    Single(f64),
    /// More than this: each run was killed at the time limit.
    AtLeast(f64),
}

/// A ratio of too few runs has a value and no interval that claims anything.
impl From<Interval> for Value {
    fn from(interval: Interval) -> Value {
        let Interval { ratio: value, low, high, pairs, .. } = interval;
        if (pairs as usize) < FEWEST_PAIRS {
            Value::Single(value)
        } else {
            Value::Estimate { value, low, high }
        }
    }
}

/// Figures of a command that compares managers.
pub trait Comparative {
    /// What its facts are about, and what studies derive of them.
    const METRICS: &'static [Metric];

    /// What it found.
    fn facts(&self) -> Facts;
}

/// A program, the manager (all when none), and why it has no facts or not all of them.
pub type Absent = (String, Option<String>, String);

/// What a command found, and what is to be known of it.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
pub struct Facts {
    /// What was measured, in the order of the command's figures: it decides permutations.
    pub measured: Vec<Fact>,
    /// What was refused, failed, or is not whole.
    pub absent: Vec<Absent>,
    /// How runs were paired, where that is not as it was wanted, and what company does to them: sentences.
    pub pairing: Vec<String>,
    /// Warnings of the command.
    pub warnings: Vec<String>,
}

impl Facts {
    /// Where the facts of a program under a manager are written.
    pub fn of<'a>(&'a mut self, program: &'a str, manager: &'a str) -> FactWriter<'a> {
        FactWriter { program, manager, measured: &mut self.measured }
    }

    /// A program under a manager has no facts, or not all.
    pub fn lack(&mut self, program: &str, manager: &str, why: &str) {
        self.absent.push((program.into(), Some(manager.into()), why.into()));
    }

    /// All that is to be known of what was found.
    pub fn remarks(&self) -> impl Iterator<Item = String> {
        self.reasons().chain(self.pairing.iter().chain(&self.warnings).cloned())
    }

    /// What is absent and why: `cfrac under lea: it failed`.
    pub fn reasons(&self) -> impl Iterator<Item = String> {
        self.absent.iter().map(|(program, manager, why)| match manager {
            Some(manager) => format!("{program} under {manager}: {why}"),
            None => format!("{program}: {why}"),
        })
    }
}

/// Writes the facts of a program under a manager.
pub struct FactWriter<'a> {
    program: &'a str,
    manager: &'a str,
    measured: &'a mut Vec<Fact>,
}

impl FactWriter<'_> {
    /// A value of a metric, at a place where there are many.
    pub fn put(&mut self, metric: &str, at: Option<f64>, value: Value) {
        let [program, manager, metric] = [self.program, self.manager, metric].map(str::to_owned);
        self.measured.push(Fact { program, manager, metric, at, value });
    }

    /// A ratio, where there is one.
    pub fn ratio(&mut self, metric: &str, at: Option<f64>, ratio: Option<Interval>) {
        if let Some(ratio) = ratio {
            self.put(metric, at, ratio.into());
        }
    }

    /// A value that is the same on each run.
    pub fn exact(&mut self, metric: &str, at: Option<f64>, value: f64) {
        if value.is_finite() {
            self.put(metric, at, Value::Exact(value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_of_too_few_runs_claims_nothing() {
        let of = |pairs| Interval { ratio: 1.4, low: 1.3, high: 1.5, differs: true, pairs };
        assert!(matches!(Value::from(of(5)), Value::Single(_)));
        assert_eq!(Value::from(of(6)), Value::Estimate { value: 1.4, low: 1.3, high: 1.5 });
    }
}
