//! The sweep layer under proof: in front of the C library's malloc and of every manager of the installation.

use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use heaptoll_conformance::process::Ending;
use heaptoll_conformance::proof::subject::Subject;
use heaptoll_conformance::proof::verdict::{Verdict, measurements};
use heaptoll_conformance::suite::in_parallel;
use heaptoll_statistics::median;

use super::PROGRAM;

/// A case needs some seconds at most on an idle machine.
const LIMIT: Duration = Duration::from_secs(120);
/// A layer in front of a collector would run two collectors; bdw takes no layer at all.
const COLLECTORS: [&str; 4] = ["bdw", "bw16", "bw26", "treadmill"];
/// Cases about limits of memory, about memory released to the system, or about Tithe's own functions: the manager
/// decides them, not the layer.
const MANAGERS_OWN: [&str; 3] = ["limit_", "large_", "roots_added"];
/// Cases that these managers fail without the layer too: a child of tcmalloc's fork hangs when other threads were
/// inside it, rpmalloc's hook at the end of a detached thread reads unmapped memory (2 of 8 runs), and bump never
/// reuses memory, so that a process that goes on allocating ends.
const FAIL_ALONE: [(&str, &str); 3] =
    [("tcmalloc", "fork"), ("rpmalloc", "thread_detached"), ("bump", "process_fork")];

/// Managers under which all cases run; under the others only those on threads and forks, which depend on the manager
/// most.
const FULLY_TESTED: [&str; 2] = ["/mimalloc3", "/jemalloc"];
const ABOUT_THE_MANAGER: [&str; 8] = [
    "process_fork",
    "process_child_drops",
    "process_spawn",
    "stress_",
    "thread_births",
    "thread_destructors",
    "thread_collectors",
    "exception_storm",
];

struct Fixture {
    layer: PathBuf,
    managers: Vec<(String, PathBuf)>,
}

static FIXTURE: LazyLock<Fixture> = LazyLock::new(|| {
    let layer = heaptoll_testing::staged::file("layers/libheaptoll_sweep.so");
    let built = heaptoll_testing::staged::file("managers");
    let entries = std::fs::read_dir(&built).expect("a folder");
    let mut managers: Vec<(String, PathBuf)> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "so"))
        .filter_map(|path| Some((path.file_stem()?.to_str()?.to_owned(), path)))
        .filter(|(name, _)| !COLLECTORS.contains(&name.as_str()))
        .collect();
    managers.sort();
    assert!(!managers.is_empty(), "no manager in {}", built.display());
    Fixture { layer, managers }
});

fn subjects() -> Vec<Subject> {
    let one = |(name, object): &(String, PathBuf)| Subject::of(name, object.clone());
    let explicit = |subject: Subject| subject.with("TITHE_MODE", "explicit");
    let with_layer = |subject: Subject| subject.with_layer("sweep", FIXTURE.layer.clone());
    let managers = FIXTURE.managers.iter().map(one).map(explicit);
    std::iter::once(Subject::glibc()).chain(managers).map(with_layer).collect()
}

fn failures(jobs: &[(&str, Subject)]) -> Vec<String> {
    let verdicts = in_parallel(jobs, |(case, subject)| {
        PROGRAM.judge(case, subject, LIMIT).expect("the case can be run")
    });
    jobs.iter()
        .zip(verdicts)
        .filter_map(|((case, subject), verdict)| match verdict {
            Verdict::Fails(how) => Some(format!("{case} under {}: {how}", subject.name)),
            _ => None,
        })
        .collect()
}

/// Whether a case applies to a stack.
fn applies(case: &str, subject: &Subject) -> bool {
    let own = MANAGERS_OWN.iter().any(|start| case.starts_with(start));
    let alone = FAIL_ALONE.iter().any(|(name, part)| subject.name.ends_with(name) && case.contains(part));
    !(own || alone)
}

/// Cases that apply to a stack.
fn applicable(subject: &Subject) -> impl Iterator<Item = &'static str> {
    PROGRAM.cases.iter().map(|case| case.name.as_str()).filter(|case| applies(case, subject))
}

#[test]
fn malloc_comes_from_the_layer() {
    for subject in subjects() {
        let end = PROGRAM.malloc_of(&subject).expect("it runs");
        let from = PathBuf::from(end.stdout.trim()).canonicalize().ok();
        assert_eq!(from, FIXTURE.layer.canonicalize().ok(), "{}", subject.name);
    }
}

/// The historic collectors have no layer in front of them, and find roots by the same code.
#[test]
fn the_historic_collectors_keep_what_only_the_kernel_or_unusual_memory_holds() {
    let collectors = ["bw16", "bw26", "treadmill"];
    let subject =
        |name: &str| Subject::of(name, heaptoll_testing::staged::file(&format!("managers/{name}.so")));
    let jobs: Vec<_> = collectors.iter().map(|name| ("held_by_the_kernel", subject(name))).collect();
    let failures = failures(&jobs);
    assert!(failures.is_empty(), "{failures:#?}");
}

/// Cases that depend on the manager more than on the layer.
fn manager_cases(subject: &Subject) -> impl Iterator<Item = &'static str> {
    applicable(subject).filter(|case| ABOUT_THE_MANAGER.iter().any(|start| case.starts_with(start)))
}

#[test]
#[ignore = "slow: some 20 CPU seconds; each case in front of one manager is in the fast tests"]
fn every_case_holds_in_front_of_glibc_with_frees_ignored_and_some_with_other_settings() {
    let glibc = Subject::glibc().with_layer("sweep", FIXTURE.layer.clone());
    let mut jobs = vec![];
    for settings in ["every=64K", "every=64K,free=honour", "every=64K,sweep=lazy", "every=64K,reclaim=4"] {
        let subject = Subject { name: format!("sweep,{settings}/glibc"), ..glibc.clone() };
        let subject = subject.with("HEAPTOLL_SWEEP", settings);
        if settings.contains(',') {
            jobs.extend(manager_cases(&subject).map(|case| (case, subject.clone())));
        } else {
            jobs.extend(applicable(&subject).map(|case| (case, subject.clone())));
        }
    }
    let failures = failures(&jobs);
    assert!(failures.is_empty(), "{} of {}: {failures:#?}", failures.len(), jobs.len());
}

/// Whether the whole matrix has a case in front of a manager: where managers differ little, one case of a kind is there.
fn in_matrix(case: &str, subject: &Subject) -> bool {
    let fully = FULLY_TESTED.iter().any(|name| subject.name.ends_with(name));
    applies(case, subject) && (fully || ABOUT_THE_MANAGER.iter().any(|start| case.starts_with(start)))
}

/// Each case of the matrix has a manager, from another one on each time: each manager has some of the cases.
#[test]
fn each_case_holds_in_front_of_some_manager_and_some_cases_of_each() {
    let subjects = subjects();
    let mut jobs = vec![];
    for (number, case) in PROGRAM.cases.iter().map(|case| case.name.as_str()).enumerate() {
        let able: Vec<&Subject> = subjects.iter().filter(|subject| in_matrix(case, subject)).collect();
        jobs.extend(able.iter().cycle().nth(number).map(|subject| (case, (*subject).clone())));
    }
    let failures = failures(&jobs);
    assert!(failures.is_empty(), "{} of {}: {failures:#?}", failures.len(), jobs.len());
}

#[test]
#[ignore = "slow: some 60 CPU seconds; each case in front of one manager is in the fast tests"]
fn cases_hold_in_front_of_every_manager() {
    let mut jobs = vec![];
    for subject in subjects() {
        let cases = applicable(&subject).filter(|case| in_matrix(case, &subject));
        jobs.extend(cases.map(|case| (case, subject.clone())));
    }
    let failures = failures(&jobs);
    assert!(failures.is_empty(), "{} of {}: {failures:#?}", failures.len(), jobs.len());
}

/// At most 3 % of unreachable blocks are kept in the median. Tithe's limit is 1 %; a manager without a collector leaves
/// addresses on stacks (tcmalloc: 1 to 2 % in the median).
#[test]
#[ignore = "slow: some 20 CPU seconds; each case in front of one manager is in the fast tests"]
fn of_what_is_unreachable_little_stays_whatever_the_manager() {
    let subjects = subjects();
    let ends = in_parallel(&subjects, |subject| {
        PROGRAM.run("stress_graph", subject, LIMIT).expect("the case can be run")
    });
    for (subject, end) in subjects.iter().zip(ends) {
        assert_eq!(end.ending, Ending::Status(0), "{}: {}", subject.name, end.stderr);
        let found = measurements(&end.stdout);
        assert!(found.len() >= 3, "{}: only {} measurements: {}", subject.name, found.len(), end.stdout);
        let shares = found.iter().map(|one| one.kept_objects as f64 / one.objects as f64);
        let share = median(&shares.collect::<Vec<f64>>());
        assert!(share <= 0.03, "{}: {share} of the blocks are kept", subject.name);
    }
}
