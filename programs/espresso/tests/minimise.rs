//! The minimiser finds the known minimal covers of small functions, and answers bad input with the line.

use std::fs;
use std::process::{Command, Output};

fn minimise(pla: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("function.pla");
    fs::write(&path, pla).unwrap();
    Command::new(env!("CARGO_BIN_EXE_heaptoll-espresso")).arg(path).output().unwrap()
}

fn size(pla: &str) -> String {
    let output = minimise(pla);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().rsplit_once(',').unwrap().0.to_owned()
}

#[test]
fn known_functions_come_out_minimal() {
    let parity = ".i 3\n.o 1\n001 1\n010 1\n100 1\n111 1\n.e\n";
    assert_eq!(size(parity), "4 terms, 12 literals");
    let always = ".i 2\n.o 1\n00 1\n01 1\n10 1\n11 1\n.e\n";
    assert_eq!(size(always), "1 terms, 0 literals");
    let either = ".i 2\n.o 1\n01 1\n10 1\n11 1\n.e\n";
    assert_eq!(size(either), "2 terms, 2 literals");
}

#[test]
fn outputs_share_terms() {
    let both = ".i 3\n.o 2\n11- 10\n111 01\n110 01\n--1 11\n.e\n";
    assert_eq!(size(both), "2 terms, 3 literals");
}

#[test]
fn terms_come_out_as_characters() {
    let output = minimise(".i 3\n.o 2\n011 10\n010 10\n.e\n");
    // The SHA-256 of `01-10`.
    let digest = "1626222ffa79e9acbf88af9493aae36036727985256e5e33bf428830ce9df902";
    assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("1 terms, 2 literals, {digest}\n"));
}

#[test]
fn a_function_too_wide_for_a_cube_is_refused() {
    let wide = 40_000;
    let output = minimise(&format!(".i {wide}\n.o 1\n{} 1\n.e\n", "1".repeat(wide)));
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("too many"));
}

#[test]
fn bad_input_fails_with_its_line() {
    let output = minimise(".i 2\n.o 1\n0x 1\n.e\n");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("line 3"));
    let usage = Command::new(env!("CARGO_BIN_EXE_heaptoll-espresso")).output().unwrap();
    assert_eq!(usage.status.code(), Some(2));
}

#[test]
fn the_notices_of_the_authors_are_in_the_binary() {
    let output = Command::new(env!("CARGO_BIN_EXE_heaptoll-espresso")).arg("--license").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("Regents of the University of California") && text.contains("MIT License"),
        "{text}"
    );
}
