//! Tithe under proof, as installed and with its assertions, in each of its modes.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use heaptoll_conformance::process::{End, Ending};
use heaptoll_conformance::proof::subject::Subject;
use heaptoll_conformance::proof::verdict::{Verdict, measurements};
use heaptoll_conformance::suite::in_parallel;
use heaptoll_statistics::median;

use super::PROGRAM;

/// A case needs a second at most on an idle machine.
const LIMIT: Duration = Duration::from_secs(60);
const MODES: [&str; 4] = ["hybrid", "collect", "explicit", "guard"];

/// One mode, another for each number.
fn in_turn(number: usize) -> Vec<&'static str> {
    vec![MODES[number % MODES.len()]]
}

struct Fixture {
    release: PathBuf,
    checked: PathBuf,
    folder: tempfile::TempDir,
}

static FIXTURE: LazyLock<Fixture> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a temporary folder");
    Fixture {
        release: heaptoll_testing::staged::file("managers/tithe.so"),
        checked: heaptoll_testing::staged::checked("tithe"),
        folder,
    }
});

fn release(mode: &str) -> Subject {
    Subject::of(&format!("tithe {mode}"), FIXTURE.release.clone()).with("TITHE_MODE", mode)
}

/// Collections as often as possible, and reclaimed blocks overwritten: in mode `guard` blocks are clear.
fn severe(mode: &str, object: &Path, headroom: &str) -> Subject {
    let subject = Subject::of(&format!("tithe {mode}, {}", object.display()), object.to_path_buf());
    let subject = subject.with("TITHE_MODE", mode).with("TITHE_MIN_HEADROOM", headroom);
    if mode == "guard" { subject } else { subject.with("TITHE_POISON", "1") }
}

/// These cases wait for threads that do not stop, and get a patience of their own.
fn is_about_patience(case: &str) -> bool {
    case.starts_with("stubborn") || case == "kernel_timer_thread" || case == "process_vfork_long"
}

fn run(case: &str, subject: &Subject) -> End {
    PROGRAM.run(case, subject, LIMIT).expect("the case can be run")
}

fn failures(jobs: &[(&str, Subject)]) -> Vec<String> {
    let verdicts = in_parallel(jobs, |(case, subject)| Verdict::of(&run(case, subject)));
    jobs.iter()
        .zip(verdicts)
        .filter_map(|((case, subject), verdict)| match verdict {
            Verdict::Fails(how) => Some(format!("{case} under {}: {how}", subject.name)),
            _ => None,
        })
        .collect()
}

#[test]
fn malloc_comes_from_tithe() {
    for object in [&FIXTURE.release, &FIXTURE.checked] {
        let end = PROGRAM.malloc_of(&Subject::of("tithe", object.clone())).expect("it runs");
        assert_eq!(PathBuf::from(end.stdout.trim()).canonicalize().ok(), object.canonicalize().ok());
    }
}

/// Runs each case in the modes that `modes` returns for its number, with assertions.
fn cases_hold(modes: impl Fn(usize) -> Vec<&'static str>) {
    let mut jobs = Vec::new();
    for (number, case) in PROGRAM.cases.iter().enumerate() {
        for mode in modes(number) {
            // The case of a million blocks takes too long with assertions.
            let object = if case.name == "large_million" { &FIXTURE.release } else { &FIXTURE.checked };
            let patience = if is_about_patience(&case.name) { "300" } else { "20000" };
            // Abandoned collections cost their patience, with the thread spinning: only the requested ones run.
            let headroom = if case.name.starts_with("stubborn_raw") { "1G" } else { "64K" };
            let subject = severe(mode, object, headroom).with("TITHE_PATIENCE", patience);
            let subject = subject.with("PROOF_BLOCKS", "20000");
            jobs.push((case.name.as_str(), subject));
        }
    }
    let failures = failures(&jobs);
    assert!(failures.is_empty(), "{} of {}: {failures:#?}", failures.len(), jobs.len());
}

#[test]
#[ignore = "slow: some 90 CPU seconds; a mode for each case in turn is in the fast tests"]
fn every_case_holds_in_every_mode() {
    cases_hold(|_| MODES.to_vec());
}

#[test]
fn every_case_holds_in_one_mode_or_another() {
    cases_hold(in_turn);
}

#[test]
#[ignore = "slow: seventeen CPU seconds; the same cases are in the fast tests with every assertion"]
fn the_shipped_object_holds_with_its_own_settings() {
    let cases =
        PROGRAM.cases.iter().filter(|case| !is_about_patience(&case.name) && case.name != "large_million");
    let jobs: Vec<_> = cases.map(|case| (case.name.as_str(), release("collect"))).collect();
    let failures = failures(&jobs);
    assert!(failures.is_empty(), "{} of {}: {failures:#?}", failures.len(), jobs.len());
}

/// Cases that the settings of studies affect: threads, forks, what is kept and what is reclaimed; every case in every
/// mode is above.
const ABOUT_COLLECTIONS: [&str; 7] = [
    "stress_",
    "process_fork",
    "process_child_drops",
    "thread_births",
    "thread_collectors",
    "place_block",
    "free_",
];

/// Collections that are swept before the program is resumed, some of which only mark, at short periods: with the
/// release object, which does not verify the whole heap at each of them.
#[test]
#[ignore = "slow: some 60 CPU seconds"]
fn cases_hold_under_the_settings_of_studies() {
    let mut jobs = Vec::new();
    let cases = PROGRAM.cases.iter().map(|case| case.name.as_str());
    for case in cases.filter(|case| ABOUT_COLLECTIONS.iter().any(|start| case.starts_with(start))) {
        for mode in ["hybrid", "collect"] {
            let subject = severe(mode, &FIXTURE.release, "64K")
                .with("TITHE_EVERY", "256K")
                .with("TITHE_SWEEP", "eager");
            jobs.push((case, subject.with("TITHE_RECLAIM", "3").with("TITHE_PATIENCE", "20000")));
        }
    }
    let failures = failures(&jobs);
    assert!(failures.is_empty(), "{} of {}: {failures:#?}", failures.len(), jobs.len());
}

#[test]
fn a_million_large_blocks_leave_few_mappings_and_little_memory() {
    let end = run("large_million", &release("hybrid").in_full());
    assert_eq!(end.ending, Ending::Status(0), "{} {}", end.stderr, end.stdout);
}

#[test]
fn every_case_applies_to_a_mode_that_it_is_about() {
    let about = [
        ("stress_graph", "collect"),
        ("free_ignored", "collect"),
        ("held_unseen", "collect"),
        ("roots_added", "hybrid"),
    ];
    for (case, mode) in about {
        assert_eq!(run(case, &release(mode)).ending, Ending::Status(0), "{case} in {mode}");
    }
}

/// At most 1 % of what is unreachable is kept: the median over seeds, of blocks and of bytes. Without poison, so that
/// reused blocks have old contents as in real programs. In a round a graph changes in so many steps.
fn at_most_one_percent_stays(counts_of_threads: [&[&str]; 2], seeds: u64, steps: &str) {
    for (mode, counts) in ["hybrid", "collect"].into_iter().zip(counts_of_threads) {
        let mut jobs = Vec::new();
        for threads in counts {
            for seed in 1..=seeds {
                let subject = release(mode).with("PROOF_THREADS", threads).with("PROOF_STEPS", steps);
                jobs.push(subject.with("PROOF_SEED", &(seed * 100).to_string()));
            }
        }
        let ends = in_parallel(&jobs, |subject| run("stress_graph", subject));
        let (mut objects, mut bytes) = (Vec::new(), Vec::new());
        for end in ends {
            assert_eq!(end.ending, Ending::Status(0), "{}", end.stderr);
            let found = measurements(&end.stdout);
            assert!(found.len() >= 3, "only {} measurements: {}", found.len(), end.stdout);
            for one in found {
                assert!(one.objects > 10, "too few blocks were dropped: {one:?}");
                objects.push(one.kept_objects as f64 / one.objects as f64);
                bytes.push(one.kept_bytes as f64 / one.bytes as f64);
            }
        }
        let mean = objects.iter().sum::<f64>() / objects.len() as f64;
        let (objects, bytes) = (median(&objects), median(&bytes));
        assert!(objects <= 0.01, "{mode}: {objects} of the blocks are kept");
        assert!(bytes <= 0.01, "{mode}: {bytes} of the bytes are kept");
        assert!(mean <= 0.03, "{mode}: {mean} of the blocks are kept in the mean");
    }
}

#[test]
#[ignore = "slow: some 25 CPU seconds; each mode and each number of threads once is in the fast tests"]
fn of_what_is_unreachable_at_most_one_percent_stays() {
    at_most_one_percent_stays([&["1", "2", "4", "8"]; 2], 2, "1500");
}

#[test]
fn of_what_is_unreachable_at_most_one_percent_stays_with_one_seed() {
    at_most_one_percent_stays([&["1", "4"], &["2", "8"]], 1, "500");
}

#[test]
fn a_wrong_setting_ends_the_process_and_is_named() {
    let wrong = [
        ("TITHE_MODE", "fast"),
        ("TITHE_MODE", ""),
        ("TITHE_POLICY", "zorn"),
        ("TITHE_POLICY", "fixed"), // without TITHE_MAX_HEAP
        ("TITHE_HEADROOM", "0"),
        ("TITHE_HEADROOM", "-5"),
        ("TITHE_HEADROOM", "many"),
        ("TITHE_MIN_HEADROOM", "1"),
        ("TITHE_MIN_HEADROOM", "64Q"),
        ("TITHE_MIN_HEADROOM", "99999999999999999999"),
        ("TITHE_MAX_HEAP", "0"),
        ("TITHE_MAX_HEAP", "1.5G"),
        ("TITHE_EVERY", "0"),
        ("TITHE_RECLAIM", "0"),
        ("TITHE_HEAP", "1K"),
        ("TITHE_SWEEP", "both"),
        ("TITHE_MARKERS", "0"),
        ("TITHE_MARKERS", "65"),
        ("TITHE_LOG", "/nowhere/at/all"),
        ("TITHE_WHY", "here"),
        ("TITHE_SIGNAL", "9"),
        ("TITHE_SIGNAL", "rtmax-99"),
        ("TITHE_PATIENCE", "0"),
        ("TITHE_PATIENCE", "2s"),
        ("TITHE_POISON", "yes"),
        ("TITHE_MOED", "collect"),
    ];
    for (name, value) in wrong {
        let end = run("process_exit", &Subject::of("tithe", FIXTURE.release.clone()).with(name, value));
        assert!(
            matches!(end.ending, Ending::Status(status) if status != 0),
            "{name}={value}: {}",
            end.ending
        );
        assert!(end.stderr.contains(name), "{name}={value}: {}", end.stderr);
        assert!(end.stderr.contains(value), "{name}={value}: {}", end.stderr);
        assert!(end.stderr.lines().count() <= 3, "{name}={value}: {}", end.stderr);
    }
}

#[test]
fn right_settings_are_taken() {
    let right: [&[(&str, &str)]; 12] = [
        &[("TITHE_HEAP", "512M"), ("TITHE_SWEEP", "eager")],
        &[("TITHE_EVERY", "1M"), ("TITHE_RECLAIM", "4")],
        &[("TITHE_HEAP", "512M")],
        &[("TITHE_POLICY", "fixed"), ("TITHE_MAX_HEAP", "64M")],
        &[("TITHE_POLICY", "zorn1992")],
        &[("TITHE_POLICY", "membalancer")],
        &[("TITHE_HEADROOM", "300"), ("TITHE_MIN_HEADROOM", "1M")],
        &[("TITHE_MARKERS", "2")],
        &[("TITHE_LOG", "-")],
        &[("TITHE_WHY", "0x1234")],
        &[("TITHE_SIGNAL", "rtmax-5")],
        &[("TITHE_SIGNAL", "12")],
    ];
    for (settings, mode) in right.iter().zip(MODES.iter().cycle()) {
        let subject = settings.iter().fold(release(mode), |subject, (name, value)| subject.with(name, value));
        let end = run("place_block", &subject);
        assert_eq!(end.ending, Ending::Status(0), "{settings:?} in {mode}: {}", end.stderr);
    }
}

fn messages(end: &End) -> Vec<&str> {
    end.stderr.lines().filter(|line| line.contains("tithe")).collect()
}

#[test]
fn a_wrong_free_is_reported_once_a_sort_and_by_name() {
    let cases = [
        "free_foreign",
        "free_static",
        "free_stack",
        "free_interior",
        "free_twice_small",
        "free_twice_large",
    ];
    for case in cases {
        for mode in ["hybrid", "explicit", "guard"] {
            let end = run(case, &release(mode));
            assert_eq!(end.ending, Ending::Status(0), "{case} in {mode}: {}", end.stderr);
            let reports = messages(&end);
            assert!(reports.len() == 1, "{case} in {mode}: {reports:#?}");
            assert!(reports[0].contains("free(0x"), "{case} in {mode}: {reports:#?}");
        }
    }
}

#[test]
fn exit_runs_no_collection() {
    for mode in ["hybrid", "collect"] {
        let log = FIXTURE.folder.path().join(format!("{mode}.log"));
        // Only the requested collections.
        let subject = release(mode).with("TITHE_MIN_HEADROOM", "1G");
        let subject = subject.with("TITHE_LOG", &log.display().to_string());
        let end = run("process_exit", &subject);
        assert_eq!(end.ending, Ending::Status(0), "{}", end.stderr);
        let text = std::fs::read_to_string(&log).expect("the log was written");
        assert_eq!(text.lines().count(), 3, "three collections were requested: {text}");
    }
}

#[test]
fn the_log_names_each_place_that_is_not_read_once() {
    let log = FIXTURE.folder.path().join("unread.log");
    let end = run("held_unseen", &release("hybrid").with("TITHE_LOG", &log.display().to_string()));
    assert_eq!(end.ending, Ending::Status(0), "{}", end.stderr);
    let text = std::fs::read_to_string(&log).expect("the log was written");
    for place in ["io_uring", "io_submit"] {
        let tried = !end.stdout.contains(&format!("not tried: {}", place.replace("submit", "setup")));
        let lines = text.lines().filter(|line| line.ends_with(&format!(" unread={place}"))).count();
        assert_eq!(lines, usize::from(tried), "{place}: {text}");
    }
}

#[test]
fn a_thread_that_does_not_stop_is_named_in_the_log_and_not_on_standard_error() {
    for mode in ["hybrid", "collect"] {
        let log = FIXTURE.folder.path().join(format!("stubborn-{mode}.log"));
        // Only the collections that the case requests: each waits with the thread spinning.
        let subject = release(mode).with("TITHE_PATIENCE", "100").with("TITHE_MIN_HEADROOM", "1G");
        let end = run("stubborn_raw", &subject.with("TITHE_LOG", &log.display().to_string()));
        assert_eq!(end.ending, Ending::Status(0), "{mode}: {} {}", end.stderr, end.stdout);
        assert!(messages(&end).is_empty(), "{mode}: {}", end.stderr);
        let text = std::fs::read_to_string(&log).expect("the log was written");
        assert!(text.contains(" cause=thread ") && text.contains(" thread=stubborn"), "{mode}: {text}");
    }
}

/// From too little to start to so much that no request fails, in the modes that `modes` returns for its number.
fn little_address_space_is_used(modes: impl Fn(usize) -> Vec<&'static str>) {
    let mut jobs = Vec::new();
    for (number, mib) in [10, 16, 24, 40, 64, 100, 200, 400, 1000].into_iter().enumerate() {
        for mode in modes(number) {
            jobs.push(release(mode).with("PROOF_LIMIT", &(mib << 20_u64).to_string()));
        }
    }
    let ends = in_parallel(&jobs, |subject| run("limit_address_space", subject));
    let mut went_on = 0;
    for (subject, end) in jobs.iter().zip(&ends) {
        let limit = &subject.environment;
        match end.ending {
            Ending::Status(0) => went_on += 1,
            Ending::Status(status) => {
                assert!(!end.stderr.is_empty(), "{limit:?}: status {status} without a message");
                let by_tithe = end.stderr.contains("tithe");
                // The loader reports it when the libraries themselves do not fit.
                let by_loader = end.stderr.contains("error while loading shared libraries");
                assert!(by_tithe || by_loader, "{limit:?}: {}", end.stderr);
            }
            other => panic!("{limit:?}: {other}: {}", end.stderr),
        }
    }
    assert!(went_on >= ends.len() / 2, "only {went_on} of {} went on", ends.len());
}

#[test]
#[ignore = "slow: some five CPU seconds; a mode for each limit in turn is in the fast tests"]
fn little_address_space_gives_blocks_or_null_or_a_message_in_every_mode() {
    little_address_space_is_used(|_| MODES.to_vec());
}

#[test]
fn little_address_space_gives_blocks_or_null_or_a_message() {
    little_address_space_is_used(in_turn);
}
