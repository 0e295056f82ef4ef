//! The guard under proof, in Tithe and as a layer: a block that is freed while one place has its address is handed out to
//! nobody, and is when the address is gone.

use std::time::Duration;

use heaptoll_conformance::process::Ending;
use heaptoll_conformance::proof::subject::Subject;
use heaptoll_conformance::suite::in_parallel;

use super::PROGRAM;

const LIMIT: Duration = Duration::from_secs(120);

/// Cases about places of pointers begin with these.
const PLACES: [&str; 13] = [
    "altstack_",
    "containers",
    "context_",
    "exception_",
    "held_",
    "library_",
    "longjmp_",
    "place_",
    "process_child_drops",
    "process_fork",
    "registers_",
    "stack_",
    "thread_",
];
/// One of each family.
const FAMILIES: [&str; 16] = [
    "altstack_block",
    "context_block",
    "exception_flight",
    "held_by_the_kernel",
    "held_unseen",
    "library_data",
    "longjmp_frames",
    "place_block",
    "place_mapped",
    "place_static",
    "process_child_drops",
    "registers_across_call",
    "stack_block",
    "thread_data",
    "thread_registers",
    "thread_vectors",
];

fn guards() -> [Subject; 2] {
    let tithe = Subject::of("tithe guard", heaptoll_testing::staged::file("managers/tithe.so"));
    let layer = heaptoll_testing::staged::file("layers/libheaptoll_guard.so");
    [
        tithe.with("TITHE_MODE", "guard").with("TITHE_REPORT", "stderr").with("TITHE_PATIENCE", "20000"),
        Subject::glibc().with_layer("guard", layer),
    ]
}

/// The cases hold, and none of these programs is said to have done anything wrong: they read what they freed, but do not
/// write it.
fn hold<'a>(cases: impl Iterator<Item = &'a str> + Clone, subjects: &[Subject]) {
    let jobs: Vec<(&str, &Subject)> =
        subjects.iter().flat_map(|subject| cases.clone().map(move |case| (case, subject))).collect();
    let ends =
        in_parallel(&jobs, |(case, subject)| PROGRAM.run(case, subject, LIMIT).expect("the case can be run"));
    let wrong: Vec<String> = jobs
        .iter()
        .zip(ends)
        .filter(|(_, end)| end.ending != Ending::Status(0) || !end.stderr.is_empty())
        .map(|((case, subject), end)| format!("{case} under {}: {} {}", subject.name, end.ending, end.stderr))
        .collect();
    assert!(wrong.is_empty(), "{} of {}: {wrong:#?}", wrong.len(), jobs.len());
}

#[test]
fn one_place_of_each_family_holds_freed_blocks() {
    hold(FAMILIES.into_iter(), &guards());
}

#[test]
#[ignore = "slow: some minutes; one place of each family, with fewer blocks, is in the fast tests"]
fn every_place_holds_freed_blocks_while_millions_are_allocated() {
    let places = PROGRAM.cases.iter().map(|case| case.name.as_str());
    let places = places.filter(|case| PLACES.iter().any(|start| case.starts_with(start)));
    hold(places, &guards().map(|subject| subject.in_full()));
}
