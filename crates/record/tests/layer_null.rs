//! The null manager under programs.

use std::process::{Command, Output};

use crate::layer_support::{Fixture, layers};

fn under_null(command: &mut Command) -> Output {
    command.env("LD_PRELOAD", layers().join("libheaptoll_null.so")).output().expect("it runs")
}

/// Runs one side of `null.c`; gives what it wrote to standard error.
fn side(name: &str) -> String {
    let fixture = Fixture::new();
    let output = under_null(Command::new(fixture.program("null.c", &[])).arg(name));
    let output_text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{name}: {} {output_text}", output.status);
    output_text
}

#[test]
fn every_function_gives_distinct_aligned_zeroed_blocks_that_keep_their_contents() {
    assert_eq!(side("family"), "");
}

#[test]
fn two_hundred_threads_have_blocks_of_their_own() {
    assert_eq!(side("threads"), "");
}

#[test]
fn it_reports_once_that_a_region_is_used_up_and_returns_no_more() {
    let output_text = side("used-up");
    assert_eq!(
        output_text,
        "heaptoll: the null manager has used up its addresses: it never hands out a block twice\n"
    );
}

#[test]
fn when_contents_do_not_matter_it_goes_on_for_ever_and_copies_nothing() {
    assert_eq!(side("forget"), "");
}

#[test]
fn a_limit_of_the_address_space_makes_it_smaller() {
    assert_eq!(side("limit"), "");
}

#[test]
fn real_programs_run_under_it() {
    for (command, expected) in [
        (&["/bin/true"][..], ""),
        (&["sh", "-c", "echo $((6 * 7)); ls -d /"][..], "42\n/\n"),
        (&["perl", "-e", "my %h; $h{$_} = $_ x 3 for 1..20000; print scalar keys %h"][..], "20000"),
    ] {
        let output = under_null(Command::new(command[0]).args(&command[1..]));
        assert!(output.status.success(), "{command:?}: {output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
    }
}
