//! Verdicts of made-up figures: each rule holds, fails and is undecided.

use proptest::prelude::{prop, prop_assert, prop_assert_eq, proptest};

use super::super::testing::{cells, claiming, noisy, samples, study};
use super::*;
use heaptoll_facts::Value;

fn effect(low: f64, high: f64) -> Effect {
    Effect { words: "x over y".into(), value: (low * high).sqrt(), low, high, basis: Basis::Pairs(10) }
}

fn rule(rule: &str, more: &str) -> Test {
    let text = format!(
        "words = \"w\"\nrule = \"{rule}\"\nquantity = {{ step = \"t\", metric = \"cpu_s\", of = {{}} }}\n{more}"
    );
    toml::from_str(&text).expect("a test")
}

const IN: (f64, f64) = (1.2, 1.4);
const OUT: (f64, f64) = (0.7, 0.9);
const OPEN: (f64, f64) = (0.9, 1.1);

fn decided(test: &Test, intervals: &[(f64, f64)]) -> Answer {
    let effects: Vec<Effect> = intervals.iter().map(|(low, high)| effect(*low, *high)).collect();
    decide(test, &effects)
}

#[test]
fn all_holds_when_all_are_in_and_fails_when_one_is_out() {
    for name in ["all", "mean", "trend"] {
        let test = rule(name, "above = 1.0");
        assert_eq!(decided(&test, &[IN, IN, IN]), Answer::Holds, "{name}");
        assert_eq!(decided(&test, &[IN, OPEN, IN]), Answer::Undecided, "{name}");
        assert_eq!(decided(&test, &[IN, OPEN, OUT]), Answer::Fails, "{name}");
    }
}

#[test]
fn some_holds_when_one_is_in_and_fails_when_all_are_out() {
    let test = rule("some", "above = 1.0");
    assert_eq!(decided(&test, &[OUT, OPEN, IN]), Answer::Holds);
    assert_eq!(decided(&test, &[OUT, OPEN, OUT]), Answer::Undecided);
    assert_eq!(decided(&test, &[OUT, OUT]), Answer::Fails);
}

#[test]
fn most_counts_what_is_certain() {
    let half = rule("most", "above = 1.0");
    assert_eq!(decided(&half, &[IN, IN, OPEN]), Answer::Holds);
    assert_eq!(decided(&half, &[IN, OPEN, OPEN]), Answer::Undecided);
    assert_eq!(decided(&half, &[OUT, OUT, OPEN]), Answer::Fails);
    assert_eq!(decided(&half, &[IN, OUT]), Answer::Fails, "half is not most");
    let many = rule("most", "above = 1.0\nshare = 0.7");
    assert_eq!(decided(&many, &[IN, IN, OUT]), Answer::Fails);
    assert_eq!(decided(&many, &[IN, IN, IN, OUT]), Answer::Holds);
}

#[test]
fn both_needs_one_above_and_one_below() {
    let test = rule("both", "above = 1.0\nbelow = 1.0");
    assert_eq!(decided(&test, &[IN, OUT]), Answer::Holds);
    assert_eq!(decided(&test, &[IN, OPEN]), Answer::Undecided);
    assert_eq!(decided(&test, &[IN, IN]), Answer::Fails);
    assert_eq!(decided(&test, &[OUT, OUT]), Answer::Fails);
}

#[test]
fn a_region_may_have_two_ends() {
    let test = rule("all", "above = 0.95\nbelow = 1.05");
    assert_eq!(decided(&test, &[(0.98, 1.02)]), Answer::Holds);
    assert_eq!(decided(&test, &[(0.90, 1.02)]), Answer::Undecided);
    assert_eq!(decided(&test, &[(0.80, 0.90)]), Answer::Fails);
    assert_eq!(decided(&test, &[(1.10, 1.20)]), Answer::Fails);
    assert_eq!(
        decided(&test, &[(0.5, 2.0)]),
        Answer::Undecided,
        "an interval around the region decides nothing"
    );
}

#[test]
fn a_region_may_lie_outside_of_its_ends() {
    let test = rule("some", "above = 1.1\nbelow = 0.9\noutside = true");
    assert_eq!(decided(&test, &[(0.95, 1.05), (1.2, 1.3)]), Answer::Holds);
    assert_eq!(decided(&test, &[(0.95, 1.05), (0.7, 0.8)]), Answer::Holds);
    assert_eq!(decided(&test, &[(0.95, 1.05), (0.9, 1.1)]), Answer::Fails, "both ends are not in it");
    assert_eq!(decided(&test, &[(0.95, 1.05), (1.0, 1.2)]), Answer::Undecided);
    assert_eq!(region(&test), "above 1.1 or below 0.9");
    let all = rule("all", "above = 1.1\nbelow = 0.9\noutside = true");
    assert_eq!(decided(&all, &[(1.2, 1.3), (0.7, 0.8)]), Answer::Holds);
    assert_eq!(decided(&all, &[(1.2, 1.3), (0.95, 1.05)]), Answer::Fails);
}

/// The front page had a claim as refuted, and not that it was one case of 42.
#[test]
fn a_claim_about_every_case_states_how_many_contradict_it() {
    let second = SLOWER.replace("\"a\"", "\"c\"").replace("\"cfrac\"", "\"cfrac\", \"gawk\"");
    let study = claiming(&format!("{SLOWER}\n[[claim.test]]\nwords = \"and this?\"\n{second}"));
    let timed = |gawk: f64| {
        let values = [
            ("cfrac", "a", None, samples(1.2, 10, 1)),
            ("cfrac", "b", None, samples(1.0, 10, 2)),
            ("cfrac", "c", None, samples(1.3, 10, 3)),
            ("gawk", "b", None, samples(1.0, 10, 4)),
            ("gawk", "c", None, samples(gawk, 10, 5)),
        ];
        judged(&study, &cells("t", "cpu_s", &values))
    };
    let fails = timed(0.8);
    assert_eq!(fails.answer, Answer::Fails);
    assert!(fails.reason.contains("; 1 of 3 comparisons in all contradicts the claim"), "{}", fails.reason);
    assert!(!timed(1.5).reason.contains("comparisons in all"), "{}", timed(1.5).reason);
}

#[test]
fn a_value_without_an_interval_decides_nothing() {
    let alone = Effect { basis: Basis::None, ..effect(5.0, 5.0) };
    for name in ["all", "some", "most", "both", "mean", "trend"] {
        assert_eq!(
            decide(&rule(name, "above = 1.0\nbelow = 2.0"), std::slice::from_ref(&alone)),
            Answer::Undecided,
            "{name}"
        );
    }
}

#[test]
fn an_exact_count_at_the_end_of_the_region_is_outside() {
    let one = Effect { basis: Basis::Exact, ..effect(1.0, 1.0) };
    assert_eq!(decide(&rule("all", "above = 1.0"), std::slice::from_ref(&one)), Answer::Fails);
    assert_eq!(decide(&rule("all", "below = 1.0"), &[one]), Answer::Fails);
}

const SLOWER: &str = r#"
    rule = "all"
    above = 1.0
    quantity = { step = "t", programs = ["cfrac"], metric = "cpu_s", of = { managers = ["a"] }, over = { managers = ["b"] } }
"#;

fn judged(study: &Study, figures: &Figures) -> Verdict {
    judge(study, &study.claims[0], figures, &Absent::default())
}

#[test]
fn timed_claims_hold_fail_and_stay_open_by_their_pairs() {
    let study = claiming(SLOWER);
    let timed = |a: Value, b: Value| cells("t", "cpu_s", &[("cfrac", "a", None, a), ("cfrac", "b", None, b)]);
    let holds = judged(&study, &timed(samples(1.2, 10, 1), samples(1.0, 10, 2)));
    assert_eq!(holds.answer, Answer::Holds, "{holds:?}");
    assert!(holds.reason.starts_with("1.20 (1.19 to 1.2"), "{}", holds.reason);
    let fails = judged(&study, &timed(samples(1.0, 10, 1), samples(1.2, 10, 2)));
    assert_eq!(fails.answer, Answer::Fails, "{fails:?}");
    let open = judged(&study, &timed(noisy(1.0, 10, 1), noisy(1.0, 10, 2)));
    assert_eq!(open.answer, Answer::Undecided, "{open:?}");
    let detectable = open.tests[0].detectable.expect("an interval");
    assert!(detectable > 1.2 && detectable < 20.0, "{detectable}");
    let decided = |verdict: &Verdict| verdict.reason.contains("repetitions would decide");
    let with_gawk = claiming(&SLOWER.replace("\"cfrac\"", "\"cfrac\", \"gawk\""));
    let lacks_gawk = judged(&with_gawk, &timed(noisy(1.1, 10, 1), noisy(1.0, 10, 2)));
    assert!(!decided(&lacks_gawk), "no repetition brings a program: {}", lacks_gawk.reason);
    assert!(decided(&judged(&study, &timed(noisy(1.1, 10, 1), noisy(1.0, 10, 2)))));
    let quick = judged(&study, &timed(samples(9.0, 2, 1), samples(1.0, 2, 2)));
    assert_eq!((quick.answer, quick.tests[0].detectable), (Answer::Undecided, None));
    assert!(quick.reason.contains("without an interval nothing is decided"), "{}", quick.reason);
}

#[test]
fn many_comparisons_are_counted_and_the_least_clear_is_named() {
    let test = "rule = \"all\"\nabove = 1.0\nquantity = { step = \"c\", metric = \"per_malloc\", of = { managers = \
                [\"a\"] }, over = { managers = [\"b\"] } }";
    let reason = |ratios: [f64; 3]| {
        let mut values = Vec::new();
        for (program, ratio) in ["cfrac", "gawk", "perl"].into_iter().zip(ratios) {
            values
                .extend([(program, "a", None, Value::Exact(ratio)), (program, "b", None, Value::Exact(1.0))]);
        }
        judged(&claiming(test), &cells("c", "per_malloc", &values)).reason
    };
    let without = "; there is no such figure of make";
    let least = "the least clear: 1.50, counted exactly: a over b on gawk";
    assert_eq!(
        reason([2.0, 1.5, 3.0]),
        format!("all 3 comparisons are above 1; {least}{without}, and they could turn the answer")
    );
    let furthest = "furthest from it: 0.500, counted exactly: a over b on gawk";
    assert_eq!(
        reason([2.0, 0.5, 3.0]),
        format!("2 of 3 comparisons are above 1 for certain, 1 lies outside; {furthest}{without}")
    );
    assert!(reason([0.9, 0.5, 0.9]).starts_with("none of 3 comparisons is above 1; furthest"));
}

/// A claim on the mean over four programs failed by the one that the quick form ran.
#[test]
fn a_mean_is_not_decided_by_one_program_of_four() {
    let test = "rule = \"mean\"\nabove = 1.0\nquantity = { step = \"c\", metric = \"per_malloc\", of = { managers = \
                [\"a\"] }, over = { managers = [\"b\"] } }";
    let counted =
        |program| [(program, "a", None, Value::Exact(2.0)), (program, "b", None, Value::Exact(1.0))];
    let one = judged(&claiming(test), &cells("c", "per_malloc", &counted("cfrac")));
    assert_eq!(one.answer, Answer::Undecided);
    assert!(one.reason.contains("claim: a mean of 4 programs; a mean of fewer"), "{}", one.reason);
    let three = [counted("cfrac"), counted("gawk"), counted("perl")].concat();
    assert_eq!(judged(&claiming(test), &cells("c", "per_malloc", &three)).answer, Answer::Holds);
    let named = test.replace("metric =", "programs = [\"cfrac\"], metric =");
    let alone = judged(&claiming(&named), &cells("c", "per_malloc", &counted("cfrac")));
    assert_eq!(alone.answer, Answer::Holds, "where one is requested, one suffices");
}

#[test]
fn a_step_that_was_left_out_is_not_measured_with_its_reason() {
    let study = claiming(SLOWER);
    let mut absent = Absent::default();
    absent.step("t", "there was no time for it");
    let verdict = judge(&study, &study.claims[0], &Figures::default(), &absent);
    assert_eq!(verdict.answer, Answer::NotMeasured);
    assert_eq!(verdict.reason, "step t: there was no time for it");
    assert_eq!(judged(&study, &Figures::default()).reason, "step t gave no figures");
}

#[test]
fn a_system_that_is_not_built_is_not_measured() {
    let study = study(
        "[[claim]]\nid = \"it\"\nplace = \"§1\"\nwords = \"copying is faster\"\nnot_built = \"no copying collector is built\"",
    );
    let verdict = judged(&study, &Figures::default());
    assert_eq!(
        (verdict.answer, verdict.reason.as_str()),
        (Answer::NotMeasured, "no copying collector is built")
    );
}

#[test]
fn the_figures_of_a_myth_test_the_myth() {
    let mut study = claiming(SLOWER);
    study.claims[0].myth = true;
    let figures = cells(
        "t",
        "cpu_s",
        &[("cfrac", "a", None, samples(1.0, 10, 1)), ("cfrac", "b", None, samples(2.0, 10, 2))],
    );
    let verdict = judged(&study, &figures);
    assert!(verdict.myth && verdict.answer == Answer::Fails, "the paper is right: {verdict:?}");
}

#[test]
fn one_test_that_fails_decides_and_one_without_figures_leaves_the_claim_unmeasured() {
    let second = |metric: &str| {
        format!(
            "{SLOWER}\n[[claim.test]]\nwords = \"and this?\"\nrule = \"all\"\nabove = 1.0\nquantity = {{ step = \"c\", \
             metric = \"{metric}\", programs = [\"cfrac\"], of = {{ managers = [\"a\"] }}, over = {{ managers = [\"b\"] }} }}"
        )
    };
    let study = claiming(&second("per_malloc"));
    let mut figures = cells(
        "t",
        "cpu_s",
        &[("cfrac", "a", None, samples(2.0, 10, 1)), ("cfrac", "b", None, samples(1.0, 10, 2))],
    );
    assert_eq!(judged(&study, &figures).answer, Answer::NotMeasured);
    let counted = |a: f64| {
        cells(
            "c",
            "per_malloc",
            &[("cfrac", "a", None, Value::Exact(a)), ("cfrac", "b", None, Value::Exact(10.0))],
        )
    };
    figures.cells.extend(counted(20.0).cells);
    let verdict = judged(&study, &figures);
    assert_eq!(verdict.answer, Answer::Holds);
    assert!(verdict.reason.ends_with("(and 1 more of 2 tests)"), "{}", verdict.reason);
    figures.cells.truncate(2);
    figures.cells.extend(counted(5.0).cells);
    let verdict = judged(&study, &figures);
    assert_eq!(verdict.answer, Answer::Fails);
    assert!(verdict.reason.starts_with("0.500, counted exactly: a over b on cfrac"), "{}", verdict.reason);
}

#[test]
fn programs_that_were_not_run_are_named() {
    let test = SLOWER.replace("programs = [\"cfrac\"]", "programs = [\"cfrac\", \"gawk\"]");
    let figures = cells(
        "t",
        "cpu_s",
        &[("cfrac", "a", None, samples(2.0, 10, 1)), ("cfrac", "b", None, samples(1.0, 10, 2))],
    );
    let verdict = judged(&claiming(&test), &figures);
    assert!(verdict.reason.contains("no such figure of gawk"), "{}", verdict.reason);
}

/// A claim on several programs is not made by some of them.
#[test]
fn a_program_that_was_not_run_leaves_open_what_it_could_turn() {
    let answer = |programs: &str, rule: &str, over: f64| {
        let test = SLOWER
            .replace("programs = [\"cfrac\"],", programs)
            .replace("rule = \"all\"", &format!("rule = \"{rule}\""));
        let timed = [("cfrac", "a", None, samples(over, 10, 1)), ("cfrac", "b", None, samples(1.0, 10, 2))];
        judged(&claiming(&test), &cells("t", "cpu_s", &timed)).answer
    };
    let named = "programs = [\"cfrac\", \"gawk\"],";
    // Without a list it is on every program of the step: 2 of 5 decided.
    for programs in [named, ""] {
        let of = |rule| [answer(programs, rule, 2.0), answer(programs, rule, 0.5)];
        assert_eq!(of("all"), [Answer::Undecided, Answer::Fails], "{programs}");
        assert_eq!(of("some"), [Answer::Holds, Answer::Undecided], "{programs}");
    }
    // With one of two outside, more than half cannot be inside.
    assert_eq!(answer(named, "most", 2.0), Answer::Undecided);
    assert_eq!([answer(named, "most", 0.5), answer("", "most", 0.5)], [Answer::Fails, Answer::Undecided]);
}

const MEAN: &str = r#"
    rule = "mean"
    above = 1.0
    quantity = { step = "t", metric = "cpu_s", of = { managers = ["a"] }, over = { managers = ["b"] } }
"#;

/// Three of four programs had too few runs, were left out of the mean silently, and the fourth decided alone.
#[test]
fn a_mean_is_not_decided_by_the_one_program_that_has_enough_runs() {
    let mut values =
        vec![("cfrac", "a", None, samples(2.0, 10, 1)), ("cfrac", "b", None, samples(1.0, 10, 2))];
    for program in ["gawk", "perl", "make"] {
        values.extend([(program, "a", None, samples(0.5, 3, 1)), (program, "b", None, samples(1.0, 3, 2))]);
    }
    let verdict = judged(&claiming(MEAN), &cells("t", "cpu_s", &values));
    assert_eq!(verdict.answer, Answer::Undecided, "{}", verdict.reason);
    assert!(
        verdict.reason.contains("too few runs of a over b on gawk, a over b on perl and a over b on make"),
        "{}",
        verdict.reason
    );
}

/// A manager that was measured on one program only was taken for one measured on all.
#[test]
fn a_mean_of_one_program_decides_nothing_among_means_of_many() {
    let test = MEAN.replace("[\"a\"]", "[\"a\", \"c\"]");
    let mut values = vec![("cfrac", "c", None, samples(0.5, 10, 3))];
    for (number, program) in (0u64..).zip(["cfrac", "gawk", "perl", "make"]) {
        let a = samples(2.0 + 0.01 * number as f64, 10, 1);
        values.extend([(program, "a", None, a), (program, "b", None, samples(1.0, 10, 2))]);
    }
    let verdict = judged(&claiming(&test), &cells("t", "cpu_s", &values));
    assert_eq!(verdict.answer, Answer::Undecided, "{}", verdict.reason);
    assert!(verdict.reason.contains("in 1 of 2 means"), "{}", verdict.reason);
    assert!(verdict.reason.contains("c over b on gawk"), "what is missing is named: {}", verdict.reason);
}

/// A program that failed under one manager was missing without notice.
#[test]
fn a_single_comparison_that_is_missing_is_named_and_leaves_open_what_it_could_turn() {
    let values = [
        ("cfrac", "a", None, Value::Exact(2.0)),
        ("cfrac", "c", None, Value::Exact(2.0)),
        ("cfrac", "b", None, Value::Exact(1.0)),
        ("gawk", "a", None, Value::Exact(2.0)),
        ("gawk", "b", None, Value::Exact(1.0)),
    ];
    let test = |programs: &str| {
        format!(
            "rule = \"all\"\nabove = 1.0\nquantity = {{ step = \"c\", metric = \"per_malloc\", {programs} \
             of = {{ managers = [\"a\", \"c\"] }}, over = {{ managers = [\"b\"] }} }}"
        )
    };
    let figures = cells("c", "per_malloc", &values);
    for programs in ["", "programs = [\"cfrac\", \"gawk\"],"] {
        let verdict = judged(&claiming(&test(programs)), &figures);
        assert_eq!(verdict.answer, Answer::Undecided, "{}", verdict.reason);
        assert!(verdict.reason.contains("c over b on gawk"), "{}", verdict.reason);
        assert!(verdict.reason.contains("they could turn the answer"), "{}", verdict.reason);
    }
}

/// Figures that have no ratio were left out silently.
#[test]
fn figures_without_a_ratio_are_named_as_missing() {
    let zero = Value::Samples(vec![Some(0.0); 10]);
    let values = [
        ("cfrac", "a", None, samples(2.0, 10, 1)),
        ("cfrac", "b", None, samples(1.0, 10, 2)),
        ("gawk", "a", None, samples(0.5, 10, 1)),
        ("gawk", "b", None, zero),
    ];
    let both = SLOWER.replace("\"cfrac\"", "\"cfrac\", \"gawk\"");
    let verdict = judged(&claiming(&both), &cells("t", "cpu_s", &values));
    assert!(verdict.reason.contains("no such figure of gawk"), "{}", verdict.reason);
}

/// Two of five inside were undecided without a sixth, with which they would be no more than half.
#[test]
fn most_is_left_open_only_by_what_could_turn_it() {
    let names = ["cfrac", "gawk", "perl", "make"];
    let answer = |ratios: &[f64]| {
        let test = SLOWER
            .replace("programs = [\"cfrac\"]", "programs = [\"cfrac\", \"gawk\", \"perl\", \"make\"]")
            .replace("\"all\"", "\"most\"");
        let mut values = Vec::new();
        for (name, ratio) in names.iter().zip(ratios) {
            values.extend([
                (*name, "a", None, samples(*ratio, 10, 1)),
                (*name, "b", None, samples(1.0, 10, 2)),
            ]);
        }
        judged(&claiming(&test), &cells("t", "cpu_s", &values)).answer
    };
    assert_eq!(answer(&[2.0, 2.0, 2.0]), Answer::Holds, "three of four, whatever the fourth");
    assert_eq!(answer(&[2.0, 2.0, 0.5]), Answer::Undecided, "two of four are not most, and three are");
    assert_eq!(answer(&[2.0, 0.5, 0.5]), Answer::Fails, "two of four at most");
}

#[test]
fn a_named_manager_that_is_missing_leaves_open_what_it_could_turn() {
    let answer = |rule: &str, ratio: f64| {
        let test = SLOWER.replace("[\"a\"]", "[\"a\", \"c\"]").replace("\"all\"", &format!("\"{rule}\""));
        let timed = [("cfrac", "a", None, samples(ratio, 10, 1)), ("cfrac", "b", None, samples(1.0, 10, 2))];
        judged(&claiming(&test), &cells("t", "cpu_s", &timed)).answer
    };
    assert_eq!((answer("all", 2.0), answer("all", 0.5)), (Answer::Undecided, Answer::Fails));
    assert_eq!((answer("some", 2.0), answer("some", 0.5)), (Answer::Holds, Answer::Undecided));
}

/// With no managers named it is each of the step's; one that failed on all programs was not reported.
#[test]
fn a_manager_of_the_step_that_gave_nothing_is_named() {
    let test = SLOWER.replace("of = { managers = [\"a\"] }", "of = {}");
    let timed = [("cfrac", "a", None, samples(2.0, 10, 1)), ("cfrac", "b", None, samples(1.0, 10, 2))];
    let verdict = judged(&claiming(&test), &cells("t", "cpu_s", &timed));
    assert!(
        verdict.reason.contains("no such figure of c, and they could turn the answer")
            && verdict.answer == Answer::Undecided,
        "{}",
        verdict.reason
    );
}

proptest! {
    /// Wider intervals turn answers into "undecided", and never into the contrary.
    #[test]
    fn a_wider_interval_never_decides_more(
        ends in prop::collection::vec((0.2f64..4.0, 1.0f64..2.0), 1..6),
        wider in 1.0f64..3.0,
        which in 0usize..6,
        above in 0.5f64..2.0,
    ) {
        let names = ["all", "some", "most", "both", "mean", "trend"];
        let mut test = rule(names[which], "");
        test.above = Some(above);
        if test.rule == Rule::Both {
            test.below = Some(above);
        }
        let narrow: Vec<(f64, f64)> = ends.iter().map(|(middle, half)| (middle / half, middle * half)).collect();
        let wide: Vec<(f64, f64)> = narrow.iter().map(|(low, high)| (low / wider, high * wider)).collect();
        let (narrow, wide) = (decided(&test, &narrow), decided(&test, &wide));
        prop_assert!(wide == narrow || wide == Answer::Undecided, "{narrow:?} became {wide:?}");
    }

    /// Whole intervals without width always decide, and as the plain numbers do.
    #[test]
    fn exact_counts_always_decide(values in prop::collection::vec(0.2f64..4.0, 1..6), above in 0.5f64..2.0) {
        let exact: Vec<Effect> =
            values.iter().map(|value| Effect { basis: Basis::Exact, ..effect(*value, *value) }).collect();
        let exact: Vec<Effect> = exact.into_iter().zip(&values).map(|(one, value)| Effect { value: *value, low: *value, high: *value, ..one }).collect();
        let mut test = rule("all", "");
        test.above = Some(above);
        let all = values.iter().all(|value| *value > above);
        prop_assert_eq!(decide(&test, &exact), if all { Answer::Holds } else { Answer::Fails });
        test.rule = Rule::Some;
        let any = values.iter().any(|value| *value > above);
        prop_assert_eq!(decide(&test, &exact), if any { Answer::Holds } else { Answer::Fails });
    }
}

/// Under the manager at whose expense it was, the slowest program was left out.
#[test]
fn a_run_that_was_killed_counts_as_a_bound() {
    let timed = |bound: f64| {
        let mut values = Vec::new();
        for (number, program) in (0u64..).zip(["cfrac", "gawk", "perl"]) {
            let ratio = 0.96 + 0.04 * number as f64;
            values.extend([
                (program, "a", None, samples(ratio, 10, number)),
                (program, "b", None, samples(1.0, 10, number + 5)),
            ]);
        }
        values.extend([("make", "a", None, samples(1.0, 10, 9)), ("make", "b", None, Value::AtLeast(bound))]);
        cells("t", "cpu_s", &values)
    };
    let below = claiming(&MEAN.replace("above", "below"));
    let verdict = judged(&below, &timed(60.0));
    assert_eq!(verdict.answer, Answer::Holds, "{}", verdict.reason);
    assert!(verdict.reason.contains("mean of 3 programs and 1 bound"), "{}", verdict.reason);
    let effect = &verdict.tests[0].effects[0];
    // Three at 1.0 and a quarter at no more than a sixtieth.
    assert!((effect.value - (1.0f64 / 60.0).powf(0.25)).abs() < 0.01, "{effect:?}");
    assert!(effect.high > effect.value && effect.low < 0.05, "a bound is one on one side: {effect:?}");
    assert_ne!(judged(&below, &timed(0.5)).answer, Answer::Holds, "killed early it shows little");
    assert_ne!(judged(&claiming(MEAN), &timed(60.0)).answer, Answer::Holds);
    let one = claiming(
        &SLOWER.replace("above", "below").replace("programs = [\"cfrac\"]", "programs = [\"make\"]"),
    );
    assert_eq!(judged(&one, &timed(60.0)).answer, Answer::Holds);
    assert_eq!(judged(&one, &timed(0.5)).answer, Answer::Undecided);
}

/// Nine points of a line that bends gave an interval of the bend.
#[test]
fn a_slope_of_repetitions_has_their_interval() {
    let test = "rule = \"trend\"\nabove = 0.0\nquantity = { step = \"t\", metric = \"figure_rounds\", programs = \
                [\"cfrac\"], of = { managers = [\"a\", \"b\"] } }";
    let grows = |by: f64| {
        let at = |place: f64, value: f64, seed: u64| ("cfrac", "a", Some(place), samples(value, 8, seed));
        let flat = |place: f64| ("cfrac", "b", Some(place), samples(7.0, 8, 3));
        cells(
            "t",
            "figure_rounds",
            &[
                at(1.0, 10.0, 1),
                at(2.0, 10.0 * by, 1),
                at(4.0, 10.0 * by, 1),
                flat(1.0),
                flat(2.0),
                flat(4.0),
            ],
        )
    };
    let verdict = judged(&claiming(test), &grows(1.3));
    assert_eq!(
        verdict.answer,
        Answer::Fails,
        "the same figure in every repetition is no growth: {}",
        verdict.reason
    );
    let [a, b] = verdict.tests[0].effects.as_slice() else { panic!("{verdict:?}") };
    assert!(a.low > 0.0 && a.basis == Basis::Pairs(8), "{a:?}");
    assert_eq!((b.low, b.high), (0.0, 0.0), "{b:?}");
    let alone = test.replace(", \"b\"", "");
    assert_eq!(judged(&claiming(&alone), &grows(1.3)).answer, Answer::Holds);
    assert_eq!(judged(&claiming(&alone), &grows(1.0 / 1.3)).answer, Answer::Fails);
}

/// A program that allocates in another way than the paper's entered every mean unseen.
#[test]
fn a_mean_is_shown_without_its_controls_too() {
    let mut values = Vec::new();
    for (program, ratio) in [("cfrac", 2.0), ("gawk", 2.0), ("perl", 2.0), ("make", 32.0)] {
        values.extend([(program, "a", None, Value::Exact(ratio)), (program, "b", None, Value::Exact(1.0))]);
    }
    let figures = cells("c", "per_malloc", &values);
    let mut study = claiming(&MEAN.replace("\"t\"", "\"c\"").replace("cpu_s", "per_malloc"));
    let before = judged(&study, &figures);
    assert!(
        before.reason.starts_with("4.00, counted") && !before.reason.contains("control"),
        "{}",
        before.reason
    );
    study.controls = vec!["make".into()];
    let both = judged(&study, &figures);
    assert!(both.reason.starts_with("4.00, counted"), "the verdict is by all: {}", both.reason);
    let without = "; without the control make: 2.00, counted exactly: a over b, mean of 3 programs";
    assert!(both.reason.contains(without), "{}", both.reason);
    assert_eq!(both.answer, before.answer);
    study.controls = vec!["lua".into()];
    assert!(!judged(&study, &figures).reason.contains("control"));
}

/// Of a claim that something shows here or there.
#[test]
fn one_of_two_tests_is_enough_where_the_claim_is_either() {
    let second = SLOWER.replace("\"a\"", "\"c\"");
    let mut study = claiming(&format!("{SLOWER}\n[[claim.test]]\nwords = \"or this?\"\n{second}"));
    let answer = |study: &Study, a: Value, c: Option<Value>| {
        let mut values = vec![("cfrac", "a", None, a), ("cfrac", "b", None, samples(1.0, 10, 2))];
        values.extend(c.map(|c| ("cfrac", "c", None, c)));
        judged(study, &cells("t", "cpu_s", &values)).answer
    };
    let (slow, fast, open) = (samples(1.3, 10, 1), samples(0.7, 10, 3), noisy(1.0, 10, 1));
    assert_eq!(answer(&study, slow.clone(), Some(fast.clone())), Answer::Fails);
    study.claims[0].either = true;
    assert_eq!(answer(&study, slow.clone(), Some(fast.clone())), Answer::Holds);
    assert_eq!(answer(&study, fast.clone(), Some(slow)), Answer::Holds);
    assert_eq!(answer(&study, fast.clone(), Some(fast.clone())), Answer::Fails);
    assert_eq!(answer(&study, fast.clone(), Some(open)), Answer::Undecided);
    assert_eq!(answer(&study, fast, None), Answer::NotMeasured, "the other could hold");
}

/// An effect that the paper saw on one of its machines and not on another was refuted by a machine like the other.
#[test]
fn what_a_paper_saw_on_one_machine_is_not_refuted_by_another() {
    let on_one = |ratio: f64| {
        let timed = [("cfrac", "a", None, samples(ratio, 10, 1)), ("cfrac", "b", None, samples(1.0, 10, 2))];
        let mut study = claiming(&MEAN.replace("mean", "all"));
        study.claims[0].tests[0].quantity.programs = vec!["cfrac".into()];
        let plain = judged(&study, &cells("t", "cpu_s", &timed)).answer;
        study.claims[0].seen_on = Some("one, and not on another".into());
        (plain, judged(&study, &cells("t", "cpu_s", &timed)))
    };
    let (plain, verdict) = on_one(0.5);
    assert_eq!((plain, verdict.answer), (Answer::Fails, Answer::NotMeasured), "{}", verdict.reason);
    assert!(verdict.reason.contains("0.5") && verdict.reason.contains("saw it on one"), "{}", verdict.reason);
    assert_eq!(on_one(2.0).1.answer, Answer::Holds, "any machine bears it out");
}
