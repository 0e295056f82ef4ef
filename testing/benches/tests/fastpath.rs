//! The gate is tested on planted faults, then applied to every manager of the stage.

use std::path::{Path, PathBuf};
use std::process::Command;

use heaptoll_bench::fastpath::{Operation, Program, Verdict, gate, tracer};
use heaptoll_experiment::manager;
use heaptoll_experiment::places::Places;

const SIZES: [usize; 6] = [8, 24, 40, 100, 400, 1000];

/// `tests/exact.c`, with a fault or without.
fn allocator(fault: &str) -> PathBuf {
    let object = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("exact-{fault}.so"));
    let status = Command::new("cc")
        .args(["-O2", "-Wall", "-Wextra", "-Werror", "-fno-builtin", "-fPIC", "-shared"])
        .arg(format!("-D{fault}"))
        .arg("-o")
        .arg(&object)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/exact.c"))
        .status();
    assert!(status.is_ok_and(|status| status.success()), "the allocator is built");
    object
}

fn paths(object: Option<&Path>, threads: bool) -> Vec<tracer::Path> {
    let program = Program::build().expect("a program");
    tracer::paths(program.path(), object, &[], &SIZES, threads).expect("paths")
}

#[test]
fn the_shortest_path_is_held_and_counted() {
    let object = allocator("EXACT");
    let paths = paths(Some(&object), false);
    assert_eq!(paths.len(), 6 * SIZES.len());
    for path in &paths {
        assert_eq!(Verdict::strict(path), Verdict::Held);
        assert!((4..40).contains(&path.instructions), "{path:?}");
        assert_eq!(path.stack_bytes, 0, "{path:?}");
    }
    // Without a branch on the size, all sizes take the same way.
    assert!(paths.chunks(2).all(|pair| pair[0].instructions == paths[0].instructions));
}

#[test]
fn a_loop_is_seen() {
    let object = allocator("SEARCH");
    for path in paths(Some(&object), false) {
        match path.operation {
            Operation::Malloc => {
                let Verdict::Broken(what) = Verdict::strict(&path) else { panic!("not seen in {path:?}") };
                assert!(what.contains("a loop") && what.contains("exact-SEARCH.so+0x"), "{what}");
                assert!(!what.contains("calls"), "{what}");
            }
            Operation::Free => assert_eq!(Verdict::strict(&path), Verdict::Held),
        }
    }
}

#[test]
fn a_call_is_seen() {
    let object = allocator("CALL");
    for path in paths(Some(&object), false) {
        match path.operation {
            Operation::Malloc => {
                assert_eq!(path.calls.len(), 1, "{path:?}");
                let Verdict::Broken(what) = Verdict::strict(&path) else { panic!("not seen in {path:?}") };
                assert!(
                    what.contains("1 calls, the first at exact-CALL.so+0x") && !what.contains("loop"),
                    "{what}"
                );
            }
            Operation::Free => assert_eq!(Verdict::strict(&path), Verdict::Held),
        }
    }
}

#[test]
fn glibc_is_stepped_through_with_a_second_thread_too() {
    let (alone, two) = (paths(None, false), paths(None, true));
    assert_eq!((alone.len(), two.len()), (6 * SIZES.len(), 6 * SIZES.len()));
    assert!(alone.iter().zip(&two).all(|(a, b)| a.operation == b.operation && a.bytes == b.bytes));
    assert!(two.iter().all(|path| path.threads && path.instructions > 5));
}

#[test]
fn the_managers_of_the_papers_keep_their_short_path() {
    // Without a build there is no manager to test.
    let Ok(places) = Places::find() else { return };
    let known = manager::known(&places).expect("descriptions that can be read");
    let mut faults = vec![];
    for manager in known.iter().filter(|manager| !gate(&manager.name).is_open()) {
        for threads in [false, true] {
            for verdict in Verdict::of_all(&manager.name, &paths(manager.object.as_deref(), threads)) {
                if let Verdict::Broken(what) = verdict {
                    faults.push(format!("{}: {what}", manager.name));
                }
            }
        }
    }
    assert!(
        faults.is_empty(),
        "no loop and no call where a free list has a block, but\n{}",
        faults.join("\n")
    );
}
