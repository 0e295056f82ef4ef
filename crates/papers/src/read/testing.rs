//! Output of commands for a tiny cfrac under two managers, shortened: lists that are not read are empty.

use heaptoll_experiment::experiment::Experiment;
use heaptoll_experiments::instructions;
use heaptoll_experiments::locality;
use heaptoll_statistics::Interval;
use heaptoll_trace_reports::lifetimes;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::definition::{Step, StepKind};
use crate::figures::{Cell, Value};

pub fn run() -> Experiment {
    #[derive(Deserialize)]
    struct Document {
        experiment: Experiment,
    }
    let document: Document = figures(include_str!("testdata/run.json"));
    document.experiment
}

pub fn instructions() -> instructions::Figures {
    figures(include_str!("testdata/instructions.json"))
}

pub fn locality() -> locality::Figures {
    figures(include_str!("testdata/locality.json"))
}

pub fn lifetimes() -> lifetimes::Figures {
    figures(include_str!("testdata/lifetimes.json"))
}

fn figures<T: DeserializeOwned>(text: &str) -> T {
    serde_json::from_str(text).expect("it is the command's JSON")
}

/// A ratio and its interval of so many pairs.
pub fn interval(ratio: f64, pairs: u32) -> Interval {
    Interval { ratio, low: ratio * 0.9, high: ratio * 1.1, differs: false, pairs }
}

/// The only value of a metric at a place.
pub fn one<'a>(cells: &'a [Cell], metric: &str, at: Option<f64>) -> &'a Value {
    let mut found = cells.iter().filter(|cell| cell.metric == metric && cell.at == at);
    let first = found.next().unwrap_or_else(|| panic!("no {metric} at {at:?}: {cells:#?}"));
    assert!(found.next().is_none(), "{metric} at {at:?} is there twice");
    &first.value
}

/// An estimate, or a single value.
pub fn number(of: &Value) -> f64 {
    match of {
        Value::Estimate { value, .. } | Value::Single(value) => *value,
        other => panic!("{other:?}"),
    }
}

/// A step called `s`.
pub fn step(kind: StepKind) -> Step {
    let text = "id = 's'\nkind = 'run'\nprograms = ['cfrac']\nmanagers = ['kingsley', 'bw16']";
    Step { kind, ..toml::from_str(text).expect("a step") }
}

/// The value of a metric of cfrac under a manager.
pub fn value(cells: &[Cell], manager: &str, metric: &str, at: Option<f64>) -> Option<Value> {
    let mut found = cells.iter().filter(|cell| {
        cell.step == "s"
            && cell.program == "cfrac"
            && cell.manager == manager
            && cell.metric == metric
            && cell.at == at
    });
    let value = found.next().map(|cell| cell.value.clone());
    assert!(found.next().is_none(), "{metric} of {manager} at {at:?} is there twice");
    value
}

/// Of an exact one, as many digits as the test gives.
#[track_caller]
pub fn assert_exact(cells: &[Cell], manager: &str, metric: &str, at: Option<f64>, wanted: f64) {
    match value(cells, manager, metric, at) {
        Some(Value::Exact(value)) => {
            assert!(
                (value - wanted).abs() <= 1e-9 * wanted.abs(),
                "{metric} of {manager}: {value}, not {wanted}"
            );
        }
        other => panic!("{metric} of {manager} at {at:?}: {other:?}"),
    }
}
