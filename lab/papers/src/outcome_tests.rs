//! Effects of made-up figures.

use proptest::prelude::{prop, prop_assert, proptest};

use super::super::testing::{cells, compare, mean, samples, study, trend};
use super::*;
use crate::variant::numbered;
use heaptoll_facts::{Basis, Value};

fn quantity(text: &str) -> Quantity {
    toml::from_str(text).expect("a quantity")
}

fn of(step: &str, metric: &str, more: &str) -> Quantity {
    quantity(&format!("step = \"{step}\"\nmetric = \"{metric}\"\n{more}"))
}

const A_OVER_B: &str = "of = { managers = [\"a\"] }\nover = { managers = [\"b\"] }";

fn exact(values: &[(&'static str, &'static str, f64)]) -> Figures {
    let cells_of: Vec<_> = values
        .iter()
        .map(|(program, manager, value)| (*program, *manager, None, Value::Exact(*value)))
        .collect();
    cells("c", "per_malloc", &cells_of)
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9 * b.abs().max(1.0)
}

#[test]
fn exact_counts_have_no_width() {
    let figures = exact(&[("cfrac", "a", 30.0), ("cfrac", "b", 20.0)]);
    let effects = compare(&of("c", "per_malloc", A_OVER_B), &study(""), &figures).expect("figures");
    assert_eq!(effects.len(), 1);
    let one = &effects[0];
    assert_eq!((one.words.as_str(), one.basis), ("a over b on cfrac", Basis::Exact));
    assert!(near(one.value, 1.5) && one.low == one.value && one.high == one.value);
}

#[test]
fn a_mean_over_programs_is_geometric_with_students_interval() {
    let figures = exact(&[
        ("cfrac", "a", 2.0),
        ("cfrac", "b", 1.0),
        ("gawk", "a", 4.0),
        ("gawk", "b", 1.0),
        ("perl", "a", 8.0),
        ("perl", "b", 1.0),
    ]);
    let effects = mean(&of("c", "per_malloc", A_OVER_B), &study(""), &figures).expect("figures");
    let one = &effects[0];
    assert_eq!((one.words.as_str(), one.basis), ("a over b, mean of 3 programs", Basis::Programs(3)));
    // Mean of 1, 2, 3 doublings; standard deviation one doubling; t with two degrees of freedom 4.303.
    let half = 4.302_652_73 / 3f64.sqrt();
    assert!(near(one.value, 4.0) && (one.high / 2f64.powf(2.0 + half) - 1.0).abs() < 1e-6, "{one:?}");
}

#[test]
fn means_of_several_managers_hold_together() {
    let both = "of = { managers = [\"a\", \"c\"] }\nover = { managers = [\"b\"] }";
    let mut values = Vec::new();
    for (program, ratio) in [("cfrac", 2.0), ("gawk", 4.0), ("perl", 8.0)] {
        values.extend([(program, "a", ratio), (program, "c", ratio), (program, "b", 1.0)]);
    }
    let figures = exact(&values);
    let alone = mean(&of("c", "per_malloc", A_OVER_B), &study(""), &figures).expect("figures");
    let together = mean(&of("c", "per_malloc", both), &study(""), &figures).expect("figures");
    assert_eq!(together.len(), 2);
    assert!(together[0].high > alone[0].high && near(together[0].value, alone[0].value));
}

#[test]
fn a_mean_of_two_programs_has_the_interval_of_repetitions() {
    let figures = cells(
        "t",
        "cpu_s",
        &[
            ("cfrac", "a", None, samples(1.2, 10, 1)),
            ("cfrac", "b", None, samples(1.0, 10, 2)),
            ("gawk", "a", None, samples(1.5, 10, 3)),
            ("gawk", "b", None, samples(1.0, 10, 4)),
        ],
    );
    let one = &mean(&of("t", "cpu_s", A_OVER_B), &study(""), &figures).expect("figures")[0];
    assert_eq!(one.basis, Basis::Pairs(10));
    assert!((one.value - 1.8f64.sqrt()).abs() < 0.01 && one.low > 1.3 && one.high < 1.4, "{one:?}");
}

#[test]
fn two_repetitions_have_no_interval_over_programs_either() {
    let mut values = Vec::new();
    for (program, seed) in [("cfrac", 1), ("gawk", 2), ("perl", 3), ("make", 4)] {
        values.push((program, "a", None, samples(2.0, 2, seed)));
        values.push((program, "b", None, samples(1.0, 2, seed + 9)));
    }
    let one =
        &mean(&of("t", "cpu_s", A_OVER_B), &study(""), &cells("t", "cpu_s", &values)).expect("figures")[0];
    assert_eq!((one.basis, one.low == one.value), (Basis::None, true), "{one:?}");
    assert!((one.value - 2.0).abs() < 0.05);
}

#[test]
fn a_program_with_too_few_runs_is_not_in_the_mean() {
    let mut values = Vec::new();
    for (program, runs, ratio) in
        [("cfrac", 10, 2.0), ("gawk", 10, 2.1), ("perl", 10, 2.2), ("make", 2, 50.0)]
    {
        values.push((program, "a", None, samples(ratio, runs, 1)));
        values.push((program, "b", None, samples(1.0, runs, 2)));
    }
    let one =
        &mean(&of("t", "cpu_s", A_OVER_B), &study(""), &cells("t", "cpu_s", &values)).expect("figures")[0];
    assert_eq!(one.basis, Basis::Programs(3));
    assert!(one.words.ends_with("mean of 3 programs") && one.value < 2.3, "{one:?}");
}

#[test]
fn the_least_of_several_is_each_programs_own() {
    let figures = exact(&[
        ("cfrac", "a", 10.0),
        ("cfrac", "b", 5.0),
        ("cfrac", "c", 8.0),
        ("gawk", "a", 10.0),
        ("gawk", "b", 9.0),
        ("gawk", "c", 4.0),
    ]);
    let text = "of = { managers = [\"a\"] }\nover = { managers = [\"b\", \"c\"] }\nagainst = \"lowest\"";
    let effects = compare(&of("c", "per_malloc", text), &study(""), &figures).expect("figures");
    assert_eq!(effects.iter().map(|one| one.value).collect::<Vec<_>>().len(), 2);
    assert!(near(effects[0].value, 2.0) && near(effects[1].value, 2.5), "{effects:?}");
    assert_eq!(effects[0].words, "a over the least of 2 managers on cfrac");
    let most = text.replace("lowest", "highest");
    let effects = compare(&of("c", "per_malloc", &most), &study(""), &figures).expect("figures");
    assert!(near(effects[0].value, 1.25) && near(effects[1].value, 10.0 / 9.0), "{effects:?}");
}

/// Repetitions in which one manager had none were left out, and the rest counted for all.
#[test]
fn repetitions_with_a_figure_of_none_leave_a_comparison_without_an_interval() {
    let pauses = |none: usize| {
        Value::Samples((0..10).map(|at| Some(if at < none { 0.0 } else { 2.0 + 0.01 * at as f64 })).collect())
    };
    let basis = |none: usize| {
        let values = [("cfrac", "a", None, pauses(none)), ("cfrac", "b", None, samples(1.0, 10, 2))];
        let figures = cells("t", "pause_total_s", &values);
        compare(&of("t", "pause_total_s", A_OVER_B), &study(""), &figures).expect("figures")[0].basis
    };
    assert_eq!((basis(0), basis(1)), (Basis::Pairs(10), Basis::None));
}

/// A program that lacks one of the managers was a mean of its own.
#[test]
fn a_mean_over_the_least_of_several_has_every_program() {
    let mut values = Vec::new();
    for program in ["cfrac", "gawk", "perl", "make"] {
        values.extend([(program, "a", 4.0), (program, "b", 2.0)]);
        if program != "make" {
            values.push((program, "c", 3.0));
        }
    }
    let quantity = of(
        "c",
        "per_malloc",
        "of = { managers = [\"a\"] }\nover = { managers = [\"b\", \"c\"] }\nagainst = \"lowest\"",
    );
    let effects = mean(&quantity, &study(""), &exact(&values)).expect("figures");
    assert_eq!(effects.len(), 1, "{effects:?}");
    assert_eq!(effects[0].words, "a over the least of 2 managers, mean of 4 programs");
}

#[test]
fn variants_are_compared_under_the_same_manager() {
    let figures = exact(&[
        ("cfrac:optimized", "a", 2.0),
        ("cfrac", "a", 4.0),
        ("cfrac:optimized", "b", 3.0),
        ("cfrac", "b", 9.0),
        ("gawk", "a", 1.0),
    ]);
    let text = "of = {}\nover = { variant = \"optimized\" }";
    let effects = compare(&of("c", "per_malloc", text), &study(""), &figures).expect("figures");
    let words: Vec<&str> = effects.iter().map(|one| one.words.as_str()).collect();
    assert_eq!(words, ["plain over optimized under a on cfrac", "plain over optimized under b on cfrac"]);
    assert!(near(effects[0].value, 2.0) && near(effects[1].value, 3.0));
}

#[test]
fn one_metric_is_compared_with_another_of_the_same_cell() {
    let mut figures = exact(&[("cfrac", "a", 12.0)]);
    figures.cells.extend(cells("c", "per_free", &[("cfrac", "a", None, Value::Exact(4.0))]).cells);
    let text = "of = {}\nover = { metric = \"per_free\" }";
    let effects = compare(&of("c", "per_malloc", text), &study(""), &figures).expect("figures");
    assert_eq!(effects[0].words, "per_malloc over per_free under a on cfrac");
    assert!(near(effects[0].value, 3.0));
}

#[test]
fn programs_are_compared_with_another_program() {
    let figures = exact(&[("cfrac", "a", 2.0), ("gawk", "a", 6.0), ("perl", "a", 8.0)]);
    let text = "of = { managers = [\"a\"] }\nover = { program = \"cfrac\" }";
    let effects = compare(&of("c", "per_malloc", text), &study(""), &figures).expect("figures");
    let words: Vec<&str> = effects.iter().map(|one| one.words.as_str()).collect();
    assert_eq!(words, ["gawk over cfrac, under a", "perl over cfrac, under a"]);
    let mean = mean(&of("c", "per_malloc", text), &study(""), &figures).expect("figures");
    assert_eq!(mean[0].words, "over cfrac, under a, mean of 2 programs");
}

#[test]
fn nothing_is_compared_with_itself() {
    let figures = exact(&[("cfrac", "a", 12.0), ("cfrac", "b", 6.0)]);
    let text = "of = { managers = [\"a\", \"b\"] }\nover = { managers = [\"a\", \"b\"] }";
    let effects = compare(&of("c", "per_malloc", text), &study(""), &figures).expect("figures");
    assert_eq!(
        effects.iter().map(|one| one.words.as_str()).collect::<Vec<_>>(),
        ["a over b on cfrac", "b over a on cfrac"]
    );
}

#[test]
fn a_count_over_none_is_a_million_times_as_much_and_none_over_none_is_nothing() {
    let figures = exact(&[("cfrac", "a", 12.0), ("cfrac", "b", 0.0), ("gawk", "a", 0.0), ("gawk", "b", 0.0)]);
    let effects = compare(&of("c", "per_malloc", A_OVER_B), &study(""), &figures).expect("figures");
    assert_eq!(effects.len(), 1);
    assert!(effects[0].value > 1e6 && effects[0].value.is_finite());
}

/// JSON holds no infinity: a mean over programs that differ by factors of a million has ends nevertheless.
#[test]
fn the_widest_interval_is_finite() {
    let both = "of = { managers = [\"a\"] }\nover = { managers = [\"b\", \"c\"] }";
    let figures = exact(&[
        ("cfrac", "a", 1.0),
        ("cfrac", "b", 0.0),
        ("cfrac", "c", 1.0),
        ("gawk", "a", 0.0),
        ("gawk", "b", 1.0),
        ("gawk", "c", 1e300),
        ("perl", "a", 1.0),
        ("perl", "b", 1.0),
        ("perl", "c", 1e-300),
    ]);
    for effect in mean(&of("c", "per_malloc", both), &study(""), &figures).expect("figures") {
        assert!(effect.low > 0.0 && effect.high.is_finite(), "{effect:?}");
    }
}

/// Bytes by second are billions: they were all shown as e^14, where ratios of likes end.
#[test]
fn a_ratio_of_unlike_figures_may_be_above_a_million() {
    let mut figures = exact(&[("cfrac", "a", 5e9)]);
    figures.cells.extend(cells("c", "per_free", &[("cfrac", "a", None, Value::Exact(0.5))]).cells);
    let text = "of = {}\nover = { metric = \"per_free\" }";
    let effects = compare(&of("c", "per_malloc", text), &study(""), &figures).expect("figures");
    assert!((effects[0].value / 1e10 - 1.0).abs() < 1e-9, "{effects:?}");
    assert!(
        (mean(&of("c", "per_malloc", text), &study(""), &figures).expect("figures")[0].value / 1e10 - 1.0)
            .abs()
            < 1e-9
    );
}

#[test]
fn estimates_keep_their_interval() {
    let estimate = Value::Estimate { value: 1.1, low: 1.05, high: 1.2 };
    let figures = cells("c", "time_ratio", &[("cfrac", "a", Some(4096.0), estimate)]);
    let quantity = of("c", "time_ratio", "of = { managers = [\"a\"] }\nat = [4096.0]");
    let effects = compare(&quantity, &study(""), &figures).expect("figures");
    assert_eq!((effects[0].low, effects[0].high, effects[0].basis), (1.05, 1.2, Basis::Estimate));
    let elsewhere = of("c", "time_ratio", "of = { managers = [\"a\"] }\nat = [8192.0]");
    assert!(compare(&elsewhere, &study(""), &figures).is_err());
}

#[test]
fn a_slope_is_found_over_programs_and_over_points() {
    let mut values = Vec::new();
    for (program, slope) in [("cfrac", 0.9), ("gawk", 1.0), ("perl", 1.1)] {
        for at in [1.0f64, 2.0, 4.0, 8.0] {
            values.push((program, "a", Some(at), Value::Exact(3.0 * at.powf(slope))));
        }
    }
    let quantity = of("c", "page_faults", "of = { managers = [\"a\"] }");
    let one = &trend(&quantity, &study(""), &cells("c", "page_faults", &values)).expect("figures")[0];
    assert!(
        near(one.value, 1.0) && one.basis == Basis::Programs(3) && one.low > 0.7 && one.high < 1.3,
        "{one:?}"
    );
    let one = &trend(&quantity, &study(""), &cells("c", "page_faults", &values[..4])).expect("figures")[0];
    assert!(near(one.value, 0.9) && one.basis == Basis::Points(4), "{one:?}");
    assert!(trend(&quantity, &study(""), &cells("c", "page_faults", &values[..1])).is_err());
}

/// Two slopes of three programs, the third of which has one place, were each at 5 %, as if they were one mean.
#[test]
fn slopes_of_two_programs_of_three_hold_together() {
    let line = |program: &'static str, places: &[f64]| {
        let value = |at: f64| Value::Exact(at * if at == 2.0 { 1.1 } else { 1.0 });
        places.iter().map(|at| (program, "a", Some(*at), value(*at))).collect::<Vec<_>>()
    };
    let two = [line("cfrac", &[1.0, 2.0, 4.0]), line("gawk", &[1.0, 2.0, 4.0])].concat();
    let three = [two.clone(), line("perl", &[1.0])].concat();
    let width = |values: &[(&'static str, &'static str, Option<f64>, Value)]| {
        let figures = cells("c", "per_malloc", values);
        let found = trend(&of("c", "per_malloc", "of = { managers = [\"a\"] }"), &study(""), &figures);
        let effects = found.expect("figures");
        assert_eq!(effects.len(), 2, "{effects:?}");
        effects[0].high - effects[0].low
    };
    assert!(near(width(&three), width(&two)), "{} {}", width(&three), width(&two));
}

#[test]
fn the_number_of_a_variant_is_a_place() {
    let values: Vec<_> = [("churn:1", 1.0), ("churn:2", 1.0), ("churn:4", 1.0), ("churn:8", 1.0)]
        .map(|(program, value)| (program, "a", None, Value::Exact(value)))
        .into();
    let quantity = of("c", "heap_high_kib", "of = { managers = [\"a\"] }");
    let one = &trend(&quantity, &study(""), &cells("c", "heap_high_kib", &values)).expect("figures")[0];
    assert!(one.value.abs() < 1e-9 && one.words.contains("on churn over 4 places"), "{one:?}");
    assert_eq!(numbered("crossover:64K"), Some(("crossover", 65536.0)));
    assert_eq!(numbered("cfrac:gc"), None);
}

#[test]
fn what_is_missing_is_named() {
    let none = compare(&of("t", "cpu_s", A_OVER_B), &study(""), &Figures::default());
    assert_eq!(none, Err(Missing("step t gave no figures".into())));
    let figures = exact(&[("cfrac", "a", 12.0)]);
    let none = compare(&of("c", "per_malloc", A_OVER_B), &study(""), &figures);
    assert_eq!(none, Err(Missing("step c has no per_malloc to compare under a in this form".into())));
}

proptest! {
    #[test]
    fn an_interval_holds_its_value(
        values in prop::collection::vec((prop::collection::vec(prop::option::of(0.1f64..9.0), 1..12), prop::collection::vec(prop::option::of(0.1f64..9.0), 12)), 1..4),
    ) {
        let programs = ["cfrac", "gawk", "perl", "make"];
        let mut made = Vec::new();
        for ((a, b), program) in values.into_iter().zip(programs) {
            made.push((program, "a", None, Value::Samples(a)));
            made.push((program, "b", None, Value::Samples(b)));
        }
        let figures = cells("t", "cpu_s", &made);
        for rule in [Rule::All, Rule::Mean] {
            let Ok(outcome) = by_rule(rule, Estimand::ProgramsLikeThese, &of("t", "cpu_s", A_OVER_B), &study(""), &figures) else { continue };
            for effect in outcome.effects {
                prop_assert!(effect.low <= effect.value * (1.0 + 1e-9) && effect.value <= effect.high * (1.0 + 1e-9), "{effect:?}");
                prop_assert!(effect.basis != Basis::None || effect.low == effect.high);
                prop_assert!(effect.low.is_finite() && effect.high.is_finite());
            }
        }
    }
}
