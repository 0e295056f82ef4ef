//! The tracer's instructions against callgrind's, on a program that does not depend on addresses: no instruction may
//! differ in the routines of the malloc family, and next to none in total.

use std::process::Command;

/// The cells of a table, between which there are two spaces or more.
fn rows(table: &str) -> Vec<Vec<String>> {
    let cells = |line: &str| {
        line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect()
    };
    table.lines().map(cells).collect()
}

#[test]
#[ignore = "slow: a program under two tracers"]
fn instructions_are_those_of_callgrind() {
    let output = Command::new(env!("CARGO_BIN_EXE_heaptoll-bench"))
        .args(["exact", "agreement", "--instructions", "-p", "cfrac", "-m", "glibc", "-m", "kingsley"])
        .env("HEAPTOLL_HOME", heaptoll_testing::staged::home())
        .output()
        .expect("it runs");
    let (table, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{stderr}\n{table}");
    let rows = rows(&table);
    // Program, manager, what, calls, difference, instructions, difference, per cent.
    for manager in ["glibc", "kingsley"] {
        let of = |what: &str| {
            let row = rows.iter().find(|row| row.len() == 8 && row[1] == manager && row[2] == what);
            row.unwrap_or_else(|| panic!("no row for {what} under {manager}:\n{table}"))
        };
        for routine in ["malloc", "free", "calloc", "the family"] {
            let row = of(routine);
            assert!(row[3].len() > 5, "too few calls for a comparison: {row:?}");
            assert_eq!((row[4].as_str(), row[6].as_str()), ("0", "0"), "{row:?}");
        }
        assert!(of("the program")[7].trim_start_matches(['+', '-']).starts_with("0.00"), "{table}");
    }
}
