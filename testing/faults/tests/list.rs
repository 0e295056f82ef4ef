//! The list of faults fits the sources; and, slowly, each fault is found by its assertion.

use std::path::{Path, PathBuf};

use heaptoll_faults::list::{self, Fault};
use heaptoll_faults::sources::Sources;
use heaptoll_faults::trial;

fn root() -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).canonicalize().expect("the repository")
}

fn faults() -> Vec<Fault> {
    list::read(&root()).expect("the list")
}

#[test]
fn every_fault_changes_a_text_that_occurs_once() {
    let findings = list::findings(&root(), &faults()).expect("the sources");
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

#[test]
fn a_name_that_no_fault_has_is_refused() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_heaptoll-faults"))
        .args(["--root", root().to_str().expect("a path"), "--list", "no such fault"])
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no fault has no such fault in its name"));
}

#[test]
#[ignore = "slow: builds a package and runs a test for each fault"]
fn every_fault_is_found_by_its_assertion() {
    let sources = Sources::copy(&root()).expect("a copy of the sources");
    let mut missed = Vec::new();
    for fault in faults() {
        let trial = trial::run(&sources, &fault).expect("a trial");
        println!("{:6.1} s  {}", trial.time.as_secs_f64(), fault.name);
        if let Err(how) = trial.outcome {
            missed.push(format!("{}: {how}", fault.name));
        }
    }
    assert!(missed.is_empty(), "{} faults missed:\n{}", missed.len(), missed.join("\n"));
}
