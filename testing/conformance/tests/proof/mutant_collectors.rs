//! Cases against a plain collector, correct and with seeded defects: the correct one passes, each defect is found by
//! the cases about it. This shows that the cases can fail.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::time::Duration;

use heaptoll_conformance::proof::subject::Subject;
use heaptoll_conformance::proof::verdict::{Verdict, measurements};
use heaptoll_conformance::suite::{compile, headers, in_parallel};

use super::PROGRAM;

/// A defect and the cases that must find it.
const MUTANTS: &[(&str, &[&str])] = &[
    ("no_registers", &["thread_registers", "thread_vectors"]),
    ("no_vectors", &["thread_vectors"]),
    ("no_upper_vectors", &["thread_vectors"]),
    ("no_red_zone", &["thread_registers"]),
    ("no_thread_data", &["thread_data"]),
    ("no_data", &["place_static"]),
    ("no_shared", &["place_mapped", "place_file", "place_mapped_twice", "place_shared_in_child"]),
    ("shared_present", &["place_mapped_twice", "place_shared_in_child", "place_let_go"]),
    ("past_end", &["place_cut"]),
    ("no_stack", &["longjmp_frames", "context_mapped"]),
    ("no_mapped", &["place_mapped", "thread_stack"]),
    ("no_read_only", &["place_read_only", "place_view"]),
    ("from_sp", &["stack_above_data", "context_together", "context_automatic"]),
    ("on_alternate", &["altstack_gone"]),
    ("deep_frames", &["little_automatic", "little_static", "little_block"]),
    ("no_interior", &["place_static", "thread_data", "stress_graph"]),
    ("no_heap_words", &["place_block", "structure_list", "containers"]),
    ("first_kilobyte", &["place_block"]),
    ("mark_stack_short", &["structure_wide"]),
    ("loses_some", &["structure_list", "structure_wide"]),
    ("self_maps", &["thread_main_goes"]),
    ("keeps_all", &["structure_ring", "place_static", "library_data", "held_unseen", "longjmp_frames"]),
    ("keeps_memory", &["large_million"]),
    ("no_last_resort", &["limit_collects_first"]),
    ("no_restart", &["call_waits"]),
    ("no_patience_limit", &["stubborn_raw"]),
    ("masked", &["stubborn_pthread"]),
    ("fork_locked", &["stress_fork", "process_child_drops"]),
    ("frees_anything", &["free_interior"]),
    ("frees_in_collect", &["free_ignored"]),
    ("calloc_dirty", &["stress_graph"]),
];

/// The same of the collector as a guard: what it forgets to read, and what it does with freed blocks.
const GUARD_MUTANTS: &[(&str, &[&str])] = &[
    ("guard_at_once", &["place_static", "thread_stack", "registers_across_call"]),
    ("guard_keeps_data", &["place_static", "place_block"]),
    ("guard_no_end", &["place_static", "place_mapped"]),
    ("guard_traces", &["place_static", "place_mapped"]),
    ("keeps_all", &["place_static", "library_data", "held_unseen", "longjmp_frames"]),
    ("no_registers", &["thread_registers"]),
    ("no_vectors", &["thread_vectors"]),
    ("no_red_zone", &["thread_registers"]),
    ("no_thread_data", &["thread_data"]),
    ("no_data", &["place_static"]),
    ("no_shared", &["place_mapped", "place_file", "place_shared_in_child"]),
    ("no_stack", &["longjmp_frames", "context_mapped"]),
    ("no_mapped", &["place_mapped", "thread_stack"]),
    ("no_read_only", &["place_read_only", "place_view"]),
    ("no_interior", &["place_static", "thread_data"]),
    ("no_heap_words", &["place_block"]),
];

struct Fixture {
    object: PathBuf,
    _folder: tempfile::TempDir,
}

static FIXTURE: LazyLock<Fixture> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let object = folder.path().join("mutant.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/proof/mutant/collector.c");
    let mut command = Command::new("cc");
    command.args(["-O2", "-fno-builtin", "-std=gnu11", "-pthread", "-fPIC", "-shared", "-Wall", "-Wextra"]);
    command.arg("-I").arg(headers()).arg("-o").arg(&object).arg(source);
    compile(&mut command, "gcc").expect("the collector compiles");
    Fixture { object, _folder: folder }
});

fn mutant(name: &str, case: &str, mode: &str) -> Subject {
    let mode = if case == "free_ignored" { "collect" } else { mode };
    // A thread that does not stop should cost little, and a busy machine should not be taken for one.
    let patience =
        if case.starts_with("stubborn") || case == "kernel_timer_thread" { "300" } else { "20000" };
    let subject =
        Subject::of(name, FIXTURE.object.clone()).with("PROOF_MUTANT", name).with("PROOF_PLAIN_STOPS", "1");
    subject.with("TITHE_MODE", mode).with("TITHE_PATIENCE", patience)
}

fn judge(name: &str, case: &str, mode: &str, seconds: u64) -> Verdict {
    PROGRAM.judge(case, &mutant(name, case, mode), Duration::from_secs(seconds)).expect("the case can be run")
}

/// The sound collector passes what finds a defect, and each case finds the defects that it is about.
fn defects_are_found(mutants: &[(&str, &[&str])], mode: &str) {
    let mut jobs: Vec<(&str, &str)> =
        mutants.iter().flat_map(|(name, cases)| cases.iter().map(move |case| (*name, *case))).collect();
    let mut sound: Vec<(&str, &str)> = jobs.iter().map(|(_, case)| ("none", *case)).collect();
    sound.sort_unstable();
    sound.dedup();
    jobs.extend(sound);
    let verdicts =
        in_parallel(&jobs, |(name, case)| judge(name, case, mode, if *name == "none" { 60 } else { 15 }));
    let wrong: Vec<_> = jobs
        .iter()
        .zip(verdicts)
        .filter(|((name, _), verdict)| match *name {
            "none" => *verdict != Verdict::Holds,
            _ => !matches!(verdict, Verdict::Fails(_)),
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
#[ignore = "slow: 30 defects, each in the cases about it, and none in each"]
fn every_defect_is_found_and_the_sound_collector_passes() {
    defects_are_found(MUTANTS, "hybrid");
}

#[test]
#[ignore = "slow: 16 defects, each in the cases about it, and none in each; one is in the fast tests"]
fn every_defect_of_a_guard_is_found_and_the_sound_one_passes() {
    defects_are_found(GUARD_MUTANTS, "guard");
}

#[test]
fn a_guard_that_frees_at_once_is_found_and_the_sound_one_passes() {
    defects_are_found(&GUARD_MUTANTS[..1], "guard");
}

/// The measurement finds a collector that keeps every twentieth dead block.
#[test]
fn what_stays_is_measured() {
    let subject = mutant("keeps_some", "stress_graph", "hybrid").with("PROOF_THREADS", "2");
    let end = PROGRAM.run("stress_graph", &subject, Duration::from_secs(60)).expect("the case can be run");
    let found = measurements(&end.stdout);
    assert!(!found.is_empty(), "{} {}", end.stdout, end.stderr);
    let (objects, kept) =
        found.iter().fold((0, 0), |sum, one| (sum.0 + one.objects, sum.1 + one.kept_objects));
    assert!(kept * 100 > objects * 2, "{kept} of {objects}");
}
