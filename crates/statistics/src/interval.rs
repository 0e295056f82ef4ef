//! A ratio and how far it is certain.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A ratio to the baseline with its interval; simultaneous over all ratios of its table (family-wise 95 %).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(into = "StatedInterval")]
pub struct Interval {
    /// Trimmed geometric mean of the paired ratios (with fewer than six pairs the plain one).
    pub ratio: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Whether the interval excludes 1: only then is a difference claimed.
    pub differs: bool,
    /// Number of pairs it rests on.
    pub pairs: u32,
}

/// What a ratio shows, in one word for scripts; the sentences beside it may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Less than the baseline.
    Less,
    /// More than the baseline.
    More,
    /// No difference was detected.
    None,
    /// There were too few pairs to detect one.
    TooFew,
}

impl Interval {
    /// What the ratio shows.
    pub fn state(&self) -> State {
        if !self.has_enough_pairs() {
            State::TooFew
        } else if !self.differs {
            State::None
        } else if self.ratio < 1.0 {
            State::Less
        } else {
            State::More
        }
    }
}

/// An interval as JSON has it: with its state.
#[derive(Serialize, JsonSchema)]
struct StatedInterval {
    /// Trimmed geometric mean of the paired ratios (with fewer than six pairs the plain one).
    ratio: f64,
    /// Lower end.
    low: f64,
    /// Upper end.
    high: f64,
    /// Whether the interval excludes 1: only then is a difference claimed.
    differs: bool,
    /// Number of pairs it rests on.
    pairs: u32,
    /// What the ratio shows.
    state: State,
}

impl From<Interval> for StatedInterval {
    fn from(interval: Interval) -> StatedInterval {
        let state = interval.state();
        let Interval { ratio, low, high, differs, pairs } = interval;
        StatedInterval { ratio, low, high, differs, pairs, state }
    }
}
