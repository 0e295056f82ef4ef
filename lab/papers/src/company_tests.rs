//! Made-up runs at once and alone with known answers.

use super::super::definition::{Quantity, Study};
use super::super::effect::Effect;
use super::super::figures::Figures;
use super::super::testing::{cells, compare, mean, samples, study};
use heaptoll_facts::Basis;

const A_OVER_B: &str = "of = { managers = [\"a\"] }, over = { managers = [\"b\"] }";

fn quantity() -> Quantity {
    let text = format!("q = {{ step = \"t\", metric = \"cpu_s\", {A_OVER_B} }}");
    let mut all: std::collections::BTreeMap<String, Quantity> = toml::from_str(&text).expect("a quantity");
    all.remove("q").expect("it is there")
}

/// Figures of `programs` under `a` and `b`: their ratio at once, and that of runs alone, which vary ten times as much.
fn both_ways(programs: &[&str], at_once: f64, alone: f64, repetitions: usize) -> Figures {
    let mut figures = Figures::default();
    for (number, program) in programs.iter().enumerate() {
        let seed = 5 * number as u64;
        let of = |metric: &str, ratio: f64, width: f64| {
            let vary = |value: super::Value| match value {
                super::Value::Samples(all) => super::Value::Samples(
                    all.into_iter()
                        .map(|one| one.map(|one| ratio * (one - 1.0).mul_add(width, 1.0)))
                        .collect(),
                ),
                other => other,
            };
            let a = vary(samples(1.0, repetitions, seed + 1));
            cells(
                "t",
                metric,
                &[(program, "a", None, a), (program, "b", None, samples(1.0, repetitions, seed + 2))],
            )
        };
        figures.cells.extend(of("cpu_s", at_once, 1.0).cells);
        figures.cells.extend(of("cpu_alone_s", alone, 10.0).cells);
    }
    figures
}

fn effects(study: &Study, figures: &Figures) -> Vec<Effect> {
    compare(&quantity(), study, figures).expect("figures")
}

#[test]
fn where_company_is_not_seen_the_interval_is_of_runs_at_once_and_one_percent_wider() {
    let figures = both_ways(&["cfrac"], 1.2, 1.2, 10);
    let wide = &effects(&study(""), &figures)[0];
    let plain =
        Figures { cells: figures.cells.iter().filter(|cell| cell.metric == "cpu_s").cloned().collect() };
    let narrow = &effects(&study(""), &plain)[0];
    assert_eq!((wide.value, wide.basis), (narrow.value, Basis::Pairs(10)));
    assert!(
        (wide.low * 1.01 / narrow.low - 1.0).abs() < 1e-9
            && (wide.high / 1.01 / narrow.high - 1.0).abs() < 1e-9
    );
    assert!(wide.low > 1.15 && wide.high < 1.25 && wide.words == narrow.words, "{wide:?}");
}

#[test]
fn where_company_is_seen_the_interval_reaches_over_both_and_its_words_state_it() {
    let one = &effects(&study(""), &both_ways(&["cfrac"], 1.2, 0.9, 10))[0];
    assert!(one.low < 0.9 && one.high > 1.2 && (one.value - 1.2).abs() < 0.02, "{one:?}");
    assert_eq!(one.words, "a over b on cfrac, in lockstep and in separate runs");
}

#[test]
fn a_stack_apart_has_the_interval_of_its_runs() {
    let mut figures = both_ways(&["cfrac"], 1.2, 1.2, 10);
    let values: Vec<_> = figures.cells.iter().filter(|cell| cell.metric == "cpu_s").cloned().collect();
    for (cell, same) in figures.cells.iter_mut().filter(|cell| cell.metric != "cpu_s").zip(values) {
        cell.fact.value = same.fact.value;
    }
    let plain =
        Figures { cells: figures.cells.iter().filter(|cell| cell.metric == "cpu_s").cloned().collect() };
    assert_eq!(effects(&study(""), &figures), effects(&study(""), &plain));
}

#[test]
fn without_enough_runs_alone_nothing_is_decided() {
    let mut figures = both_ways(&["cfrac"], 1.2, 1.2, 10);
    for cell in figures.cells.iter_mut().filter(|cell| cell.metric != "cpu_s") {
        if let super::Value::Samples(all) = &mut cell.fact.value {
            all.iter_mut().skip(3).for_each(|sample| *sample = None);
        }
    }
    assert_eq!(effects(&study(""), &figures)[0].basis, Basis::None);
}

#[test]
fn means_allow_for_company_too() {
    let of = |programs: &[&str], alone: f64| {
        mean(&quantity(), &study(""), &both_ways(programs, 1.2, alone, 10)).expect("figures").remove(0)
    };
    let (three, two) = (of(&["cfrac", "gawk", "perl"], 1.2), of(&["cfrac", "gawk"], 0.9));
    assert_eq!(three.basis, Basis::Programs(3));
    assert!(three.high / three.value > 1.01 && three.value / three.low > 1.01, "{three:?}");
    assert!(two.low < 0.92 && two.words.ends_with(", in lockstep and in separate runs"), "{two:?}");
}
