//! Requests that make no sense are refused with exit status 2, before anything is run or written.

use crate::fixture::Fixture;

#[track_caller]
fn refused(arguments: &[&str], words: &[&str]) {
    let fixture = Fixture::new();
    fixture.heaptoll(arguments).exits(2).complains(words);
    assert!(!fixture.path("state").exists(), "nothing is stored for {arguments:?}");
}

#[test]
fn numbers_out_of_range_are_refused() {
    refused(&["run", "-n", "0", "--", "true"], &["--repetitions", "0 is not in 1..=10000"]);
    refused(&["run", "-n", "many", "--", "true"], &["--repetitions", "many"]);
    refused(&["run", "-n", "-3", "--", "true"], &["-3"]);
    refused(&["run", "--warmup", "-1", "--", "true"], &["-1"]);
    refused(&["run", "--seed", "x", "--", "true"], &["--seed"]);
    refused(&["run", "--expect-status", "256", "--", "true"], &["256"]);
}

#[test]
fn timeouts_that_are_none_are_refused_with_what_to_give_instead() {
    for timeout in ["0", "-1", "nan", "inf", "soon", "1e99", ""] {
        refused(&["run", "--timeout", timeout, "--", "true"], &["give a number of seconds above 0"]);
    }
}

#[test]
fn an_empty_request_gets_advice() {
    refused(&["run"], &["nothing to run", "--program"]);
    refused(&["run", "--"], &["nothing to run"]);
    refused(&["run", "--", ""], &["program"]);
}

#[test]
fn options_that_exclude_each_other_are_refused() {
    refused(&["run", "--all", "--", "true"], &["cannot be used with"]);
    refused(&["run", "--program", "cfrac", "--", "true"], &["cannot be used with"]);
    refused(&["run", "--serve", "x", "--", "true"], &["--load"]);
    refused(&["run", "--load", "x", "--", "true"], &["--serve"]);
    refused(&["run", "--thp", "sometimes", "--", "true"], &["sometimes"]);
}

#[test]
fn what_an_experiment_has_fixed_cannot_be_changed_when_it_is_resumed() {
    for option in [
        ["--timeout", "5"],
        ["--warmup", "3"],
        ["--expect-status", "3"],
        ["--thp", "never"],
        ["--baseline", "glibc"],
        ["--size", "quick"],
        ["-m", "glibc"],
        ["--seed", "3"],
        ["--stdin", "/dev/null"],
        ["--program", "cfrac"],
        ["--catalog", "."],
        ["--db", "y.db"],
        ["--pairing", "lockstep"],
        ["--precision", "1%"],
        ["--slice", "1ms"],
        ["--stop", "INT"],
        ["--", "true"],
    ] {
        refused(&["run", "--resume", "x.db", option[0], option[1]], &["cannot be used with"]);
    }
    for option in ["--all", "--quick", "--working-copy"] {
        refused(&["run", "--resume", "x.db", option], &["cannot be used with"]);
    }
}

#[test]
fn unknown_names_list_what_there_is() {
    refused(&["run", "-m", "nosuch", "--", "true"], &["no manager `nosuch`", "glibc"]);
    refused(&["run", "--baseline", "nosuch", "--", "true"], &["no manager `nosuch`"]);
    refused(&["run", "--program", "nosuch"], &["nosuch"]);
    refused(&["run", "-m", "./nosuch.so", "--", "true"], &["./nosuch.so", "No such file"]);
    refused(&["run", "-m", "/tmp", "--", "true"], &["/tmp", "is not a file"]);
}

#[test]
fn standard_input_that_cannot_be_read_is_refused() {
    refused(&["run", "--stdin", "/nonexistent/input", "--", "cat"], &["--stdin /nonexistent/input"]);
    refused(&["run", "--stdin", "/tmp", "--", "cat"], &["--stdin /tmp", "must be a regular file"]);
    let fixture = Fixture::new();
    let status = std::process::Command::new("mkfifo").arg(fixture.path("fifo")).status();
    assert!(status.is_ok_and(|status| status.success()), "mkfifo runs");
    refused(&["run", "--stdin", &fixture.at("fifo"), "--", "cat"], &["must be a regular file"]);
}

#[test]
fn patterns_and_commands_of_servers_are_checked_first() {
    let serve = |load, ready, rest: &[&'static str]| {
        let mut words = vec!["run", "--serve", "sleep 9", "--load", load, "--ready", ready];
        words.extend(rest);
        words
    };
    refused(&serve("true", "(", &[]), &["not a regular expression"]);
    refused(&serve("true", "x", &["--figures", "[0-9]+"]), &["names no group"]);
    refused(&serve("it's", "x", &[]), &["--load", "check its quotes"]);
    refused(&serve("true", "x", &["--stop", "NOPE"]), &["--stop NOPE"]);
}

#[test]
fn huge_pages_everywhere_are_refused_where_the_system_does_not_give_them() {
    let setting = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    if setting.contains("[always]") {
        Fixture::new()
            .heaptoll(&["run", "--thp", "always", "-m", "glibc", "-n", "1", "--warmup", "0", "--", "true"])
            .exits(0);
    } else {
        refused(&["run", "--thp", "always", "--", "true"], &["--thp always", "this system's setting is"]);
    }
}

#[test]
fn a_place_where_the_experiment_cannot_be_kept_is_refused_before_anything_runs() {
    let fixture = Fixture::new();
    let marker = fixture.at("was-run");
    let run = |db: &str| fixture.heaptoll(&["run", "-m", "glibc", "--db", db, "--", "touch", &marker]);
    run("/no/such/folder/e.db").exits(2).complains(&["/no/such/folder/e.db", "there is no folder"]);
    run("/proc/e.db").exits(2).complains(&["/proc/e.db"]);
    let mut command = fixture.command(&["run", "-m", "glibc", "--", "touch", &marker]);
    let output: crate::fixture::CommandOutput =
        command.env("XDG_STATE_HOME", "/proc/state").output().expect("runs").into();
    output.exits(2).complains(&["/proc/state/heaptoll", "--db"]);
    assert!(!fixture.path("was-run").exists());
}
