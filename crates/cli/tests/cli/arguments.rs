//! The arguments of a user's own command reach the program byte for byte, in every run and after `--resume`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use crate::fixture::{CommandOutput, Fixture, read_json, rows_of};

/// Ends with 0 when its arguments are these bytes.
const CHECK: &str = "test \"$1\" = \"$(printf '\\173tmp\\175 \\173\\173tmp\\175\\175')\" && \
                     test \"$2\" = \"$(printf '\\377\\376')\"";

#[test]
fn words_of_a_command_reach_the_program_as_they_were_given() {
    let fixture = Fixture::new();
    let (db, json) = (fixture.at("e.db"), fixture.at("o.json"));
    let mut run = fixture.command(&["run", "--db", &db, "-m", "glibc", "-n", "1", "--"]);
    run.args(["sh", "-c", CHECK, "sh", "{tmp} {{tmp}}"]).arg(OsStr::from_bytes(b"\xff\xfe"));
    let output: CommandOutput = run.output().expect("runs").into();
    output.exits(0);
    fixture.heaptoll(&["run", "--resume", &db, "-n", "2", "--json", &json]).exits(0);
    let json = read_json(&json);
    assert_eq!(rows_of(&json, "glibc", "timed").len(), 2);
    assert_eq!(json["experiment"]["programs"][0]["command"][4], "{tmp} {{tmp}}");
}

#[test]
fn a_servers_command_has_the_scratch_folder_for_its_placeholder_and_the_word_where_it_is_escaped() {
    let fixture = Fixture::new();
    let server = "sh -c 'test \"{{tmp}}\" = \"$(printf \"\\173tmp\\175\")\" || exit 9; \
                  trap \"exit 0\" TERM; echo ready; while :; do sleep 0.02; done'";
    let load = "sh -c 'test -d {tmp} && test \"{{tmp}}\" != {tmp}'";
    let words = ["run", "-m", "glibc", "-n", "1", "--warmup", "0", "--serve", server, "--ready", "ready"];
    fixture.heaptoll(&[&words[..], &["--load", load]].concat()).exits(0);
}
