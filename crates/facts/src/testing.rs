//! Finds facts in tests.

use heaptoll_statistics::Interval;

use crate::{Comparative, Fact, Value};

/// The facts of figures, each of a metric that they declare.
///
/// # Panics
/// One is of another.
pub fn measured<F: Comparative>(figures: &F) -> Vec<Fact> {
    let facts = figures.facts().measured;
    let is_known = |fact: &&Fact| F::METRICS.iter().any(|metric| metric.is(&fact.metric));
    assert_eq!(facts.iter().find(|fact| !is_known(fact)), None, "studies can name each metric");
    facts
}

/// A ratio and its interval of this number of pairs.
pub fn interval(ratio: f64, pairs: u32) -> Interval {
    Interval { ratio, low: ratio * 0.9, high: ratio * 1.1, differs: false, pairs }
}

/// The only value of a metric at a place.
///
/// # Panics
/// There is none, or more than one.
pub fn one<'a>(facts: &'a [Fact], metric: &str, at: Option<f64>) -> &'a Value {
    let mut found = facts.iter().filter(|fact| fact.metric == metric && fact.at == at);
    let first = found.next().unwrap_or_else(|| panic!("no {metric} at {at:?}: {facts:#?}"));
    assert!(found.next().is_none(), "{metric} at {at:?} is there twice");
    &first.value
}

/// An estimate, or a single value.
///
/// # Panics
/// It is another.
pub fn number(of: &Value) -> f64 {
    match of {
        Value::Estimate { value, .. } | Value::Single(value) => *value,
        other => panic!("{other:?}"),
    }
}

/// The value of a metric of the only program under a manager.
///
/// # Panics
/// It is there twice.
pub fn value(facts: &[Fact], manager: &str, metric: &str, at: Option<f64>) -> Option<Value> {
    let mut found =
        facts.iter().filter(|fact| fact.manager == manager && fact.metric == metric && fact.at == at);
    let value = found.next().map(|fact| fact.value.clone());
    assert!(found.next().is_none(), "{metric} of {manager} at {at:?} is there twice");
    value
}

/// Of an exact one, as many digits as the test gives.
///
/// # Panics
/// It is another.
#[track_caller]
pub fn assert_exact(facts: &[Fact], manager: &str, metric: &str, at: Option<f64>, wanted: f64) {
    match value(facts, manager, metric, at) {
        Some(Value::Exact(value)) => {
            assert!(
                (value - wanted).abs() <= 1e-9 * wanted.abs(),
                "{metric} of {manager}: {value}, not {wanted}"
            );
        }
        other => panic!("{metric} of {manager} at {at:?}: {other:?}"),
    }
}
