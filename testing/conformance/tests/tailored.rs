//! The suite over allocators made from traces: of a small program, of one with a large heap, and of one without classes.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use heaptoll_conformance::process::End;
use heaptoll_conformance::suite::{Case, CaseKind, compile, in_parallel};
use heaptoll_conformance::verdict::{Verdict, judge};
use heaptoll_tailor::compile::Compiler;
use heaptoll_tailor::plan::Plan;
use heaptoll_tailor::profile::Profile;
use heaptoll_tailor::source::{Origin, source};
use heaptoll_trace::{Event, EventKind};

use crate::SUITE;

/// Profiles by name: each size, and how many blocks of it are live at once.
const PROFILES: [(&str, &[(u64, u32)]); 3] = [
    ("small", &[(12, 40), (24, 100), (100, 7), (480, 1), (4000, 2), (70_000, 1)]),
    ("large", &[(8, 1000), (64, 300_000), (1000, 9), (5000, 3)]),
    ("without_classes", &[(20_000, 4)]),
];

/// The profile of a program that allocates so many blocks of each size, and then frees and allocates one of each again
/// and again.
fn profile(sizes: &[(u64, u32)]) -> Profile {
    let mut profile = Profile::default();
    let mut event = |kind, slot, size| {
        let (moved, align_log2, thread, site, usable, time_ns, latency_ns) = (false, 0, 0, 0, size, 0, 0);
        profile.events(&[Event {
            kind,
            moved,
            align_log2,
            thread,
            slot,
            site,
            size,
            usable,
            time_ns,
            latency_ns,
        }]);
    };
    let mut slot = 0;
    let mut last = Vec::new();
    for &(size, live) in sizes {
        (slot..slot + live).for_each(|slot| event(EventKind::Malloc, slot, size));
        slot += live;
        last.push((slot - 1, size));
    }
    for _ in 0..20_000 {
        for &(slot, size) in &last {
            event(EventKind::Free, slot, 0);
            event(EventKind::Malloc, slot, size);
        }
    }
    profile
}

fn run(object: &Path, case: &Case) -> End {
    SUITE.run(case, &[object.to_owned()], &[], true, Duration::from_secs(60)).expect("it runs")
}

/// The allocator of a profile, in a folder.
fn made(name: &str, sizes: &[(u64, u32)], folder: &Path) -> PathBuf {
    let compiler = Compiler::find(None, std::env::var_os("PATH")).expect("the suite has a compiler too");
    let (code, object) = (folder.join(format!("{name}.c")), folder.join(format!("{name}.so")));
    std::fs::write(&code, source(&Plan::new(&profile(sizes)), &Origin::default())).expect("writes");
    compiler.compile(&code, &object).expect("it compiles");
    object
}

#[test]
#[ignore = "slow: some five CPU seconds; the laboratory's compiler and the suite decide it alone"]
fn allocators_made_from_traces_conform_in_every_case() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, sizes) in PROFILES {
        let object = made(name, sizes, folder.path());
        let cases: Vec<&Case> = SUITE.cases.iter().filter(|case| case.kind == CaseKind::Plain).collect();
        let ends = in_parallel(&cases, |case| run(&object, case));
        let failed: Vec<String> = cases
            .iter()
            .zip(&ends)
            .filter(|(_, end)| matches!(judge(end, None), Verdict::Fails(_)))
            .map(|(case, end)| format!("{} under {name}: {}", case.name, end.ending))
            .collect();
        assert!(failed.is_empty(), "{failed:#?}");
    }
}

/// Fills blocks below the size of mappings, frees all, so that the top goes back to the system, and allocates them
/// again: the page that was touched in part must be zero too.
const FILLS_AND_FREES: &str = r#"
#include <stdlib.h>
#include <string.h>
enum { BLOCKS = 100, BYTES = 60008 };
int main(void) {
    unsigned char *blocks[BLOCKS];
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < BLOCKS; i++) {
            blocks[i] = calloc(1, BYTES);
            for (int at = 0; at < BYTES; at++)
                if (blocks[i][at])
                    return 1;
            memset(blocks[i], 0xff, BYTES);
        }
        for (int i = BLOCKS; i--;)
            free(blocks[i]);
    }
    return 0;
}
"#;

#[test]
fn memory_that_went_back_to_the_system_is_zero_for_calloc() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let object = made("small", PROFILES[0].1, folder.path());
    let (code, program) = (folder.path().join("fills.c"), folder.path().join("fills"));
    std::fs::write(&code, FILLS_AND_FREES).expect("writes");
    let mut command = Command::new("cc");
    command.args(["-O1", "-fno-builtin", "-o"]).arg(&program).arg(&code);
    compile(&mut command, "gcc").expect("it compiles");
    let status = Command::new(&program).env("LD_PRELOAD", &object).status().expect("it runs");
    assert_eq!(status.code(), Some(0), "a byte of a calloc is not zero");
}
