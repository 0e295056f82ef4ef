//! Names that are misspelt, and managers that only Debian has.

use crate::bench::Bench;

#[test]
fn a_misspelt_name_is_answered_with_the_nearest() {
    let bench = Bench::new();
    for (words, meant) in [
        (&["run", "-m", "mimaloc3", "--", "ls"][..], "did you mean `mimalloc3`?"),
        (&["run", "-m", "colectors", "--", "ls"], "did you mean `collectors`?"),
        (&["run", "-m", "qarantine=2M/glibc", "--", "ls"], "did you mean `quarantine`?"),
        (&["run", "-m", "quarantine=2M,chek=on/glibc", "--", "ls"], "did you mean `check`?"),
        (&["run", "-p", "gawkk"], "did you mean"),
        (&["study", "zorn1991"], "did you mean `zorn1992`?"),
        (&["study", "zorn1992", "--only", "xyz-no-such-step"], "there is no such step"),
        (&["runn"], "similar subcommand"),
        (&["run", "--bound", "--", "ls"], "--bounds"),
    ] {
        bench.heaptoll(words).exits(2).complains(&[meant]);
    }
}

#[test]
fn tithe_is_run_where_it_is_asked_for_and_not_by_default() {
    let bench = Bench::new();
    let said = bench.heaptoll(&["managers"]).out;
    let group = |name: &str| {
        let row = said.lines().find(|line| line.split_whitespace().next() == Some(name));
        row.and_then(|row| row.split_whitespace().nth(1)).unwrap_or_default().to_owned()
    };
    for name in ["tithe", "tithe-collect", "tithe-explicit"] {
        assert_eq!(group(name), "collectors", "{said}");
    }
    assert_eq!(group("glibc"), "modern", "{said}");
}
