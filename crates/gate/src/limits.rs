//! By how much a metric may grow from the base to the new build.

use std::collections::BTreeMap;

use heaptoll_units::read_percent;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::metric::Metric;

/// The word for a metric that is shown and not gated.
pub const NONE: &str = "none";
/// The largest limit, as a share: a hundredfold growth.
const LARGEST: f64 = 100.0;

/// A limit on one metric.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Limit {
    /// The share that it may grow by: .01 is 1 %.
    pub share: f64,
    /// An absolute growth, in the metric's unit, that never breaks the limit.
    pub floor: f64,
}

impl Limit {
    /// The largest figure of the new build that is within the limit.
    pub fn most(&self, base: f64) -> f64 {
        base + (base * self.share).max(self.floor)
    }

    /// As a user writes it.
    pub fn text(&self) -> String {
        format!("{}%", (1e8 * self.share).round() / 1e6)
    }
}

/// A limit that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LimitError {
    /// Nothing is measured under this name.
    #[error("there is no metric `{name}` to limit; there are {}", known())]
    Unknown {
        /// The name.
        name: String,
    },
    /// It has no unit, or another one.
    #[error("the limit `{value}` of {metric} is not a percentage: write it as 0.5%, or none for no limit")]
    Unit {
        /// The metric.
        metric: &'static str,
        /// As it was written.
        value: String,
    },
    /// No growth at all, or less than none.
    #[error(
        "the limit `{value}` of {metric} allows no growth, but equal builds may differ by a few \
         instructions, as their paths do; give more than 0%, such as 0.1%"
    )]
    Zero {
        /// The metric.
        metric: &'static str,
        /// As it was written.
        value: String,
    },
    /// Not the form of a limit.
    #[error("`{0}` is not a limit: write METRIC=PERCENT, such as instructions=0.5%")]
    Form(String),
}

fn known() -> String {
    Metric::ALL.map(Metric::name).join(", ")
}

/// The limits of one program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Limits(BTreeMap<Metric, Limit>);

impl Default for Limits {
    fn default() -> Limits {
        let all = Metric::ALL.into_iter();
        Limits(
            all.filter_map(|metric| {
                Some((metric, Limit { share: metric.usual_limit()?, floor: metric.floor() }))
            })
            .collect(),
        )
    }
}

impl Limits {
    /// The limit on a metric, where it has one.
    pub fn of(&self, metric: Metric) -> Option<Limit> {
        self.0.get(&metric).copied()
    }

    /// Sets the limit on the metric of this name: `0.5%`, or `none`.
    ///
    /// # Errors
    /// No such metric, no percentage, or one that allows no growth.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), LimitError> {
        let metric =
            Metric::of_name(name.trim()).ok_or_else(|| LimitError::Unknown { name: name.to_owned() })?;
        match share(metric, value.trim())? {
            Some(share) => self.0.insert(metric, Limit { share, floor: metric.floor() }),
            None => self.0.remove(&metric),
        };
        Ok(())
    }

    /// Sets a limit as the command line gives it: `instructions=0.5%`.
    ///
    /// # Errors
    /// As [`Limits::set`], or there is no `=`.
    pub fn set_word(&mut self, word: &str) -> Result<(), LimitError> {
        let (name, value) = word.split_once('=').ok_or_else(|| LimitError::Form(word.to_owned()))?;
        self.set(name, value)
    }
}

fn share(metric: Metric, value: &str) -> Result<Option<f64>, LimitError> {
    if value == NONE {
        return Ok(None);
    }
    let (metric, value_text) = (metric.name(), value.to_owned());
    let number = value.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    match number {
        Some(number) if number <= 0.0 => Err(LimitError::Zero { metric, value: value_text }),
        Some(_) => {
            let share = read_percent(value).filter(|share| *share > 0.0 && *share <= LARGEST);
            share.map(Some).ok_or(LimitError::Unit { metric, value: value_text })
        }
        None => Err(LimitError::Unit { metric, value: value_text }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_limits_are_on_counts_and_on_cpu_time() {
        let limits = Limits::default();
        let share = |metric| limits.of(metric).map(|limit| limit.share);
        assert_eq!(
            [Metric::Instructions, Metric::Live, Metric::Cpu].map(share),
            [0.005, 0.01, 0.03].map(Some)
        );
        assert_eq!([Metric::Resident, Metric::Faults, Metric::Startup].map(share), [None; 3]);
    }

    #[test]
    fn limits_are_set_and_taken_away() {
        let mut limits = Limits::default();
        limits.set_word("resident=5%").expect("a limit");
        limits.set("cpu", "none").expect("a limit");
        limits.set("instructions", "12.5 %").expect("a limit");
        assert_eq!(limits.of(Metric::Resident).map(|limit| limit.share), Some(0.05));
        assert_eq!(limits.of(Metric::Instructions).map(|limit| limit.text()).as_deref(), Some("12.5%"));
        assert_eq!(limits.of(Metric::Cpu), None);
    }

    #[test]
    fn what_is_no_limit_is_refused_with_what_there_is() {
        let error = |word: &str| Limits::default().set_word(word).expect_err(word);
        let unknown = error("speed=1%").to_string();
        assert!(
            unknown.contains("`speed`") && unknown.contains("instructions, malloc_instructions"),
            "{unknown}"
        );
        assert!(matches!(error("cpu=3"), LimitError::Unit { metric: "cpu", .. }));
        assert!(matches!(error("cpu=3ms"), LimitError::Unit { .. }));
        assert!(matches!(error("cpu=NaN%"), LimitError::Unit { .. }));
        assert!(matches!(error("cpu=0%"), LimitError::Zero { .. }));
        assert!(matches!(error("cpu=-1%"), LimitError::Zero { .. }));
        assert!(matches!(error("cpu"), LimitError::Form(_)));
    }

    #[test]
    fn a_floor_allows_the_growth_of_a_path() {
        let limit = Limit { share: 0.01, floor: 512.0 };
        assert_eq!([0.0, 1000.0, 1e6].map(|base| limit.most(base)), [512.0, 1512.0, 1_010_000.0]);
    }
}
