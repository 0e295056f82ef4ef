//! Output of commands for a tiny cfrac under two managers, shortened: lists that are not read are empty.

use crate::definition::{Step, StepKind};
use crate::figures::{Cell, Value};

pub fn run() -> serde_json::Value {
    json(include_str!("testdata/run.json"))
}

pub fn instructions() -> serde_json::Value {
    json(include_str!("testdata/instructions.json"))
}

pub fn locality() -> serde_json::Value {
    json(include_str!("testdata/locality.json"))
}

pub fn lifetimes() -> serde_json::Value {
    json(include_str!("testdata/lifetimes.json"))
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).expect("it is JSON")
}

/// A step called `s`.
pub fn step(kind: StepKind) -> Step {
    let text = format!(
        "id = 's'\nkind = '{}'\nprograms = ['cfrac']\nmanagers = ['kingsley', 'bw16']",
        kind.command()
    );
    toml::from_str(&text).expect("a step")
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
