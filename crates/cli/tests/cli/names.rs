//! Names that are misspelt, and managers that only Debian has.

use crate::fixture::Fixture;

#[test]
fn a_misspelt_name_is_answered_with_the_nearest() {
    let fixture = Fixture::new();
    for (words, meant) in [
        (&["run", "-m", "mimaloc3", "--", "ls"][..], "did you mean `mimalloc3`?"),
        (&["run", "-m", "colectors", "--", "ls"], "did you mean `collectors`?"),
        (&["run", "-m", "qarantine=2M/glibc", "--", "ls"], "did you mean `quarantine`?"),
        (&["run", "-m", "quarantine=2M,chek=on/glibc", "--", "ls"], "did you mean `check`?"),
        (&["run", "-p", "gawkk"], "did you mean"),
        (&["runn"], "similar subcommand"),
        (&["run", "--bound", "--", "ls"], "--bounds"),
        (&["run", "ls", "/"], "heaptoll run -- ls /"),
        (&["ls", "/ a"], "to measure a program: heaptoll run -- ls '/ a'"),
        (&["/bin/ls", "/"], "to measure a program: heaptoll run -- /bin/ls /"),
    ] {
        fixture.heaptoll(words).exits(2).complains(&[meant]);
    }
}

#[test]
fn tithe_is_run_where_it_is_named_and_not_by_default() {
    let fixture = Fixture::new();
    let output = fixture.heaptoll(&["managers"]).out;
    let group = |name: &str| {
        let row = output.lines().find(|line| line.split_whitespace().next() == Some(name));
        row.and_then(|row| row.split_whitespace().nth(1)).unwrap_or_default().to_owned()
    };
    for name in ["tithe", "tithe-collect"] {
        assert_eq!(group(name), "collectors", "{output}");
    }
    assert_eq!(group("tithe-explicit"), "-", "{output}");
    assert_eq!(group("glibc"), "modern", "{output}");
}
