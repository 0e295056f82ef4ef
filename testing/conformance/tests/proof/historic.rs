//! The historic collectors under the cases about what all collectors share: where roots are read, how threads stop and
//! exec, and on which stack a collection runs.

use std::time::Duration;

use heaptoll_conformance::proof::subject::Subject;
use heaptoll_conformance::proof::verdict::Verdict;
use heaptoll_conformance::suite::in_parallel;

use super::PROGRAM;

/// A case needs a second at most on an idle machine.
const LIMIT: Duration = Duration::from_secs(60);
const COLLECTORS: [&str; 3] = ["bw16", "bw26", "treadmill"];
const CASES: [&str; 14] = [
    "stack_above_data",
    "altstack_gone",
    "context_automatic",
    "place_shared_in_child",
    "place_let_go",
    "place_view",
    "place_cut",
    "little_thread",
    "little_automatic",
    "little_static",
    "little_block",
    "process_exec",
    "process_handler_execs",
    "little_alternate",
];

/// Runs the cases under the collectors that `collectors` returns for their numbers.
fn cases_hold(collectors: impl Fn(usize) -> Vec<&'static str>) {
    let jobs: Vec<_> = (0..CASES.len())
        .flat_map(|number| collectors(number).into_iter().map(move |collector| (collector, CASES[number])))
        .collect();
    let verdicts = in_parallel(&jobs, |(collector, case)| {
        let object = heaptoll_testing::staged::file(&format!("managers/{collector}.so"));
        PROGRAM.judge(case, &Subject::of(collector, object), LIMIT).expect("the case can be run")
    });
    let failures: Vec<_> =
        jobs.iter().zip(verdicts).filter(|(_, verdict)| *verdict != Verdict::Holds).collect();
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn what_lies_on_stacks_and_in_files_is_kept_little_stacks_suffice_and_a_new_program_gets_no_signal() {
    cases_hold(|number| vec![COLLECTORS[number % COLLECTORS.len()]]);
}

#[test]
#[ignore = "slow: each case under each collector; one of them in turn is in the fast tests"]
fn these_cases_hold_under_every_historic_collector() {
    cases_hold(|_| COLLECTORS.to_vec());
}
