//! The region that a test claims, and where an effect lies to it.
//!
//! A region around 1 is an equivalence: it holds where both one-sided tests of its ends reject (TOST), each at 2.5 %, for
//! then the whole interval of 95 % lies in it.

use super::definition::{Rule, Test};
use super::effect::Effect;
use heaptoll_facts::Basis;
use heaptoll_laboratory::comparative;

/// The least difference between counts that is an order.
const LEAST_DIFFERENCE: f64 = 0.01;
/// What is in the names of a program's own figures that are counts.
const OF_COUNTS: [&str; 6] = ["_kib", "faults", "space_", "live_", "heap_ratio", "heap_over"];

/// Where an effect lies relative to a claim's region, and whether it does for certain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Placement {
    /// The whole interval is in the region.
    In,
    /// The whole interval is outside.
    Out,
    /// The interval holds an end of the region, or there is none.
    Unknown,
}

/// Where a test requires comparisons to lie.
#[derive(Clone, Copy)]
pub(super) struct Region {
    pub above: Option<f64>,
    pub below: Option<f64>,
    /// It is what lies beyond the two.
    pub outside: bool,
    /// Of an order of counts: those that differ by less are in none.
    pub least: f64,
}

impl Region {
    pub fn of(test: &Test) -> Region {
        let metric = test.quantity.of.metric.as_ref().unwrap_or(&test.quantity.metric);
        let least = if test.is_order() && is_count(metric) { LEAST_DIFFERENCE } else { 0.0 };
        Region { above: test.above, below: test.below, outside: test.outside, least }
    }
}

/// Whether a metric counts pieces or memory, and measures no time.
fn is_count(metric: &str) -> bool {
    let mut all = comparative::ALL.iter().flat_map(|command| command.metrics);
    let is_own = || metric.starts_with("figure_") && OF_COUNTS.iter().any(|part| metric.contains(part));
    all.any(|known| known.is_count && known.is(metric)) || is_own()
}

pub(super) fn placement(effect: &Effect, region: Region) -> Placement {
    if effect.basis == Basis::None {
        return Placement::Unknown;
    }
    let least = |end: f64| if end == 1.0 { region.least } else { 0.0 };
    let beyond = |by: f64, end: f64| by > 0.0 && by >= least(end);
    let is_above = |end: f64| beyond(effect.low - end, end);
    let is_below = |end: f64| beyond(end - effect.high, end);
    // At the end itself it is outside, and in no order.
    let not_above = |end: f64| is_below(end) || (effect.high == end && least(end) == 0.0);
    let not_below = |end: f64| is_above(end) || (effect.low == end && least(end) == 0.0);
    let Region { above, below, outside, .. } = region;
    let (inside, out) = match outside {
        false => (
            above.is_none_or(is_above) && below.is_none_or(is_below),
            above.is_some_and(not_above) || below.is_some_and(not_below),
        ),
        true => (
            above.is_some_and(is_above) || below.is_some_and(is_below),
            above.is_none_or(not_above) && below.is_none_or(not_below),
        ),
    };
    match (inside, out) {
        (true, _) => Placement::In,
        (_, true) => Placement::Out,
        _ => Placement::Unknown,
    }
}

/// `above 1 and below 2`.
pub(super) fn region(test: &Test) -> String {
    let ends = [test.above.map(|end| ("above", end)), test.below.map(|end| ("below", end))];
    let words: Vec<String> = ends.iter().flatten().map(|(side, end)| format!("{side} {end}")).collect();
    match test.rule {
        Rule::Both => format!("{} on another", words.join(" on one, ")),
        _ => words.join(if test.outside { " or " } else { " and " }),
    }
}

/// The smallest ratio above 1 that an effect's interval would have shown.
pub(super) fn detectable(rule: Rule, effect: &Effect) -> Option<f64> {
    let Effect { value, low, high, basis, .. } = effect;
    match basis {
        Basis::None | Basis::Exact => None,
        // By how much a figure changes when its place doubles.
        _ if rule == Rule::Trend => Some(((high - value).max(value - low) * std::f64::consts::LN_2).exp()),
        _ if *low > 0.0 && *value > 0.0 => Some((high / value).max(value / low)),
        _ => None,
    }
}

/// By how far an effect is on the side of the region's nearest end: the least is what comes nearest to failing.
pub(super) fn margin(test: &Test, effect: &Effect) -> f64 {
    let scale =
        |a: f64, b: f64| if a > 0.0 && b > 0.0 && test.rule != Rule::Trend { (a / b).ln() } else { a - b };
    let above = test.above.map(|end| scale(effect.low, end));
    let below = test.below.map(|end| scale(end, effect.high));
    let ends = above.into_iter().chain(below);
    if test.outside { ends.fold(f64::NEG_INFINITY, f64::max) } else { ends.fold(f64::INFINITY, f64::min) }
}
