//! The suite against managers with seeded defects: the correct one passes, and each defect is found by the cases about
//! it. This shows that every case can fail.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::time::Duration;

use heaptoll_conformance::misuse::{MisuseOutcome, outcome};
use heaptoll_conformance::process::{End, Ending};
use heaptoll_conformance::suite::{CaseKind, compile, headers, in_parallel};
use heaptoll_conformance::verdict::{Verdict, judge};

use crate::SUITE;

/// A defect and the cases that must find it.
const MUTANTS: &[(&str, &[&str])] = &[
    ("misaligned", &["alignment_default", "cxx_operators"]),
    ("misaligned_small", &["alignment_small"]),
    ("unaligned", &["alignment_powers", "zero_aligned"]),
    ("valloc", &["alignment_pages"]),
    ("posix_takes_all", &["posix_memalign_refuses"]),
    ("posix_writes", &["posix_memalign_refuses", "huge_aligned", "errno_posix_memalign"]),
    ("posix_errno", &["errno_posix_memalign"]),
    ("memalign_takes_all", &["memalign_refuses"]),
    ("calloc_dirty", &["calloc_zeroes", "calloc_zeroes_parts"]),
    ("calloc_half", &["calloc_zeroes", "calloc_zeroes_parts"]),
    ("calloc_overflow", &["calloc_overflow"]),
    ("reallocarray_overflow", &["reallocarray_overflow"]),
    ("huge_wraps", &["huge_malloc", "cxx_nothrow", "cxx_bad_alloc", "cxx_new_handler"]),
    ("realloc_frees_first", &["huge_realloc"]),
    ("aligned_huge", &["huge_aligned"]),
    (
        "errno_missing",
        &[
            "errno_overflow",
            "errno_huge",
            "errno_huge_aligned",
            "fault_every_50",
            "fault_threads",
            "out_of_data",
        ],
    ),
    ("errno_malloc", &["errno_allocating"]),
    ("errno_free", &["errno_free"]),
    ("free_null", &["null_pointers"]),
    ("usable_of_null", &["null_pointers"]),
    ("usable_too_much", &["usable_size"]),
    ("zero_same", &["zero_malloc"]),
    ("realloc_zero_dangles", &["zero_realloc"]),
    ("realloc_zero_leaks", &["zero_realloc_leak"]),
    ("realloc_loses_end", &["realloc_contents", "realloc_aligned", "realloc_large"]),
    ("realloc_in_place_too_far", &["realloc_walk"]),
    ("short", &["random_blocks", "cxx_containers", "cxx_thread_locals", "cxx_mixed", "dlopen_close"]),
    ("never_frees", &["reuse_small", "reuse_large", "reuse_when_full"]),
    ("aborts_when_full", &["out_of_address_space", "out_of_data"]),
    ("large_refused", &["large_blocks"]),
    ("starts_late", &["constructors"]),
    ("none_after_exit", &["exit_handlers"]),
    ("thread_end", &["key_destructors"]),
    ("no_lock", &["threads_cross_free", "threads_contention", "threads_many"]),
    ("fork_unsafe", &["fork_threaded"]),
    ("fork_child_locked", &["fork_handlers", "fork_in_handler"]),
    ("fork_deadlock", &["fork_handlers_of_library"]),
    ("fork_without_streams", &["fork_streams"]),
    ("control_version", &["control_header"]),
    ("census_short", &["census_live"]),
    ("census_keeps", &["census_freed"]),
    ("census_classes", &["census_classes"]),
    ("census_overruns", &["census_capacity"]),
    ("census_identity", &["census_threaded", "random_blocks"]),
    ("check_fails", &["census_threaded", "null_pointers"]),
    ("no_events", &["event_listener"]),
    ("statistics_empty", &["statistics"]),
    ("statistics_options", &["statistics"]),
    ("statistics_total", &["statistics"]),
    ("faults_unread", &["fault_every_1", "fault_every_2", "fault_every_3", "fault_every_7"]),
    ("faults_stick", &["fault_every_2"]),
];

struct Fixture {
    object: PathBuf,
    incomplete: PathBuf,
    _folder: tempfile::TempDir,
}

static FIXTURE: LazyLock<Fixture> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let build = |name: &str, define: &str| {
        let object = folder.path().join(name);
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mutant/manager.c");
        let mut command = Command::new("cc");
        command.args(["-O1", "-fno-builtin", "-std=c11", "-pthread", "-fPIC", "-shared", "-Wall", "-Wextra"]);
        command.arg(define).arg("-I").arg(headers()).arg("-o").arg(&object).arg(source);
        compile(&mut command, "gcc").expect("the mutant compiles");
        object
    };
    let (object, incomplete) = (build("mutant.so", "-DWHOLE"), build("incomplete.so", "-DWITHOUT_PVALLOC"));
    Fixture { object, incomplete, _folder: folder }
});

fn run(case: &str, mutant: &str) -> End {
    run_with(&FIXTURE.object, case, mutant)
}

fn run_with(object: &Path, case: &str, mutant: &str) -> End {
    let case = SUITE.case(case).expect("the case exists");
    let environment = [("HEAPTOLL_MUTANT".to_string(), mutant.to_string())];
    SUITE.run(case, &[object.to_owned()], &environment, true, Duration::from_secs(30)).expect("it runs")
}

#[test]
#[ignore = "slow: each case again; the suite's sources decide it alone"]
fn the_sound_manager_passes_every_case() {
    let cases: Vec<&str> = judged();
    for (case, end) in cases.iter().zip(in_parallel(&cases, |case| run(case, ""))) {
        assert_eq!(judge(&end, None), Verdict::Holds, "{case}");
    }
}

#[test]
#[ignore = "slow: a run for each defect and case"]
fn every_defect_is_found_by_the_cases_about_it() {
    let jobs: Vec<(&str, &str)> =
        MUTANTS.iter().flat_map(|(mutant, cases)| cases.iter().map(move |case| (*mutant, *case))).collect();
    let missed: Vec<String> = jobs
        .iter()
        .zip(in_parallel(&jobs, |(mutant, case)| run(case, mutant)))
        .filter(|(_, end)| !matches!(judge(end, None), Verdict::Fails(_)))
        .map(|((mutant, case), end)| format!("{case} does not find {mutant}: {}", end.ending))
        .collect();
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn a_member_that_is_missing_is_found() {
    let end = run_with(&FIXTURE.incomplete, "binding", "");
    let Verdict::Fails(why) = judge(&end, None) else { panic!("{:?}", end.ending) };
    assert!(why.contains("pvalloc comes from"), "{why}");
}

#[test]
fn every_judged_case_has_a_mutant() {
    let without: Vec<&str> = judged()
        .into_iter()
        .filter(|case| *case != "binding" && !MUTANTS.iter().any(|(_, cases)| cases.contains(case)))
        .collect();
    assert!(without.is_empty(), "no mutant for {without:?}");
}

#[test]
fn a_double_free_is_recorded_as_detected_or_not() {
    assert_eq!(outcome(&run("double_free", "")), MisuseOutcome::Detected);
    assert_eq!(outcome(&run("double_free", "double_free_unseen")), MisuseOutcome::CorruptedLater);
    assert_eq!(outcome(&run("free_far", "")), MisuseOutcome::CrashWithoutMessage);
}

#[test]
fn a_crash_costs_one_case() {
    let end = run("null_pointers", "free_null");
    assert_eq!(end.ending, Ending::Signal(libc::SIGABRT));
}

fn judged() -> Vec<&'static str> {
    SUITE.cases.iter().filter(|case| case.kind != CaseKind::Misuse).map(|case| case.name.as_str()).collect()
}
