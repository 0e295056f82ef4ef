//! Verdicts by the two estimands, of made-up figures.

use super::super::definition::{Claim, Study};
use super::super::figures::{Cell, Figures};
use super::super::testing::{cells, claiming, samples};
use super::super::verdict::{Verdict, judge};
use super::*;
use heaptoll_facts::{Fact, Value};

const MEAN: &str = r#"
    rule = "mean"
    above = 1.0
    quantity = { step = "c", metric = "per_malloc", of = { managers = ["a"] }, over = { managers = ["b"] } }
"#;

fn counted(programs: &[(&str, f64)]) -> Figures {
    let both = |(program, ratio): &(&'static str, f64)| {
        [(*program, "a", None, Value::Exact(*ratio)), (*program, "b", None, Value::Exact(1.0))]
    };
    let programs: Vec<(&'static str, f64)> = ["cfrac", "gawk", "perl", "make"]
        .into_iter()
        .filter_map(|name| Some((name, programs.iter().find(|(of, _)| *of == name)?.1)))
        .collect();
    cells("c", "per_malloc", &programs.iter().flat_map(both).collect::<Vec<_>>())
}

fn judged(study: &Study, figures: &Figures, absent: &Absent) -> Verdict {
    judge(study, &study.claims[0], figures, absent)
}

/// A study with one claim of this test; `more` is of the claim.
fn with(test: &str, more: impl FnOnce(&mut Claim)) -> Study {
    let mut study = claiming(test);
    more(&mut study.claims[0]);
    study
}

const SPREAD: [(&str, f64); 4] = [("cfrac", 4.0), ("gawk", 1.1), ("perl", 1.1), ("make", 0.9)];

/// Exact counts were a sample of programs, and their mean stayed open whatever they were.
#[test]
fn the_mean_of_these_programs_is_decided_by_exact_counts_and_that_of_others_is_open() {
    let verdict = judged(&claiming(MEAN), &counted(&SPREAD), &Absent::default());
    assert_eq!(verdict.answer, Answer::Holds, "{}", verdict.reason);
    let effect = &verdict.tests[0].effects[0];
    assert_eq!((effect.basis, effect.low == effect.high), (Basis::Exact, true));
    assert!(effect.words.ends_with("mean of 4 programs, above 1 on 3 of 4"), "{}", effect.words);
    let other = verdict.tests[0].other_estimand.as_ref().expect("it is printed");
    assert_eq!((other.estimand, other.agreement), (Estimand::ProgramsLikeThese, Agreement::Open));
    assert!(verdict.reason.contains("over programs like these ") && verdict.reason.ends_with(": open"));
    assert_eq!(verdict.other_estimand, Some(Agreement::Open));
    let mut figures = counted(&SPREAD);
    figures.cells.extend(counted(&SPREAD).cells.into_iter().filter(|cell| cell.manager == "a").map(|cell| {
        let fact = Fact { manager: "c".to_owned(), ..cell.fact };
        Cell { fact, ..cell }
    }));
    let two = judged(&claiming(&MEAN.replace("\"a\"", "\"a\", \"c\"")), &figures, &Absent::default());
    assert!(two.reason.matches("(no interval)").count() == 2, "both means by the other: {}", two.reason);
    let others = with(MEAN, |claim| claim.estimand = Estimand::ProgramsLikeThese);
    let verdict = judged(&others, &counted(&SPREAD), &Absent::default());
    assert_eq!(verdict.answer, Answer::Undecided, "{}", verdict.reason);
    assert!(verdict.reason.contains("it takes 20 programs of a named set"), "{}", verdict.reason);
}

/// The intervals of programs that were timed apart, pair by pair of repetitions.
#[test]
fn the_mean_of_these_timed_programs_has_the_interval_of_their_repetitions() {
    let test = MEAN.replace("\"c\"", "\"t\"").replace("per_malloc", "cpu_s");
    let timed = |test: &str, runs: [usize; 4]| {
        let mut values = Vec::new();
        for (number, ((program, ratio), runs)) in SPREAD.into_iter().zip(runs).enumerate() {
            // Chance, of each program its own.
            let noise =
                |at: usize| ((at * 37 + number * 101 + at * at * (number + 3)) % 17) as f64 / 17.0 - 0.5;
            let of = (0..runs).map(|at| Some(ratio * (1.0 + 0.1 * noise(at)))).collect();
            values.push((program, "a", None, Value::Samples(of)));
            values.push((program, "b", None, Value::Samples(vec![Some(1.0); runs])));
        }
        judged(&claiming(test), &cells("t", "cpu_s", &values), &Absent::default())
    };
    let same = timed(&test, [10; 4]);
    let effect = &same.tests[0].effects[0];
    let mean = SPREAD.iter().map(|(_, ratio)| ratio.ln()).sum::<f64>() / 4.0;
    assert_eq!((same.answer, effect.basis), (Answer::Holds, Basis::Pairs(10)), "{}", same.reason);
    let width = |effect: &Effect| (effect.high / effect.low).ln();
    let each = &timed(&test.replace("\"mean\"", "\"all\""), [10; 4]).tests[0].effects;
    let widths = each.iter().map(width).sum::<f64>() / 4.0;
    assert!((effect.value.ln() - mean).abs() < 0.03, "{effect:?}");
    assert!(width(effect) < 0.8 * widths, "what differs by chance is less in the mean: {effect:?} {each:?}");
    let fewest = &timed(&test, [10, 20, 7, 12]).tests[0].effects[0];
    assert_eq!(fewest.basis, Basis::Pairs(7), "the repetitions that all have");
}

/// Equality refuted an order that a difference of half a percent the other way left open.
#[test]
fn a_difference_of_less_than_a_percent_is_no_order_between_counts() {
    let answer = |test: &str, ratio: f64| {
        let figures = counted(&[("cfrac", ratio), ("gawk", ratio), ("perl", ratio), ("make", ratio)]);
        judged(&claiming(test), &figures, &Absent::default()).answer
    };
    assert_eq!(
        [1.02, 1.005, 1.0, 0.995, 0.98].map(|ratio| answer(MEAN, ratio)),
        [Answer::Holds, Answer::Undecided, Answer::Undecided, Answer::Undecided, Answer::Fails]
    );
    // Nor between counts of runs that differ a little.
    let sampled = |metric: &str, ratio: f64| {
        let test = MEAN.replace("\"c\"", "\"t\"").replace("per_malloc", metric);
        let vary = |of: f64| Value::Samples((0..10).map(|at| Some(of + 1e-4 * f64::from(at % 3))).collect());
        let of = |program: &'static str| [(program, "a", None, vary(ratio)), (program, "b", None, vary(1.0))];
        let figures = cells("t", metric, &["cfrac", "gawk", "perl", "make"].map(of).concat());
        judged(&claiming(&test), &figures, &Absent::default()).answer
    };
    assert_eq!(
        [sampled("heap_high_kib", 1.005), sampled("heap_high_kib", 1.02), sampled("wall_s", 1.005)],
        [Answer::Undecided, Answer::Holds, Answer::Holds]
    );
}

/// The planner took kin before the paper's own programs, and they decided.
#[test]
fn kin_alone_decide_no_claim_of_a_paper_that_names_its_programs() {
    let mut absent = Absent::default();
    absent.name_programs("c");
    let figures = counted(&SPREAD);
    let answers = |originals: &[&str], more: fn(&mut Claim)| {
        let mut study = with(MEAN, more);
        let own = originals.iter().map(|name| (name.to_string(), format!("mb-{name}")));
        study.steps[1].originals = own.collect();
        judged(&study, &figures, &absent)
    };
    let kin = answers(&[], |_| ());
    assert_eq!(kin.answer, Answer::NotMeasured, "{}", kin.reason);
    assert!(kin.reason.contains("kin alone decide nothing") && kin.reason.contains("1.44"), "{}", kin.reason);
    let one = answers(&["gawk"], |_| ());
    assert_eq!(one.answer, Answer::Holds, "{}", one.reason);
    assert!(one.reason.contains("3 of 4 programs are kin of the paper's"), "{}", one.reason);
    assert_eq!(
        answers(&[], |claim| claim.ours = true).answer,
        Answer::Holds,
        "a claim of ours is of any programs"
    );
    assert_eq!(
        judged(&claiming(MEAN), &figures, &Absent::default()).answer,
        Answer::Holds,
        "the paper names none"
    );
}

/// Kin could refute a claim that the paper's own programs bear out, or bear out one that these leave open.
#[test]
fn where_the_answer_depends_on_kin_nothing_is_decided() {
    let mut absent = Absent::default();
    absent.name_programs("c");
    let answer = |rule: &str, [own, kin, other]: [f64; 3]| {
        let named = MEAN.replace("metric =", "programs = [\"cfrac\", \"gawk\", \"perl\"], metric =");
        let mut study = claiming(&named.replace("mean", rule));
        study.steps[1].originals = [("cfrac".to_owned(), "mb-cfrac".to_owned())].into();
        let figures = counted(&[("cfrac", own), ("gawk", kin), ("perl", other)]);
        judged(&study, &figures, &absent)
    };
    for rule in ["mean", "all", "some", "most"] {
        let of = |ratios| answer(rule, ratios).answer;
        assert_eq!((of([1.5; 3]), of([0.5; 3])), (Answer::Holds, Answer::Fails), "{rule}");
        assert_ne!(of([1.5, 0.1, 0.1]), Answer::Fails, "{rule}");
        assert_ne!(of([0.5, 9.0, 9.0]), Answer::Holds, "{rule}");
    }
    let refuted = answer("all", [1.5, 1.5, 0.5]);
    assert_eq!(refuted.answer, Answer::Undecided, "{}", refuted.reason);
    let words = "2 of 3 programs are kin of the paper's, and the answer depends on them";
    assert!(refuted.reason.contains(words), "{}", refuted.reason);
}

#[test]
fn the_mean_of_programs_that_a_plan_chose_decides_nothing() {
    let mut absent = Absent::default();
    absent.thin("c");
    let three = judged(&claiming(MEAN), &counted(&SPREAD[..3]), &absent);
    assert_eq!(three.answer, Answer::Undecided, "{}", three.reason);
    assert!(three.reason.contains("a plan chose 3 of 4 programs"), "{}", three.reason);
    assert_eq!(judged(&claiming(MEAN), &counted(&SPREAD), &absent).answer, Answer::Holds, "none is missing");
    let each = MEAN.replace("\"mean\"", "\"some\"");
    assert_eq!(judged(&claiming(&each), &counted(&SPREAD[..3]), &absent).answer, Answer::Holds, "no mean");
}

/// Three programs of the catalog were "these programs" of a paper that has others.
#[test]
fn the_mean_of_programs_that_are_neither_the_papers_nor_of_a_set_decides_no_claim_of_a_paper() {
    let of = |set: Option<&str>, ours: bool| {
        let mut study = with(MEAN, |claim| claim.ours = ours);
        study.steps[1].set = set.map(str::to_owned);
        judged(&study, &counted(&SPREAD), &Absent::default())
    };
    let none = of(None, false);
    assert_eq!(none.answer, Answer::Undecided, "{}", none.reason);
    assert!(none.reason.contains("neither the paper's nor of a named set"), "{}", none.reason);
    assert_eq!([of(Some("made"), false).answer, of(None, true).answer], [Answer::Holds; 2]);
}

/// A slope over programs is stated of programs like them.
#[test]
fn a_slope_over_fewer_than_twenty_programs_of_a_set_decides_nothing() {
    let grows = |programs: &[&'static str]| {
        let at = |program: &'static str, place: f64| (program, "a", Some(place), samples(place, 10, 1));
        let points: Vec<_> =
            programs.iter().flat_map(|name| [1.0, 2.0, 4.0].map(|place| at(name, place))).collect();
        let test = format!(
            "rule = \"trend\"\nabove = 0.5\nquantity = {{ step = \"t\", metric = \"figure_rounds\", programs = {programs:?}, \
             of = {{ managers = [\"a\"] }} }}"
        );
        judged(&claiming(&test), &cells("t", "figure_rounds", &points), &Absent::default())
    };
    assert_eq!(grows(&["cfrac"]).answer, Answer::Holds);
    let three = grows(&["cfrac", "gawk", "perl"]);
    assert_eq!(three.answer, Answer::Undecided, "{}", three.reason);
    assert!(three.reason.contains("it takes 20 programs of a named set"), "{}", three.reason);
}

/// Twenty programs of a set, `above` of them above 1; the claim is on programs like them.
fn of_twenty(rule: &str, above: usize, set: bool) -> Verdict {
    let names: Vec<String> = (0..20).map(|number| format!("p{number}")).collect();
    let mut study = with(&MEAN.replace("mean", rule), |claim| claim.estimand = Estimand::ProgramsLikeThese);
    study.steps[1].programs.clone_from(&names);
    study.steps[1].set = study.steps[1].set.take().filter(|_| set);
    let ratio = |number: usize| if number < above { 1.5 } else { 0.9 };
    let values: Vec<_> = names
        .iter()
        .enumerate()
        .flat_map(|(number, name)| {
            let of = Value::Exact(ratio(number));
            [(name.as_str(), "a", None, of), (name.as_str(), "b", None, Value::Exact(1.0))]
        })
        .collect();
    judged(&study, &cells("c", "per_malloc", &values), &Absent::default())
}

#[test]
fn an_order_over_programs_like_these_is_decided_by_the_sign_test() {
    let [fifteen, fourteen, five] = [15, 14, 5].map(|above| of_twenty("mean", above, true));
    assert_eq!(
        (fifteen.answer, fifteen.other_estimand),
        (Answer::Holds, Some(Agreement::Agrees)),
        "{}",
        fifteen.reason
    );
    assert!(fifteen.reason.contains("median of 20 programs, above 1 on 15 of 20"), "{}", fifteen.reason);
    assert_eq!(fourteen.answer, Answer::Undecided, "{}", fourteen.reason);
    // Five of twenty are above, by so much that the mean of these is above as well.
    assert_eq!(
        (five.answer, five.other_estimand),
        (Answer::Fails, Some(Agreement::Contradicts)),
        "{}",
        five.reason
    );
    assert_eq!(
        of_twenty("mean", 20, false).answer,
        Answer::Undecided,
        "a set that was not named before is none"
    );
}

/// Most of four programs were taken for most of all.
#[test]
fn most_of_programs_like_these_are_decided_by_the_sign_test() {
    let of = |above| of_twenty("most", above, true);
    assert_eq!(
        [15, 14, 6, 5].map(|above| of(above).answer),
        [Answer::Holds, Answer::Undecided, Answer::Undecided, Answer::Fails]
    );
    assert!(of(15).reason.contains("of 20 programs 15 lie in the region and 5 outside"), "{}", of(15).reason);
    assert_eq!(of_twenty("most", 20, false).answer, Answer::Undecided);
    let of = |programs| most_programs(0.5, &vec![Answer::Holds; programs]).0;
    assert_eq!((of(6), of(5)), (Answer::Holds, Answer::Undecided), "six of six are the fewest that decide");
}

/// The mean of twenty programs reached from the mean of their lower ends to that of their upper ends.
#[test]
fn the_mean_of_figures_with_intervals_of_their_own_is_surer_than_each() {
    let both = |name: &'static str| {
        let estimate = Value::Estimate { value: 2.0, low: 1.8, high: 2.2 };
        [(name, "a", None, estimate), (name, "b", None, Value::Exact(1.0))]
    };
    let values: Vec<_> = ["cfrac", "gawk", "perl", "make"].into_iter().flat_map(both).collect();
    let verdict = judged(&claiming(MEAN), &cells("c", "per_malloc", &values), &Absent::default());
    let effect = &verdict.tests[0].effects[0];
    let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
    assert!(near(effect.low, 2.0 * 0.9f64.sqrt()) && near(effect.high, 2.0 * 1.1f64.sqrt()), "{effect:?}");
    assert_eq!(effect.basis, Basis::Estimate);
}

#[test]
fn an_open_equivalence_states_how_many_repetitions_would_decide_it() {
    let test = MEAN.replace("above = 1.0", "above = 0.95\nbelow = 1.05").replace("\"c\"", "\"t\"");
    let timed = |wide: f64| {
        let vary = |seed: u64| match samples(1.0, 10, seed) {
            Value::Samples(all) => {
                let wider = |one: f64| 1.0 + wide * (one - 1.0);
                Value::Samples(all.into_iter().map(|one| one.map(wider)).collect())
            }
            other => other,
        };
        let values: Vec<_> = ["cfrac", "gawk", "perl", "make"]
            .iter()
            .zip(0u64..)
            .flat_map(|(name, seed)| [(*name, "a", None, vary(seed)), (*name, "b", None, vary(seed + 5))])
            .collect();
        judged(
            &claiming(&test.replace("per_malloc", "cpu_s")),
            &cells("t", "cpu_s", &values),
            &Absent::default(),
        )
    };
    let (narrow, wide) = (timed(1.0), timed(40.0));
    assert_eq!(
        (narrow.answer, wide.answer),
        (Answer::Holds, Answer::Undecided),
        "{} {}",
        narrow.reason,
        wide.reason
    );
    assert!(
        wide.reason.contains("repetitions would decide") && wide.reason.contains("; about "),
        "{}",
        wide.reason
    );
    assert!(!narrow.reason.contains("would decide"), "{}", narrow.reason);
}
