//! What a study's file may not hold, and how that is reported.

use super::super::bundled::all;
use super::super::definition::{Fault, Study};
use super::super::testing::study;

const STEP: &str = r#"
name = "made"
title = "Made up"
source = "made up"
about = []
[[step]]
id = "t"
kind = "run"
programs = ["cfrac", "cfrac:gc", "gawk"]
managers = ["a", "b"]
"#;

fn fault(more: &str) -> String {
    Study::parse(&format!("{STEP}{more}"), "made.toml").expect_err("it is wrong").to_string()
}

fn of_test(test: &str) -> String {
    fault(&format!(
        "[[claim]]\nid = \"it\"\nplace = \"§1\"\nwords = \"it is so\"\n[[claim.test]]\nwords = \"is it?\"\n{test}"
    ))
}

#[test]
fn the_studies_can_be_carried_out() {
    let studies = all().unwrap_or_else(|fault| panic!("{fault}"));
    assert_eq!(
        studies.iter().map(|study| study.name.as_str()).collect::<Vec<_>>(),
        ["zorn1992", "detlefs1994", "boehm-myths", "sareen2022", "mimalloc2019", "reclamation"]
    );
}

#[test]
fn a_study_of_a_later_version_is_refused_with_the_version_that_is_needed() {
    let of = |version: &str| Study::parse(&format!("heaptoll = \"{version}\"\n{STEP}"), "made.toml");
    // Also with fields that this version does not know.
    for more in ["", "[orbit]\nmoons = 3\n"] {
        let text = format!("heaptoll = \"999.1\"\n{STEP}{more}");
        let text = Study::parse(&text, "made.toml").expect_err("a later version").to_string();
        assert!(text.starts_with("made.toml: it needs heaptoll 999.1, and this is "), "{text}");
    }
    let wrong = of("soon").expect_err("no version").to_string();
    assert!(wrong.starts_with("made.toml: heaptoll: `soon` is not a version"), "{wrong}");
    assert!(of("0.0.1").is_ok() && of(heaptoll_command::version::OURS).is_ok());
}

#[test]
fn an_unknown_field_is_reported_with_its_line() {
    let text = fault("heavyness = 2.0");
    assert!(
        text.starts_with("made.toml: TOML parse error at line 11") && text.contains("heavyness"),
        "{text}"
    );
    assert!(matches!(Study::parse("name =", "made.toml"), Err(Fault::Unreadable { .. })));
}

#[test]
fn steps_are_whole() {
    assert_eq!(fault("size = \"huge\""), "made.toml: step t, size: one of tiny, quick, demo, full");
    assert_eq!(fault("heaviness = 0.0"), "made.toml: step t, heaviness: a number above 0");
    let again = "[[step]]\nid = \"t\"\nkind = \"run\"\nprograms = [\"cfrac\"]\nmanagers = [\"a\"]";
    assert_eq!(fault(again), "made.toml: step t: two steps have this id");
    let nameless = again.replace("\"t\"", "\" \"");
    assert_eq!(fault(&nameless), "made.toml: step  , id: it has none; figures are kept by it");
    let bare = again.replace("\"t\"", "\"u\"").replace("[\"a\"]", "[]");
    assert_eq!(fault(&bare), "made.toml: step u, managers: it has none");
}

#[test]
fn a_claim_is_tested_or_gives_a_reason() {
    let claim = "[[claim]]\nid = \"it\"\nplace = \"§1\"\nwords = \"it is so\"";
    assert_eq!(fault(claim), "made.toml: claim it: nothing tests it; give the reason in `not_built`");
    let shown = format!("{claim}\nnot_built = \"why\"\nexhibits = [\"table9\"]");
    assert_eq!(fault(&shown), "made.toml: claim it, exhibits: there is no exhibit `table9`");
}

/// A claim on what collections miss read figures that its step never made: `collector-visits` of Zorn was not measured.
#[test]
fn misses_by_cause_need_a_step_that_simulates_the_program_alone() {
    let made = |options: &str| {
        let step = format!(
            "[[step]]\nid = \"l\"\nkind = \"locality\"\nprograms = [\"cfrac\"]\nmanagers = [\"a\", \"b\"]\n{options}\n"
        );
        let test = "[[claim.test]]\nwords = \"is it?\"\nrule = \"all\"\nabove = 50.0\nquantity = { step = \"l\", \
                    metric = \"collecting_more_percent\", at = [128.0], of = { managers = [\"b\"] } }";
        let claim = "[[claim]]\nid = \"it\"\nplace = \"§1\"\nwords = \"it is so\"";
        Study::parse(&format!("{STEP}{step}{claim}\n{test}"), "made.toml")
            .map(drop)
            .map_err(|fault| fault.to_string())
    };
    let why = made("").expect_err("it is wrong");
    assert!(
        why.contains("step l needs --placement yes among its options for `collecting_more_percent`"),
        "{why}"
    );
    assert_eq!(made("options = [\"--placement\", \"yes\"]"), Ok(()));
}

#[test]
fn a_test_names_what_is_measured() {
    let quantity = |text: &str| format!("rule = \"all\"\nabove = 1.0\nquantity = {{ {text} }}");
    for (text, expected) in [
        ("step = \"u\", metric = \"cpu_s\", of = {}", "there is no step `u`; the study has t"),
        ("step = \"t\", metric = \"cpu\", of = {}", "of, metric: step t gives no `cpu`"),
        (
            "step = \"t\", metric = \"cpu_s\", of = { managers = [\"c\"] }",
            "of, managers: step t does not run `c`",
        ),
        (
            "step = \"t\", metric = \"cpu_s\", programs = [\"gawk\"], of = { variant = \"gc\" }",
            "of, programs: step t does not run `gawk:gc`",
        ),
        (
            "step = \"t\", metric = \"cpu_s\", of = { variant = \"optimized\" }, over = {}",
            "of: step t runs no program in the variant `optimized`",
        ),
        (
            "step = \"t\", metric = \"cpu_s\", of = {}, over = {}",
            "over: it is the same as `of`; name another manager, variant, program or metric",
        ),
        (
            "step = \"t\", metric = \"cpu_s\", of = {}, against = \"lowest\"",
            "against: there is nothing in `over`",
        ),
    ] {
        let message = of_test(&quantity(text));
        assert!(
            message.starts_with("made.toml: claim it, test 1, quantity") && message.ends_with(expected),
            "{message}"
        );
    }
}

#[test]
fn a_test_has_a_region() {
    let test = |rule: &str, more: &str| {
        of_test(&format!(
            "rule = \"{rule}\"\n{more}\nquantity = {{ step = \"t\", metric = \"cpu_s\", of = {{}} }}"
        ))
    };
    assert!(test("all", "").ends_with("test 1: it needs `above`, `below` or both"));
    assert!(test("both", "above = 1.0").ends_with("the rule `both` needs `above` and `below`"));
    assert!(test("all", "above = 2.0\nbelow = 1.0").ends_with("nothing is above 2 and below 1"));
    assert!(
        test("most", "above = 1.0\nshare = 1.5")
            .ends_with("share: 1.5 is not a share: give 0 or more, below 1")
    );
    assert!(
        test("all", "above = 1.0\noutside = true").ends_with("outside: it needs both `above` and `below`")
    );
    let wide = test("some", "above = 0.9\nbelow = 1.1\noutside = true");
    assert!(wide.ends_with("everything is above 0.9 or below 1.1"), "{wide}");
    assert!(
        test("trend", "above = 0.0\noutside = true").ends_with("it is not of the rules `both` and `trend`")
    );
    assert!(test("order", "above = 1.0").contains("needs `programs` in its quantity, and `others`"));
    assert!(test("all", "above = 1.0\nothers = [\"gawk\"]").ends_with("they are of the rule `order` only"));
    assert!(test("all", "above = 1.0\nshare = 0.5").ends_with("share: it is of the rule `most` only"));
}

/// The fields that choose how a claim is judged.
#[test]
fn a_claim_names_its_estimand() {
    let quantity = "quantity = { step = \"t\", metric = \"cpu_s\", of = {} }";
    let claim = |of_claim: &str, of_test: &str| {
        fault(&format!(
            "[[claim]]\nid = \"it\"\nplace = \"p\"\nwords = \"w\"\n{of_claim}\n[[claim.test]]\nwords = \"q\"\n\
             rule = \"mean\"\n{of_test}\n{quantity}"
        ))
    };
    assert!(claim("estimand = \"all\"", "above = 1.0").contains("unknown variant `all`"));
    let no_set = claim("estimand = \"programs-like-these\"", "above = 1.0");
    assert!(no_set.ends_with("claim it, estimand: step t has no `set` that programs are like"), "{no_set}");
}

#[test]
fn a_sentence_of_the_abstract_is_answered_by_claims_that_are_there() {
    let of = |claims: &str| fault(&format!("[[abstract]]\nwords = \"It is so\"\nclaims = [{claims}]"));
    assert_eq!(of("\"gone\""), "made.toml: abstract `It is so`: there is no claim `gone`");
    let claim = "[[claim]]\nid = \"it\"\nplace = \"§1\"\nwords = \"w\"\nnot_built = \"none\"\n";
    let figures = |words: &str| {
        fault(&format!(
            "{claim}[[abstract]]\nwords = \"It is so\"\nclaims = [\"it\"]\nfigures = [\"{words}\"]"
        ))
    };
    for words in ["{it} times", "{other} times", "{it:0} times", "{it times"] {
        let names =
            format!("abstract `It is so`, figures: `{words}` names no test of a claim that answers it");
        assert_eq!(figures(words), format!("made.toml: {names}"));
    }
    assert!(of("").ends_with("no claim answers it"));
}

#[test]
fn exhibits_show_what_is_there() {
    let exhibit = |more: &str| fault(&format!("[[exhibit]]\nid = \"x\"\ntitle = \"t\"\n{more}"));
    let table = |more: &str| exhibit(&format!("form = \"table\"\nstep = \"t\"\nmetric = \"cpu_s\"\n{more}"));
    assert_eq!(
        exhibit("form = \"bars\"\nstep = \"u\""),
        "made.toml: exhibit x: there is no step `u`; the study has t"
    );
    assert_eq!(table("relative_to = \"c\""), "made.toml: exhibit x, managers: step t does not run `c`");
    assert_eq!(table("programs = [\"perl\"]"), "made.toml: exhibit x, programs: step t does not run `perl`");
    assert!(table("as_ratio = true").ends_with("name the manager that ratios are to, in `relative_to`"));
    let file = |more: &str| table(&format!("[exhibit.published]\n{more}"));
    assert!(file("file = \"no.csv\"").ends_with("published, file: studies/published has no `no.csv`"));
    let zorn = "file = \"zorn1992-table3-cpu-seconds.csv\"\nprogram = [\"program\"]";
    assert!(file(zorn).ends_with("published, value: name the column of the values"));
    let expected = file(&format!("{zorn}\nmanager = \"allocator\"\nvalue = \"cpu_seconds\""));
    assert!(
        expected.ends_with("has no column `allocator`; it has program, manager, cpu_seconds"),
        "{expected}"
    );
}

#[test]
fn a_row_of_a_list_is_one_comparison_of_lines_that_are_there() {
    let row = |more: &str| {
        fault(&format!(
            "[[exhibit]]\nid = \"x\"\ntitle = \"t\"\nform = \"list\"\n[exhibit.published]\n\
             file = \"sareen2022-minheap.csv\"\nvalue = \"smallest_heap_over_footprint_percent\"\n\
             [[exhibit.row]]\nwords = \"w\"\n{more}"
        ))
    };
    assert!(row("").ends_with("row `w`: it has no `ours`; give the reason in `missing`"));
    let ours = "ours = { step = \"t\", metric = \"cpu_s\", of = {} }";
    assert!(row(ours).ends_with("a row is one comparison: name one manager on either side"));
    let line = row("missing = \"why\"\npublished = [\"immix, hoard, 32768\"]");
    assert!(line.ends_with("row `w`, published: the file has no line `immix, hoard, 32768`"), "{line}");
}

#[test]
fn what_is_right_is_taken() {
    assert_eq!(study("").steps.len(), 2);
}

#[test]
fn steps_run_in_lockstep_where_a_claim_compares_the_cpu_time_of_managers_on_one_program() {
    use heaptoll_experiment::experiment::Pairing;
    let paired = |study: &Study| study.step("t").expect("a step").pairing;
    let test =
        |quantity: &str| format!("rule = \"all\"\nabove = 1.0\nquantity = {{ step = \"t\", {quantity} }}");
    let of = |quantity: &str| paired(&super::super::testing::claiming(&test(quantity)));
    let managers = "of = { managers = [\"a\"] }, over = { managers = [\"b\"] }";
    assert_eq!(of(&format!("metric = \"cpu_s\", {managers}")), Some(Pairing::Lockstep));
    assert_eq!(of(&format!("metric = \"peak_rss_kib\", {managers}")), None);
    assert_eq!(of("metric = \"cpu_s\", of = { program = \"gawk\" }, over = { program = \"perl\" }"), None);
    assert_eq!(of("metric = \"cpu_s\", of = { managers = [\"a\"] }"), None);
    // The studies' own.
    let all = all().expect("studies");
    let steps = all.iter().flat_map(|study| &study.steps);
    let ids: Vec<&str> = steps.filter(|step| step.runs_in_lockstep(6)).map(|step| step.id.as_str()).collect();
    assert_eq!(
        ids,
        [
            "zorn1992-time",
            "zorn1992-own",
            "zorn1992-own-today",
            "detlefs1994-time",
            "detlefs1994-heaps",
            "detlefs1994-time-1992",
            "detlefs1994-cfrac",
            "boehm-reverse",
            "boehm-reverse8",
            "boehm-batch",
            "boehm-retain",
            "boehm-programs",
            "boehm-crossover",
            "mimalloc2019-programs"
        ]
    );
}

#[test]
fn forms_of_one_program_whose_cpu_time_a_claim_compares_are_in_one_block() {
    let of = |metric: &str, pairing: &str| {
        let text = format!(
            "name = \"made\"\ntitle = \"t\"\nsource = \"s\"\nabout = []\n[[step]]\nid = \"t\"\nkind = \"run\"\n\
             programs = [\"lua\", \"lua:gc\", \"cfrac:a\", \"cfrac:gc\", \"cfrac\", \"cfrac:alone\", \"gawk\"]\n\
             managers = [\"m\"]\n{pairing}\n[[claim]]\nid = \"it\"\nplace = \"1\"\nwords = \"it is so\"\n"
        );
        let test = |sides: &str| {
            format!(
                "[[claim.test]]\nwords = \"is it?\"\nrule = \"all\"\nabove = 1.0\n\
                 quantity = {{ step = \"t\", metric = \"{metric}\", {sides} }}\n"
            )
        };
        let sides = [
            "of = { variant = \"gc\" }, over = {}",
            "of = { program = \"cfrac:a\" }, over = { program = \"cfrac\" }",
            "of = { program = \"gawk\" }, over = { program = \"lua\" }",
        ];
        let study = Study::parse(&(text + &sides.map(test).concat()), "made.toml").expect("a study");
        study.steps[0].clone()
    };
    let timed = of("cpu_s", "");
    assert_eq!(timed.together, [vec!["lua", "lua:gc"], vec!["cfrac:a", "cfrac:gc", "cfrac"]]);
    assert!(timed.runs_in_lockstep(10));
    assert!(of("peak_rss_kib", "").together.is_empty());
    let interleaved = of("cpu_s", "pairing = \"interleaved\"");
    assert!(interleaved.together.is_empty() && !interleaved.runs_in_lockstep(10));
}

#[test]
fn pairing_is_of_timed_runs() {
    let text = "name = \"made\"\ntitle = \"t\"\nsource = \"s\"\nabout = []\n[[step]]\nid = \"c\"\nkind = \"delay\"\n\
                programs = [\"cfrac\"]\npairing = \"lockstep\"";
    let error = Study::parse(text, "made.toml").expect_err("it is not");
    assert!(error.to_string().contains("step c, pairing: only runs"), "{error}");
}
