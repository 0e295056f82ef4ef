//! The suite over every manager that is built, in its quick form.

use heaptoll_conformance::deviation::{DEVIATIONS, LAYER_DEVIATIONS};
use heaptoll_conformance::suite::{Case, CaseKind};
use heaptoll_conformance::verdict;
use heaptoll_experiment::manager::{self, Manager, ManagerSource as Origin};
use heaptoll_experiment::places::Places;

use crate::SUITE;

/// Every name that a deviation may use, built here or not.
const KNOWN_NAMES: [&str; 31] = [
    "glibc",
    "tithe",
    "tithe-collect",
    "tithe-explicit",
    "tithe-guard",
    "bdw",
    "bdw-nofree",
    "bw16",
    "bw26",
    "treadmill",
    "mimalloc3",
    "mimalloc2",
    "jemalloc",
    "snmalloc",
    "tcmalloc",
    "rpmalloc",
    "debian-jemalloc",
    "debian-gperftools",
    "debian-mimalloc2",
    "debian-scudo",
    "debian-tbb",
    "knuth",
    "bestfit",
    "cartesian",
    "kingsley",
    "haertel",
    "lea",
    "quickfit",
    "pow2",
    "buddy",
    "bump",
];

/// Runs one case of `share` under each manager, from another one on each time: each case has some of the managers.
pub fn conform(places: &Places, managers: &[Manager], share: usize) {
    let cases: Vec<&Case> = SUITE.cases.iter().filter(|case| case.kind != CaseKind::Misuse).collect();
    assert!(cases.len() > 50, "only {} cases", cases.len());
    assert!(managers.len() >= share, "{} managers for {share} shares of the cases", managers.len());
    let mut unexpected = Vec::new();
    for first in 0..share {
        let some: Vec<&Case> = cases.iter().copied().skip(first).step_by(share).collect();
        let managers: Vec<Manager> = managers.iter().skip(first).step_by(share).cloned().collect();
        let cells = verdict::run(&SUITE, places, &managers, &some, true).expect("the cases can be run");
        let wrong = cells.iter().filter(|cell| !cell.verdict.is_expected());
        unexpected
            .extend(wrong.map(|cell| format!("{} under {}: {:?}", cell.case, cell.manager, cell.verdict)));
    }
    assert!(unexpected.is_empty(), "{unexpected:#?}");
}

fn installed(places: &Places) -> Vec<Manager> {
    let managers = manager::installed(places).expect("the managers can be listed");
    assert!(
        managers.iter().any(|one| one.kind == Origin::Built),
        "no built manager in {}: run `make build`",
        places.managers().display()
    );
    managers
}

#[test]
#[ignore = "slow: some 80 CPU seconds; a twentieth of it is in the fast tests"]
fn every_manager_conforms_but_for_what_is_known() {
    let places = Places::find().expect("heaptoll's own files");
    conform(&places, &installed(&places), 1);
}

#[test]
fn each_manager_conforms_in_some_cases_and_in_each_case_some_manager() {
    let places = Places::find().expect("heaptoll's own files");
    conform(&places, &installed(&places), 20);
}

#[test]
fn a_text_file_is_refused_and_not_judged_as_glibc() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let text = folder.path().join("text.so");
    std::fs::write(&text, "no shared object\n").expect("writes");
    let error = SUITE
        .check_bound("text.so", std::slice::from_ref(&text), &[])
        .expect_err("it is refused")
        .to_string();
    assert!(error.contains("libc"), "{error}");
    SUITE.check_bound("glibc", &[], &[]).expect("nothing is preloaded");
}

#[test]
fn deviations_name_cases_and_managers_that_exist_once_each() {
    let mut seen = Vec::new();
    for one in DEVIATIONS {
        for name in one.managers {
            assert!(KNOWN_NAMES.contains(name), "{name} is no manager");
            for case in one.cases {
                assert!(SUITE.case(case).is_ok(), "{case} is no case");
                assert!(!seen.contains(&(name, case)), "{case} under {name} is listed twice");
                seen.push((name, case));
            }
        }
    }
    for case in LAYER_DEVIATIONS.iter().flat_map(|one| one.cases) {
        assert!(SUITE.case(case).is_ok(), "{case} is no case");
    }
}

/// Stacks of layers, of which each is bound.
fn stacks_conform(share: usize) {
    let places = Places::find().expect("heaptoll's own files");
    let known = manager::known(&places).expect("the managers can be listed");
    let bases = ["glibc", "mimalloc3", "jemalloc", "knuth", "tithe-explicit"];
    let stacks: Vec<_> = ["forward", "quarantine=1B", "quarantine=64K,check=on"]
        .iter()
        .flat_map(|layer| bases.iter().map(move |base| (layer, base)))
        .filter(|(_, base)| known.iter().any(|one| one.name == **base))
        .map(|(layer, base)| manager::find(&known, &format!("{layer}/{base}")).expect("a stack"))
        .collect();
    for stack in &stacks {
        SUITE
            .check_bound(&stack.name, &stack.preload(&places), &stack.environment)
            .expect("the layer answers");
    }
    conform(&places, &stacks, share);
}

#[test]
#[ignore = "slow: 15 stacks in every case; a twelfth of it is in the fast tests"]
fn every_stack_of_layers_conforms_as_its_manager_does() {
    stacks_conform(1);
}

#[test]
fn each_stack_of_layers_conforms_in_some_cases_and_in_each_case_some_stack() {
    stacks_conform(12);
}
