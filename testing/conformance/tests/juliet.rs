//! Juliet's shapes of CWE-415 and CWE-416 under the C library's malloc, under which they read others' data, and under
//! the guard, under which none does.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use heaptoll_conformance::security::{Attack, Outcome};
use heaptoll_conformance::suite::{Case, Suite, sources};
use tempfile::TempDir;

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a temporary folder"));
static SUITE: LazyLock<Suite> =
    LazyLock::new(|| Suite::build_attacks(&sources(), "juliet", FOLDER.path()).expect("the shapes compile"));

const FLOWS: [u32; 48] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 21, 22, 31, 32, 33, 34, 41, 42, 43, 44,
    45, 51, 52, 53, 54, 61, 62, 63, 64, 65, 66, 67, 68, 72, 73, 74, 81, 82, 83, 84,
];
const TYPES: [&str; 7] = ["char", "int", "int64_t", "long", "struct", "wchar_t", "class"];
const DEFECTS: [&str; 2] = ["cwe415", "cwe416"];

/// Ways to allocate with types of data: a class has constructors, and malloc does not call them.
fn kinds() -> Vec<String> {
    let of =
        |form: &str, types: &[&str]| types.iter().map(|name| format!("{form}_{name}")).collect::<Vec<_>>();
    [of("malloc_free", &TYPES[..6]), of("new_delete", &TYPES), of("new_delete_array", &TYPES)].concat()
}

#[test]
fn there_is_a_case_for_each_defect_kind_and_flow() {
    let mut expected = Vec::new();
    for kind in kinds() {
        let of_kind = |defect: &&str| FLOWS.map(|flow| format!("{defect}_{kind}_{flow:02}"));
        expected.extend(DEFECTS.iter().flat_map(of_kind));
    }
    expected.extend(FLOWS[..18].iter().map(|flow| format!("cwe416_return_freed_ptr_char_{flow:02}")));
    expected.extend(CLASSES.map(String::from));
    expected.sort();
    let mut found: Vec<String> = SUITE.cases.iter().map(|case| case.name.clone()).collect();
    found.sort();
    assert_eq!(found, expected);
}

/// Cases without flows.
const CLASSES: [&str; 3] =
    ["cwe415_no_assignment_op_01", "cwe415_no_copy_const_01", "cwe416_operator_equals_01"];

/// Each flow with both defects, of a kind in turn, and the cases without flows.
fn some() -> Vec<&'static Case> {
    let kinds = kinds();
    let mut names: Vec<String> = CLASSES.map(String::from).to_vec();
    names.push("cwe416_return_freed_ptr_char_01".into());
    for (flow, kind) in FLOWS.iter().zip(kinds.iter().cycle()) {
        names.extend(DEFECTS.map(|defect| format!("{defect}_{kind}_{flow:02}")));
    }
    names.iter().map(|name| SUITE.case(name).expect("there is one")).collect()
}

fn attacks(stacks: &[&str], cases: &[&Case]) -> Vec<Attack> {
    crate::attacks(&SUITE, stacks, cases)
}

/// How often each outcome was a defect's.
fn counts(attacks: &[Attack]) -> BTreeMap<(&str, String), usize> {
    let mut counts = BTreeMap::new();
    for attack in attacks {
        *counts.entry((&attack.case[..6], attack.outcome.to_string())).or_default() += 1;
    }
    counts
}

/// The C library hands out a freed block next, and notices no free of a block that is another's by then. In a few flows
/// a container has taken the block before the attacker.
fn programs_can_fail(cases: &[&Case]) {
    let attacks = attacks(&["glibc"], cases);
    for defect in DEFECTS {
        let of_defect = attacks.iter().filter(|attack| attack.case.starts_with(defect));
        let gained = of_defect.clone().filter(|attack| attack.outcome == Outcome::NotDetected).count();
        assert!(gained * 10 >= of_defect.count() * 9, "{defect}: {:?}", counts(&attacks));
    }
}

#[test]
fn some_shapes_gain_under_glibc() {
    programs_can_fail(&some());
}

#[test]
#[ignore = "slow: every shape, some 30 CPU seconds; each flow in one kind is in the fast tests"]
fn nine_of_ten_shapes_gain_under_glibc() {
    programs_can_fail(&SUITE.cases.iter().collect::<Vec<_>>());
}

/// Each second free is reported, and each read after a free gives zeroes.
fn no_shape_gains(cases: &[&Case]) {
    let attacks = attacks(&["tithe-guard", "guard/glibc"], cases);
    let kept = |attack: &Attack| match attack.outcome {
        Outcome::Detected => true,
        Outcome::Zeroes => attack.case.starts_with("cwe416"),
        _ => false,
    };
    let wrong: Vec<&Attack> = attacks.iter().filter(|attack| !kept(attack)).take(12).collect();
    assert!(wrong.is_empty(), "{:?}: {wrong:#?}", counts(&attacks));
}

#[test]
fn some_shapes_of_every_flow_gain_nothing_under_the_guard() {
    no_shape_gains(&some());
}

#[test]
#[ignore = "slow: every shape under two stacks, some 60 CPU seconds; each flow in one kind is in the fast tests"]
fn no_shape_gains_anything_under_the_guard() {
    no_shape_gains(&SUITE.cases.iter().collect::<Vec<_>>());
}
